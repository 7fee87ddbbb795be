//! Many processes on one folder, and processes killed in the middle of it.
#![cfg(unix)]

mod cache_support;

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime};

use cache_support::{Fixture, child, is_child, request, sized_artifact};
use spmv_runtime::cache::{DiskCache, Lookup};
use spmv_runtime::{Artifact, CompileRequest};

const PROCESSES: usize = 16;
const KEYS: usize = 24;

/// As if compilers differed: every writer's artifact has its own length and content, so a mixture of two shows.
fn artifact_of(key: usize, writer: usize) -> Artifact {
    let tag = key * 1000 + writer;
    sized_artifact(tag, 20_000 + 64 * writer)
}

#[track_caller]
fn assert_whole(key: usize, found: &Artifact) {
    let tag = found.kernels[0].registers as usize;
    assert_eq!(tag / 1000, key);
    assert!(*found == artifact_of(key, tag % 1000), "a torn artifact of key {key}");
}

fn pseudo_random(state: &mut u64) -> usize {
    *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    (*state >> 33) as usize
}

/// Runs in child processes: waits for the start, then uses all keys in its own order.
#[test]
fn one_of_many() {
    if !is_child("one_of_many") {
        return;
    }
    let writer: usize = std::env::var("WRITER").unwrap().parse().unwrap();
    println!("\nready");
    std::io::stdin().read_exact(&mut [0]).unwrap();
    let cache = DiskCache::from_env();
    let mut state = writer as u64 + 1;
    for _ in 0..8 * KEYS {
        let key = pseudo_random(&mut state) % KEYS;
        match cache.get(&request(key)) {
            Lookup::Hit(found) if !pseudo_random(&mut state).is_multiple_of(4) => assert_whole(key, &found),
            // Now and then one is stored again, and now and then deleted.
            Lookup::Hit(_) | Lookup::Miss => assert!(cache.put(&request(key), &artifact_of(key, writer))),
            Lookup::Discarded { reason } => panic!("key {key}: {reason}"),
        }
        if pseudo_random(&mut state).is_multiple_of(64) {
            cache.remove(&request(key));
        }
    }
    let status = cache.status();
    assert!(status.problem.is_none(), "{:?}", status.problem);
}

fn run_many(fixture: &Fixture, max_bytes: u64) {
    let mut children: Vec<Child> = (0..PROCESSES)
        .map(|writer| {
            let mut command = child("one_of_many");
            command.env("SPMV_CACHE_DIR", fixture.folder()).env("WRITER", writer.to_string());
            command.env("SPMV_CACHE_MAX_BYTES", max_bytes.to_string());
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    for child in &mut children {
        let lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
        assert!(lines.map_while(Result::ok).any(|line| line == "ready"));
    }
    assert!(!fixture.folder().exists(), "the start is cold");
    for child in &mut children {
        child.stdin.take().unwrap().write_all(b"!").unwrap();
    }
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    assert!(fixture.leftovers().is_empty());
    let report = fixture.cache().verify().unwrap();
    assert!(report.damaged.is_empty(), "{:?}", report.damaged);
}

#[test]
fn sixteen_processes_cold_on_one_cache() {
    let fixture = Fixture::new();
    run_many(&fixture, 64 << 20);
    let cache = fixture.cache();
    let mut hits = 0;
    for key in 0..KEYS {
        if let Lookup::Hit(found) = cache.get(&request(key)) {
            assert_whole(key, &found);
            hits += 1;
        }
    }
    assert!(hits > KEYS / 2, "{hits}");
}

#[test]
fn the_cap_holds_with_sixteen_processes() {
    let fixture = Fixture::new();
    let max_bytes = 200_000;
    run_many(&fixture, max_bytes);
    let one = 22_000;
    // Each process may have been writing its last entry while another one evicted.
    assert!(fixture.entry_bytes() <= max_bytes + PROCESSES as u64 * one, "{}", fixture.entry_bytes());
    let cache = DiskCache::open(&fixture.location().max_bytes(max_bytes));
    assert!(cache.put(&request(0), &artifact_of(0, 0)));
    assert!(fixture.entry_bytes() <= max_bytes, "{}", fixture.entry_bytes());
}

fn large_request(n: usize) -> CompileRequest {
    request(n % 8)
}

fn large_artifact(n: usize) -> Artifact {
    sized_artifact(n, 400_000 + 1000 * (n % 50))
}

/// Runs in child processes: writes until it is killed.
#[test]
fn writes_until_killed() {
    if !is_child("writes_until_killed") {
        return;
    }
    let cache = DiskCache::from_env();
    let artifacts: Vec<Artifact> = (0..50).map(large_artifact).collect();
    println!("\nready");
    for (n, artifact) in artifacts.iter().enumerate().cycle() {
        cache.put(&large_request(n), artifact);
    }
}

#[test]
fn killed_while_writing() {
    let fixture = Fixture::new();
    let cache = fixture.cache();
    let mut state = 42;
    let (mut kills, started) = (0, Instant::now());
    while kills < 200 {
        let mut children: Vec<Child> = (0..4)
            .map(|_| {
                let mut command = child("writes_until_killed");
                command.env("SPMV_CACHE_DIR", fixture.folder());
                command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
            })
            .collect();
        for child in &mut children {
            let lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
            assert!(lines.map_while(Result::ok).any(|line| line == "ready"));
        }
        for child in &mut children {
            sleep(Duration::from_micros(pseudo_random(&mut state) as u64 % 5000));
            child.kill().unwrap();
            child.wait().unwrap();
            kills += 1;
        }
        for n in 0..8 {
            match cache.get(&large_request(n)) {
                Lookup::Hit(found) => assert!(found == large_artifact(found.kernels[0].registers as usize)),
                Lookup::Miss => {}
                Lookup::Discarded { reason } => panic!("entry {n} after {kills} kills: {reason}"),
            }
        }
    }
    let report = cache.verify().unwrap();
    assert!(report.damaged.is_empty(), "{:?}", report.damaged);
    assert_eq!(report.ok, 8);
    let leftovers = fixture.leftovers();
    println!("{kills} kills in {:?}, {} of them within a write", started.elapsed(), leftovers.len());
    assert!(!leftovers.is_empty(), "no kill met a write");

    cache.gc(u64::MAX).unwrap();
    assert_eq!(fixture.leftovers().len(), leftovers.len(), "a young one may still be written");
    for name in &leftovers {
        let file = File::options().write(true).open(fixture.folder().join(name)).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(2 * 3600)).unwrap();
    }
    assert_eq!(cache.gc(u64::MAX).unwrap().removed_temporaries, leftovers.len());
    assert!(fixture.leftovers().is_empty());
    assert_eq!(cache.verify().unwrap().ok, 8);
}
