//! Entries of the disk cache: what comes back is what was stored, or nothing.

#![cfg(unix)]

mod cache_support;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use cache_support::{Fixture, artifact, image, request};
use proptest::prelude::*;
use spmv_runtime::cache::{CacheLocation, Damage, DiskCache, Key, Lookup};
use spmv_runtime::{Artifact, CompileRequest, Image, KernelResources};

#[test]
fn stores_and_finds() {
    let fixture = Fixture::new();
    let cache = fixture.cache();
    assert_eq!(cache.get(&request(1)), Lookup::Miss);
    assert!(cache.put(&request(1), &artifact(1)));
    assert_eq!(cache.get(&request(1)), Lookup::Hit(artifact(1)));
    assert_eq!(cache.get(&request(2)), Lookup::Miss);
    // Another process sees the same.
    assert_eq!(fixture.cache().get(&request(1)), Lookup::Hit(artifact(1)));
    assert!(cache.put(&request(1), &artifact(2)));
    assert_eq!(cache.get(&request(1)), Lookup::Hit(artifact(2)));
}

#[test]
fn is_private() {
    let fixture = Fixture::new();
    let cache = fixture.cache();
    assert!(cache.put(&request(1), &artifact(1)));
    let mode = |path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    assert_eq!(mode(fixture.folder()), 0o700);
    for entry in fs::read_dir(fixture.folder()).unwrap() {
        assert_eq!(mode(entry.unwrap().path()), 0o600);
    }
}

#[test]
fn every_field_of_the_request_counts() {
    let fixture = Fixture::new();
    let cache = fixture.cache();
    let base = request(1);
    assert!(cache.put(&base, &artifact(1)));
    let others: Vec<(&str, CompileRequest)> = vec![
        ("source", CompileRequest { source: base.source.clone() + " ", ..base.clone() }),
        ("architecture", CompileRequest { arch: "sm_80".into(), ..base.clone() }),
        ("minor version of NVRTC", CompileRequest { nvrtc_version: (12, 9), ..base.clone() }),
        ("major version of NVRTC", CompileRequest { nvrtc_version: (13, 8), ..base.clone() }),
        ("another build of NVRTC", CompileRequest { nvrtc_bytes: base.nvrtc_bytes + 1, ..base.clone() }),
        ("a driver", CompileRequest { driver_version: Some((12, 8)), ..base.clone() }),
        ("another driver", CompileRequest { driver_version: Some((13, 0)), ..base.clone() }),
        ("fewer options", CompileRequest { options: base.options[1..].to_vec(), ..base.clone() }),
        (
            "order of options",
            CompileRequest { options: base.options.iter().rev().cloned().collect(), ..base.clone() },
        ),
        ("options joined", CompileRequest { options: vec![base.options.concat()], ..base.clone() }),
        ("another option", CompileRequest { options: vec!["--fmad=true".into()], ..base.clone() }),
    ];
    for (n, (what, other)) in others.iter().enumerate() {
        assert_eq!(cache.get(other), Lookup::Miss, "{what}");
        assert!(cache.put(other, &artifact(n + 10)));
    }
    for (n, (what, other)) in others.iter().enumerate() {
        assert_eq!(cache.get(other), Lookup::Hit(artifact(n + 10)), "{what}");
    }
    assert_eq!(cache.get(&base), Lookup::Hit(artifact(1)));
}

#[test]
fn the_key_is_stable() {
    // A change here means that every entry on every disk is compiled again: say so with the format's version.
    assert_eq!(
        Key::of(&request(1)).to_string(),
        "e77e6c5edf186f143e131ca88ce333442470069ba011ab910dd7eae608a6cb04"
    );
}

/// A damaged file is discarded once, is gone then, and the next put heals it.
fn assert_discarded(fixture: &Fixture, cache: &DiskCache, what: &str) -> Damage {
    let path = fixture.entry(&request(1));
    let Lookup::Discarded { reason } = cache.get(&request(1)) else { panic!("{what}: not discarded") };
    assert!(fs::symlink_metadata(&path).is_err(), "{what}: still there");
    assert_eq!(cache.get(&request(1)), Lookup::Miss, "{what}");
    reason
}

#[test]
fn every_flipped_bit_is_found() {
    let fixture = Fixture::new();
    let cache = fixture.cache();
    let small =
        Artifact { images: vec![image(vec![7; 40], "p")], log: String::new(), kernels: artifact(1).kernels };
    assert!(cache.put(&request(1), &small));
    let path = fixture.entry(&request(1));
    let whole = fs::read(&path).unwrap();
    for bit in 0..whole.len() * 8 {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        fixture.plant(&request(1), &bytes);
        let reason = assert_discarded(&fixture, &cache, &format!("bit {bit}"));
        match bit / 8 {
            0..8 => assert_eq!(reason, Damage::Foreign),
            8..12 => assert!(matches!(reason, Damage::OtherFormat { .. })),
            _ => assert_eq!(reason, Damage::Checksum),
        }
    }
    fixture.plant(&request(1), &whole);
    assert_eq!(cache.get(&request(1)), Lookup::Hit(small));
}

#[test]
fn every_truncation_is_found() {
    let fixture = Fixture::new();
    let cache = fixture.cache();
    assert!(cache.put(&request(1), &artifact(1)));
    let whole = fs::read(fixture.entry(&request(1))).unwrap();
    for len in 0..whole.len() {
        fixture.plant(&request(1), &whole[..len]);
        let reason = assert_discarded(&fixture, &cache, &format!("{len} bytes"));
        if len < 44 {
            assert_eq!(reason, Damage::Truncated { bytes: len as u64 });
        }
    }
}

#[test]
fn trailing_bytes_are_found() {
    let fixture = Fixture::new();
    let cache = fixture.cache();
    assert!(cache.put(&request(1), &artifact(1)));
    let whole = fs::read(fixture.entry(&request(1))).unwrap();
    for tail in [&[0][..], b"x", &whole] {
        fixture.plant(&request(1), &[&whole, tail].concat());
        assert_eq!(assert_discarded(&fixture, &cache, "trailing bytes"), Damage::Checksum);
    }
}

#[test]
fn a_foreign_file_is_discarded() {
    let fixture = Fixture::new();
    let cache = fixture.cache();
    for foreign in [&b"\x7fELF"[..], &[0; 4096], "%%MatrixMarket matrix coordinate real general\n".as_bytes()]
    {
        fixture.plant(&request(1), foreign);
        assert_discarded(&fixture, &cache, "foreign file");
    }
}

#[test]
fn an_entry_of_another_request_is_discarded() {
    let fixture = Fixture::new();
    let cache = fixture.cache();
    assert!(cache.put(&request(2), &artifact(2)));
    fs::rename(fixture.entry(&request(2)), fixture.entry(&request(1))).unwrap();
    assert_eq!(assert_discarded(&fixture, &cache, "other request"), Damage::OtherRequest);
    assert!(cache.put(&request(1), &artifact(1)));
    assert_eq!(cache.get(&request(1)), Lookup::Hit(artifact(1)));
}

#[test]
fn links_and_folders_are_not_entries() {
    let fixture = Fixture::new();
    let cache = fixture.cache();
    assert!(cache.put(&request(1), &artifact(1)));
    let path = fixture.entry(&request(1));
    let elsewhere = fixture.root().join("elsewhere");
    fs::rename(&path, &elsewhere).unwrap();
    symlink(&elsewhere, &path).unwrap();
    assert_eq!(assert_discarded(&fixture, &cache, "link"), Damage::Symlink);
    assert!(elsewhere.exists(), "the link's target is not ours to delete");
    symlink(fixture.root().join("nothing"), &path).unwrap();
    assert_eq!(assert_discarded(&fixture, &cache, "dangling link"), Damage::Symlink);
    fs::create_dir(&path).unwrap();
    assert_eq!(assert_discarded(&fixture, &cache, "folder"), Damage::NotAFile);
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0)
        .unwrap();
    assert_eq!(assert_discarded(&fixture, &cache, "pipe"), Damage::NotAFile);
    let _socket = std::os::unix::net::UnixListener::bind(fixture.root().join("s")).unwrap();
    fs::rename(fixture.root().join("s"), &path).unwrap();
    assert_eq!(assert_discarded(&fixture, &cache, "socket"), Damage::NotAFile);
    assert!(cache.put(&request(1), &artifact(1)));
    assert_eq!(cache.get(&request(1)), Lookup::Hit(artifact(1)));
}

#[test]
fn a_file_that_others_may_write_is_discarded() {
    let fixture = Fixture::new();
    let cache = fixture.cache();
    for mode in [0o666, 0o602, 0o620] {
        assert!(cache.put(&request(1), &artifact(1)));
        fs::set_permissions(fixture.entry(&request(1)), fs::Permissions::from_mode(mode)).unwrap();
        assert_eq!(assert_discarded(&fixture, &cache, "mode"), Damage::WritableByOthers { mode });
    }
}

#[test]
fn a_file_of_another_user_is_discarded() {
    let fixture = Fixture::new();
    let cache = fixture.cache();
    assert!(cache.put(&request(1), &artifact(1)));
    if !cache_support::is_root("a_file_of_another_user_is_discarded") {
        return;
    }
    std::os::unix::fs::chown(fixture.entry(&request(1)), Some(65534), None).unwrap();
    assert_eq!(assert_discarded(&fixture, &cache, "owner"), Damage::ForeignOwner { owner: 65534, user: 0 });
}

#[test]
fn an_absurd_size_is_not_read() {
    let fixture = Fixture::new();
    let cache = fixture.cache();
    fixture.plant(&request(1), b"");
    // Sparse: takes no disk, and would take a terabyte of memory.
    fs::File::options().write(true).open(fixture.entry(&request(1))).unwrap().set_len(1 << 40).unwrap();
    assert_eq!(
        assert_discarded(&fixture, &cache, "sparse"),
        Damage::TooLarge { bytes: 1 << 40, max_bytes: 64 << 20 }
    );
    let huge = Artifact { images: vec![image(vec![0; 65 << 20], "")], ..artifact(1) };
    assert!(!cache.put(&request(1), &huge));
    assert_eq!(cache.get(&request(1)), Lookup::Miss);
    assert!(cache.status().problem.is_none());
}

#[test]
fn remove_deletes_one_entry() {
    let fixture = Fixture::new();
    let cache = fixture.cache();
    assert!(cache.put(&request(1), &artifact(1)));
    assert!(cache.put(&request(2), &artifact(2)));
    assert!(cache.remove(&request(1)));
    assert!(!cache.remove(&request(1)));
    assert_eq!(cache.get(&request(1)), Lookup::Miss);
    assert_eq!(cache.get(&request(2)), Lookup::Hit(artifact(2)));
}

#[test]
fn memory_only_stores_nothing() {
    let cache = DiskCache::open(&CacheLocation::off());
    assert!(!cache.put(&request(1), &artifact(1)));
    assert_eq!(cache.get(&request(1)), Lookup::Miss);
    assert!(!cache.remove(&request(1)));
    assert!(cache.entries().unwrap().is_empty());
    assert_eq!(cache.verify().unwrap().ok, 0);
    assert_eq!(cache.gc(0).unwrap().removed_entries, 0);
    assert_eq!(cache.clear().unwrap().removed_entries, 0);
    let status = cache.status();
    assert!(status.folder.is_none() && status.problem.is_none());
}

prop_compose! {
    fn any_kernel()(
        name in ".{0,40}", registers: u32, spill_store_bytes: u32, spill_load_bytes: u32, shared_bytes: u32,
    ) -> KernelResources {
        KernelResources { name, registers, spill_store_bytes, spill_load_bytes, shared_bytes }
    }
}

prop_compose! {
    fn any_image()(cubin in prop::collection::vec(any::<u8>(), 0..300), ptx in ".{0,100}") -> Image {
        Image { cubin, ptx }
    }
}

prop_compose! {
    fn any_artifact()(
        images in prop::collection::vec(any_image(), 0..4),
        log in ".{0,100}",
        kernels in prop::collection::vec(any_kernel(), 0..4),
    ) -> Artifact {
        Artifact { images, log, kernels }
    }
}

prop_compose! {
    fn any_request()(
        source in ".{0,100}",
        options in prop::collection::vec(".{0,20}", 0..5),
        arch in ".{0,8}",
        nvrtc_version: (u32, u32),
        nvrtc_bytes: u64,
        driver_version: Option<(u32, u32)>,
    ) -> CompileRequest {
        CompileRequest { source, options, arch, nvrtc_version, nvrtc_bytes, driver_version }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn anything_comes_back_as_it_was(request in any_request(), artifact in any_artifact()) {
        let fixture = Fixture::new();
        let cache = fixture.cache();
        prop_assert!(cache.put(&request, &artifact));
        prop_assert_eq!(cache.get(&request), Lookup::Hit(artifact.clone()));
        let entries = cache.entries().unwrap();
        prop_assert_eq!(entries.len(), 1);
        prop_assert_eq!(&entries[0].kernels, &artifact.kernels);
        prop_assert_eq!(&entries[0].arch, &request.arch);
        prop_assert_eq!(cache.verify().unwrap().ok, 1);
    }

    /// With the checksum made right again, the decoder itself is on trial.
    #[test]
    fn any_payload_gives_the_artifact_or_nothing(
        artifact in any_artifact(),
        garbage in prop::collection::vec(any::<u8>(), 0..64),
        at: prop::sample::Index,
        keep: prop::sample::Index,
    ) {
        let fixture = Fixture::new();
        let cache = fixture.cache();
        cache.put(&request(1), &artifact);
        let mut bytes = fs::read(fixture.entry(&request(1))).unwrap();
        let at = 44 + at.index(bytes.len() - 44);
        let end = (at + garbage.len()).min(bytes.len());
        bytes.splice(at..end, garbage);
        bytes.truncate(44 + keep.index(2 * (bytes.len() - 44)));
        let checksum = blake3::hash(&bytes[44..]);
        bytes[12..44].copy_from_slice(checksum.as_bytes());
        fixture.plant(&request(1), &bytes);
        match cache.get(&request(1)) {
            // A forged checksum can carry another artifact; it cannot carry another request.
            Lookup::Hit(found) => {
                cache.put(&request(1), &found);
                prop_assert_eq!(fs::read(fixture.entry(&request(1))).unwrap(), bytes);
            }
            Lookup::Discarded { reason } => {
                prop_assert!(matches!(reason, Damage::Malformed | Damage::OtherRequest), "{}", reason);
            }
            Lookup::Miss => prop_assert!(false, "a miss"),
        }
        cache.verify().unwrap();
        cache.entries().unwrap();
    }
}
