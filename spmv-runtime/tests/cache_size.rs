//! Size cap, order of eviction, and what the command does with the folder.
#![cfg(unix)]

mod cache_support;

use std::fs::{self, File};
use std::time::{Duration, SystemTime};

use cache_support::{Fixture, artifact, request, sized_artifact};
use spmv_runtime::cache::{Damage, DiskCache, Key, Lookup};

/// Makes the entry's last use that long ago.
fn age(fixture: &Fixture, n: usize, seconds: u64) {
    set_age(&fixture.entry(&request(n)), seconds);
}

fn set_age(path: &std::path::Path, seconds: u64) {
    let then = SystemTime::now() - Duration::from_secs(seconds);
    File::options().write(true).open(path).unwrap().set_modified(then).unwrap();
}

fn present(fixture: &Fixture, numbers: std::ops::Range<usize>) -> Vec<usize> {
    numbers.filter(|&n| fixture.entry(&request(n)).exists()).collect()
}

#[test]
fn the_least_recently_used_go_first() {
    let fixture = Fixture::new();
    let cache = fixture.cache();
    for n in 0..6 {
        assert!(cache.put(&request(n), &sized_artifact(n, 10_000)));
    }
    let each = fixture.entry_bytes() / 6;
    // From the longest unused: 3 1 4 0 5 2; then a hit makes 3 the newest.
    for (rank, n) in [3, 1, 4, 0, 5, 2].into_iter().enumerate() {
        age(&fixture, n, 10_000 - 1000 * rank as u64);
    }
    assert!(matches!(cache.get(&request(3)), Lookup::Hit(_)));
    let report = cache.gc(4 * each + each / 2).unwrap();
    assert_eq!(present(&fixture, 0..6), [0, 2, 3, 5]);
    assert_eq!((report.removed_entries, report.kept_entries), (2, 4));
    assert_eq!(report.kept_bytes, fixture.entry_bytes());
    cache.gc(2 * each + each / 2).unwrap();
    assert_eq!(present(&fixture, 0..6), [2, 3]);

    // A put does the same by itself: room for three, the third pushes nothing out, the fourth the oldest.
    let cache = DiskCache::open(&fixture.location().max_bytes((3 * each + each / 2) * 16 / 15));
    assert!(cache.put(&request(6), &sized_artifact(6, 10_000)));
    assert_eq!(present(&fixture, 0..8), [2, 3, 6]);
    assert!(cache.put(&request(7), &sized_artifact(7, 10_000)));
    assert_eq!(present(&fixture, 0..8), [3, 6, 7]);
}

#[test]
fn a_hit_renews_at_most_once_a_minute() {
    let fixture = Fixture::new();
    let cache = fixture.cache();
    assert!(cache.put(&request(1), &artifact(1)));
    let used = || fs::metadata(fixture.entry(&request(1))).unwrap().modified().unwrap();
    let ago = |time: SystemTime| time.elapsed().unwrap_or_default().as_secs();
    age(&fixture, 1, 30);
    let before = used();
    assert!(matches!(cache.get(&request(1)), Lookup::Hit(_)));
    assert_eq!(used(), before);
    age(&fixture, 1, 90);
    assert!(matches!(cache.get(&request(1)), Lookup::Hit(_)));
    assert!(ago(used()) < 30);
    // A clock that was wrong once does not keep an entry for ever.
    let future = SystemTime::now() + Duration::from_secs(1_000_000);
    File::options().write(true).open(fixture.entry(&request(1))).unwrap().set_modified(future).unwrap();
    assert!(matches!(cache.get(&request(1)), Lookup::Hit(_)));
    assert!(used() < future);
}

#[test]
fn the_cap_holds_after_every_put() {
    // A small cap lists the folder at every put, the larger ones at every few.
    for (max_bytes, entry_bytes, puts) in
        [(40_000, 3_000, 60), (1 << 20, 20_000, 150), (4 << 20, 30_000, 300)]
    {
        let fixture = Fixture::new();
        let cache = DiskCache::open(&fixture.location().max_bytes(max_bytes));
        for n in 0..puts {
            assert!(cache.put(&request(n), &sized_artifact(n, entry_bytes)));
            assert!(fixture.entry_bytes() <= max_bytes, "{max_bytes} after put {n}");
            assert!(matches!(cache.get(&request(n)), Lookup::Hit(_)), "what was just put stays");
        }
        assert!(fixture.entry_bytes() > max_bytes / 2, "the room is used");
        assert!(fixture.leftovers().is_empty());
    }
}

#[test]
fn most_puts_do_not_list_the_folder() {
    let fixture = Fixture::new();
    // A sixteenth of it is 64 blocks of 4 KiB, and each of these entries takes one.
    let cache = DiskCache::open(&fixture.location().max_bytes(4 << 20));
    let old = fixture.folder().join(".writing-old");
    for round in 0..3 {
        // What a listing would sweep.
        fs::write(&old, "").unwrap();
        set_age(&old, 2 * 3600);
        for n in 0..64 {
            assert!(old.exists(), "put {n} of round {round}");
            assert!(cache.put(&request(n), &artifact(n)));
        }
        assert!(!old.exists(), "round {round}");
    }
}

#[test]
fn short_processes_add_up() {
    // Every process puts one entry; none of them alone writes much.
    let fixture = Fixture::new();
    let max_bytes = 1 << 20;
    for n in 0..200 {
        let cache = DiskCache::open(&fixture.location().max_bytes(max_bytes));
        assert!(cache.put(&request(n), &sized_artifact(n, 20_000)));
        assert!(fixture.entry_bytes() <= max_bytes, "after process {n}");
    }
}

#[test]
fn an_entry_larger_than_the_cap_is_not_stored() {
    let fixture = Fixture::new();
    for max_bytes in [0, 1, 1000, 10_000] {
        let cache = DiskCache::open(&fixture.location().max_bytes(max_bytes));
        assert!(!cache.put(&request(1), &sized_artifact(1, 20_000)));
        assert_eq!(cache.get(&request(1)), Lookup::Miss);
        assert!(cache.status().problem.is_none());
    }
    assert!(DiskCache::open(&fixture.location().max_bytes(u64::MAX)).put(&request(1), &artifact(1)));
}

#[test]
fn entries_are_listed_with_what_they_hold() {
    let fixture = Fixture::new();
    let cache = fixture.cache();
    for n in 0..3 {
        assert!(cache.put(&request(n), &artifact(n)));
    }
    for (n, seconds) in [(0, 2000), (1, 1000), (2, 3000)] {
        age(&fixture, n, seconds);
    }
    fixture.plant(&request(9), b"spoilt");
    let entries = cache.entries().unwrap();
    assert_eq!(
        entries.iter().map(|entry| entry.key).collect::<Vec<_>>(),
        [1, 0, 2].map(|n| Key::of(&request(n)))
    );
    let first = &entries[0];
    assert_eq!(first.path, fixture.entry(&request(1)));
    assert_eq!(first.bytes, fs::metadata(&first.path).unwrap().len());
    assert_eq!(first.last_used, fs::metadata(&first.path).unwrap().modified().unwrap());
    assert_eq!((first.arch.as_str(), first.nvrtc_version), ("sm_90", (12, 8)));
    assert_eq!(first.title, "// kernel 1");
    assert_eq!(first.kernels, artifact(1).kernels);
    assert!(fixture.entry(&request(9)).exists(), "a list deletes nothing");
}

#[test]
fn verify_deletes_what_is_damaged() {
    let fixture = Fixture::new();
    let cache = fixture.cache();
    for n in 0..5 {
        assert!(cache.put(&request(n), &artifact(n)));
    }
    let mut bytes = fs::read(fixture.entry(&request(1))).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fixture.plant(&request(1), &bytes);
    fixture.plant(&request(2), b"");
    fs::copy(fixture.entry(&request(4)), fixture.entry(&request(3))).unwrap();
    let mut report = cache.verify().unwrap();
    assert_eq!(report.ok, 2);
    report.damaged.sort_by(|a, b| a.0.cmp(&b.0));
    let mut expected = vec![
        (fixture.entry(&request(1)), Damage::Checksum),
        (fixture.entry(&request(2)), Damage::Truncated { bytes: 0 }),
        (fixture.entry(&request(3)), Damage::OtherRequest),
    ];
    expected.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(report.damaged, expected);
    assert_eq!(present(&fixture, 0..5), [0, 4]);
    let again = cache.verify().unwrap();
    assert_eq!((again.ok, again.bytes, again.damaged.len()), (2, fixture.entry_bytes(), 0));
    // An entry of another format is another version's.
    let mut bytes = fs::read(fixture.entry(&request(4))).unwrap();
    bytes[8] += 1;
    fixture.plant(&request(4), &bytes);
    let others = cache.verify().unwrap();
    assert_eq!((others.ok, others.damaged.len()), (1, 0));
    assert!(fixture.entry(&request(4)).exists());
}

#[test]
fn leftovers_are_swept_when_they_are_old() {
    let fixture = Fixture::new();
    let cache = fixture.cache();
    assert!(cache.put(&request(1), &artifact(1)));
    let [old, young] = ["00000001-0", "00000002-0"].map(|n| fixture.folder().join(format!(".writing-{n}")));
    fs::write(&old, [0; 100]).unwrap();
    fs::write(&young, [0; 10]).unwrap();
    set_age(&old, 2 * 3600);
    let report = cache.gc(u64::MAX).unwrap();
    assert_eq!((report.removed_temporaries, report.removed_entries, report.removed_bytes), (1, 0, 100));
    assert!(!old.exists() && young.exists());
    // Puts sweep as well.
    fs::write(&old, [0; 100]).unwrap();
    set_age(&old, 2 * 3600);
    assert!(DiskCache::open(&fixture.location().max_bytes(50_000)).put(&request(2), &artifact(2)));
    assert!(!old.exists() && young.exists());
}

#[test]
fn clear_leaves_the_files_of_others() {
    let fixture = Fixture::new();
    let cache = fixture.cache();
    for n in 0..3 {
        assert!(cache.put(&request(n), &artifact(n)));
    }
    fs::write(fixture.folder().join(".writing-1"), "left").unwrap();
    let strangers = ["thesis.tex", "cache.lock", "abc.spmv", &format!("{}.spmv", "A".repeat(64))];
    for name in strangers {
        fs::write(fixture.folder().join(name), "precious").unwrap();
    }
    let report = cache.clear().unwrap();
    assert_eq!((report.removed_entries, report.removed_temporaries), (3, 1));
    assert_eq!((report.kept_entries, report.kept_bytes), (0, 0));
    assert_eq!(fs::read_dir(fixture.folder()).unwrap().count(), strangers.len());
    assert!(cache.put(&request(1), &artifact(1)));
    assert_eq!(cache.get(&request(1)), Lookup::Hit(artifact(1)));
}

#[test]
fn the_count_of_written_blocks_may_be_anything() {
    let fixture = Fixture::new();
    let precious = fixture.root().join("precious");
    fs::write(&precious, "precious").unwrap();
    let written = fixture.folder().join(".written");
    let cache = DiskCache::open(&fixture.location().max_bytes(1 << 20));
    let fill = |what: &str| {
        for n in 0..70 {
            assert!(cache.put(&request(n), &sized_artifact(n, 20_000)));
            assert!(fixture.entry_bytes() <= 1 << 20, "{what}");
        }
    };
    std::os::unix::fs::symlink(&precious, &written).unwrap();
    fill("a link");
    assert_eq!(fs::read_to_string(&precious).unwrap(), "precious");
    fs::remove_file(&written).unwrap();
    fs::create_dir(&written).unwrap();
    fill("a folder");
    fs::remove_dir(&written).unwrap();
    File::create(&written).unwrap().set_len(1 << 40).unwrap();
    fill("a huge file");
}

#[test]
fn what_cannot_be_deleted_protects_nothing_else() {
    let fixture = Fixture::new();
    let cache = fixture.cache();
    assert!(cache.put(&request(1), &artifact(1)));
    // Older than the entry, so its turn comes first.
    let stuck = fixture.entry(&request(0));
    fs::create_dir(&stuck).unwrap();
    fs::write(stuck.join("inside"), "").unwrap();
    File::open(&stuck).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
    assert!(cache.clear().unwrap_err().to_string().contains(fixture.folder().to_str().unwrap()));
    assert_eq!(present(&fixture, 0..2), [0]);
    let small = DiskCache::open(&fixture.location().max_bytes(30_000));
    for n in 1..20 {
        assert!(small.put(&request(n), &sized_artifact(n, 5_000)));
    }
    assert!(present(&fixture, 1..20).len() < 6);
}
