//! What is wrong with the folder costs the disk cache and one warning, never the right answer.
#![cfg(unix)]

mod cache_support;

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use cache_support::{Fixture, artifact, child, child_args, is_child, request, sized_artifact};
use spmv_runtime::cache::{CacheLocation, DEFAULT_MAX_BYTES, DiskCache, Lookup};

const NOBODY: u32 = 65534;

/// What a process with this environment saw.
#[derive(Debug)]
struct Seen {
    folder: Option<String>,
    problem: String,
    stored: usize,
    hits: usize,
    warnings: Vec<String>,
}

impl Seen {
    fn of(mut command: Command) -> Seen {
        let output = command.output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
        let all = |name: &str| {
            let lines = text.lines().filter_map(|line| line.strip_prefix(name));
            lines.map(|line| line.trim().to_owned()).collect::<Vec<_>>()
        };
        let one = |name| all(name).pop().unwrap_or_else(|| panic!("no line {name} in {text}"));
        Seen {
            folder: Some(one("folder:")).filter(|folder| !folder.is_empty()),
            problem: one("problem:"),
            stored: one("stored:").parse().unwrap(),
            hits: one("hits:").parse().unwrap(),
            warnings: all("warning:"),
        }
    }

    fn at(folder: impl AsRef<Path>) -> Seen {
        let mut command = child("uses_the_cache");
        command.env("SPMV_CACHE_DIR", folder.as_ref());
        Seen::of(command)
    }

    #[track_caller]
    fn assert_works(&self) {
        assert_eq!((self.stored, self.hits), (KERNELS, KERNELS), "{self:?}");
        assert!(self.warnings.is_empty() && self.problem.is_empty(), "{self:?}");
    }

    /// No disk cache, and one warning that says which folder, why, and what to do.
    #[track_caller]
    fn assert_memory_only(&self, words: &[&str]) {
        assert_eq!((self.stored, self.hits), (0, 0), "{self:?}");
        assert_eq!(self.folder, None);
        self.assert_warned_once(words);
    }

    #[track_caller]
    fn assert_warned_once(&self, words: &[&str]) {
        assert_eq!(self.warnings.len(), 1, "{self:?}");
        for word in words {
            assert!(self.problem.contains(word), "{word:?} is not in {self:?}");
            assert!(self.warnings[0].contains(word), "{word:?} is not in {self:?}");
        }
    }
}

const KERNELS: usize = 4;

/// Runs in child processes: what every user of the cache does, twice over.
#[test]
fn uses_the_cache() {
    if !is_child("uses_the_cache") {
        return;
    }
    let cache = DiskCache::from_env();
    // A second one in the same process does not warn again.
    drop(DiskCache::from_env());
    let fault = std::env::var("FAULT").unwrap_or_default();
    if fault == "no descriptors" {
        use rustix::process::{Resource, Rlimit, setrlimit};
        setrlimit(Resource::Nofile, Rlimit { current: Some(3), maximum: Some(3) }).unwrap();
    }
    let (mut stored, mut hits) = (0, 0);
    for n in 0..KERNELS {
        let artifact = sized_artifact(n, 30_000);
        if fault != "only read" {
            stored += usize::from(cache.put(&request(n), &artifact));
        }
        match cache.get(&request(n)) {
            Lookup::Hit(found) => {
                assert_eq!(found, artifact);
                hits += 1;
            }
            Lookup::Miss => {}
            Lookup::Discarded { reason } => panic!("{reason}"),
        }
    }
    let status = cache.status();
    println!("\nfolder: {}", status.folder.as_ref().map_or(String::new(), |f| f.display().to_string()));
    println!("problem: {}", status.problem.map_or(String::new(), |p| p.to_string()));
    println!("stored: {stored}\nhits: {hits}");
    for entry in status.folder.into_iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten()
    {
        let name = entry.file_name().into_string().unwrap_or_default();
        assert!(!name.starts_with(".writing"), "{name} was left behind");
    }
}

#[test]
fn the_environment_names_the_folder() {
    let fixture = Fixture::new();
    let [own, xdg, home] = ["own", "xdg", "home"].map(|name| fixture.root().join(name));
    let mut command = child("uses_the_cache");
    command.env("HOME", &home);
    let seen = Seen::of(command);
    seen.assert_works();
    assert_eq!(seen.folder.as_deref(), home.join(".cache/spmv").to_str());
    let mode = |path: &str| fs::metadata(home.join(path)).unwrap().permissions().mode() & 0o7777;
    assert_eq!((mode(".cache"), mode(".cache/spmv")), (0o700, 0o700));

    let mut command = child("uses_the_cache");
    command.env("HOME", &home).env("XDG_CACHE_HOME", &xdg);
    let seen = Seen::of(command);
    seen.assert_works();
    assert_eq!(seen.folder.as_deref(), xdg.join("spmv").to_str());

    let mut command = child("uses_the_cache");
    command.env("HOME", &home).env("XDG_CACHE_HOME", &xdg).env("SPMV_CACHE_DIR", &own);
    let seen = Seen::of(command);
    seen.assert_works();
    assert_eq!(seen.folder.as_deref(), own.to_str());

    // The specification has relative paths ignored.
    let mut command = child("uses_the_cache");
    command.env("HOME", &home).env("XDG_CACHE_HOME", "relative");
    assert_eq!(Seen::of(command).folder.as_deref(), home.join(".cache/spmv").to_str());

    let mut command = child("uses_the_cache");
    command.env("SPMV_CACHE_DIR", "relative").current_dir(fixture.root());
    let seen = Seen::of(command);
    seen.assert_works();
    assert_eq!(seen.folder.as_deref(), fixture.root().join("relative").to_str());
}

#[test]
fn it_can_be_turned_off() {
    let fixture = Fixture::new();
    for value in ["", "off"] {
        let mut command = child("uses_the_cache");
        command.env("SPMV_CACHE_DIR", value).env("HOME", fixture.root()).current_dir(fixture.root());
        let seen = Seen::of(command);
        assert_eq!((seen.stored, seen.hits, seen.folder.as_deref()), (0, 0, None));
        assert!(seen.warnings.is_empty() && seen.problem.is_empty(), "{seen:?}");
    }
    assert_eq!(fs::read_dir(fixture.root()).unwrap().count(), 0);
}

#[test]
fn no_home() {
    Seen::of(child("uses_the_cache")).assert_memory_only(&["SPMV_CACHE_DIR", "XDG_CACHE_HOME", "HOME"]);
    let mut command = child("uses_the_cache");
    command.env("HOME", "").env("XDG_CACHE_HOME", "");
    Seen::of(command).assert_memory_only(&["HOME"]);
}

#[test]
fn a_size_that_is_none() {
    let fixture = Fixture::new();
    for value in ["lots", "", "-1", "1T", "K", "99999999999999999999", "18446744073709551615G"] {
        let mut command = child("uses_the_cache");
        command.env("SPMV_CACHE_DIR", fixture.folder()).env("SPMV_CACHE_MAX_BYTES", value);
        let seen = Seen::of(command);
        assert_eq!((seen.stored, seen.hits), (KERNELS, KERNELS));
        seen.assert_warned_once(&["SPMV_CACHE_MAX_BYTES", value, "512M"]);
    }
    for (value, bytes) in [("0", 0), ("1000", 1000), ("3k", 3 << 10), ("5M", 5 << 20), ("2G", 2 << 30)] {
        let location = CacheLocation::from_variables(|name| match name {
            "SPMV_CACHE_DIR" => Some(fixture.folder().into()),
            "SPMV_CACHE_MAX_BYTES" => Some(value.into()),
            _ => None,
        });
        assert_eq!(DiskCache::open(&location).status().max_bytes, bytes);
    }
    assert_eq!(fixture.cache().status().max_bytes, DEFAULT_MAX_BYTES);
}

#[test]
fn a_link_is_refused() {
    let fixture = Fixture::new();
    let target = fixture.root().join("target");
    fs::create_dir(&target).unwrap();
    fs::set_permissions(&target, fs::Permissions::from_mode(0o700)).unwrap();
    let link = fixture.folder();
    symlink(&target, &link).unwrap();
    for end in ["", "/", "/.", "//"] {
        let mut path = link.clone().into_os_string();
        path.push(end);
        Seen::at(path).assert_memory_only(&[link.to_str().unwrap(), "symbolic link", "SPMV_CACHE_DIR"]);
    }
    assert_eq!(fs::read_dir(&target).unwrap().count(), 0);
    // A link on the way is the user's choice.
    Seen::at(link.join("inside")).assert_works();
    fs::remove_file(&link).unwrap();
    symlink(fixture.root().join("nothing"), &link).unwrap();
    Seen::at(&link).assert_memory_only(&["symbolic link"]);
}

#[test]
fn a_folder_that_others_may_write_is_refused() {
    let fixture = Fixture::new();
    fs::create_dir(fixture.folder()).unwrap();
    for mode in [0o777, 0o1777, 0o770, 0o720, 0o702] {
        fs::set_permissions(fixture.folder(), fs::Permissions::from_mode(mode)).unwrap();
        let folder = fixture.folder();
        Seen::at(&folder).assert_memory_only(&[
            folder.to_str().unwrap(),
            &format!("{mode:04o}"),
            "chmod go-w",
        ]);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
    }
    // Others may look: the entries themselves are private.
    fs::set_permissions(fixture.folder(), fs::Permissions::from_mode(0o755)).unwrap();
    Seen::at(fixture.folder()).assert_works();
}

#[test]
fn the_shared_temporary_folder_is_refused() {
    let shared = Path::new("/tmp");
    if !fs::metadata(shared).is_ok_and(|metadata| metadata.permissions().mode() & 0o002 != 0) {
        println!("SKIPPED (/tmp is not shared): the_shared_temporary_folder_is_refused");
        return;
    }
    Seen::at(shared).assert_memory_only(&["/tmp"]);
}

#[test]
fn a_folder_of_another_user_is_refused() {
    // Root's folder for everyone else, nobody's folder for root.
    let fixture = Fixture::new();
    let folder = fixture.folder();
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    if rustix::process::geteuid().is_root() {
        chown(&folder, Some(NOBODY), None).unwrap();
        let words = [folder.to_str().unwrap(), "belongs to user 65534", "runs as user 0", "SPMV_CACHE_DIR"];
        Seen::at(&folder).assert_memory_only(&words);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
    } else {
        Seen::at("/").assert_memory_only(&["belongs to user 0"]);
    }
}

#[test]
fn a_read_only_folder_still_serves() {
    let fixture = Fixture::new();
    Seen::at(fixture.folder()).assert_works();
    let root = rustix::process::geteuid().is_root();
    let command = |fault| {
        let mut command = child("uses_the_cache");
        command.env("SPMV_CACHE_DIR", fixture.folder()).env("FAULT", fault);
        if root {
            command.uid(NOBODY);
        }
        command
    };
    if root {
        // Permissions do not bind root, so somebody else has to try.
        for path in fs::read_dir(fixture.folder()).unwrap().map(|entry| entry.unwrap().path()) {
            chown(path, Some(NOBODY), None).unwrap();
        }
        chown(fixture.folder(), Some(NOBODY), None).unwrap();
        fs::set_permissions(fixture.root(), fs::Permissions::from_mode(0o755)).unwrap();
        let mut probe = Command::new(std::env::current_exe().unwrap());
        if !probe.arg("--list").uid(NOBODY).output().is_ok_and(|output| output.status.success()) {
            println!("SKIPPED (another user cannot run this program): a_read_only_folder_still_serves");
            return;
        }
    }
    fs::set_permissions(fixture.folder(), fs::Permissions::from_mode(0o500)).unwrap();
    // Told when it is opened, not when the first kernel is lost.
    for fault in ["only read", ""] {
        let seen = Seen::of(command(fault));
        assert_eq!((seen.stored, seen.hits), (0, KERNELS), "{seen:?}");
        seen.assert_warned_once(&[
            "write to",
            fixture.folder().to_str().unwrap(),
            "ermission",
            "SPMV_CACHE_DIR",
        ]);
    }
}

#[test]
fn a_folder_that_cannot_be() {
    let fixture = Fixture::new();
    let file = fixture.root().join("file");
    fs::write(&file, "in the way").unwrap();
    Seen::at(&file).assert_memory_only(&[file.to_str().unwrap(), "not a folder"]);
    Seen::at(file.join("below")).assert_memory_only(&["below", "not a folder"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), "in the way");
    Seen::at(fixture.root().join("x".repeat(300))).assert_memory_only(&["File name too long"]);
    if cfg!(target_os = "linux") {
        // Refuses new files and new folders, of root too.
        Seen::at("/proc/spmv").assert_memory_only(&["make", "/proc/spmv"]);
    }
}

#[test]
fn a_folder_that_takes_no_files() {
    if !cfg!(target_os = "linux") {
        return;
    }
    // The folder of this process in /proc is its user's, is open to him alone, and holds no files of ours.
    let folder = format!("/proc/{}", std::process::id());
    let seen = Seen::at(&folder);
    assert_eq!((seen.stored, seen.hits), (0, 0));
    seen.assert_warned_once(&["write to", &folder]);
}

#[test]
fn a_full_disk_by_limit() {
    let fixture = Fixture::new();
    let mut command = Command::new("sh");
    // In blocks of 512 or 1024 bytes: enough for the shell's own needs, not for an entry. The signal of the
    // limit is ignored, so that writing gives an error as on a full disk.
    command.args(["-c", "trap '' XFSZ; ulimit -f 8; exec \"$0\" \"$@\""]);
    command.arg(std::env::current_exe().unwrap()).args(child_args("uses_the_cache"));
    command.envs(child("uses_the_cache").get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.env("SPMV_CACHE_DIR", fixture.folder());
    let seen = Seen::of(command);
    assert_eq!((seen.stored, seen.hits), (0, 0));
    seen.assert_warned_once(&["write to", fixture.folder().to_str().unwrap(), "File too large"]);
    assert!(fixture.leftovers().is_empty());
    // The fault passes, and so do its effects.
    Seen::at(fixture.folder()).assert_works();
}

#[test]
fn a_full_disk() {
    let fixture = Fixture::new();
    fs::create_dir(fixture.folder()).unwrap();
    let mount = "mount -t tmpfs -o size=80k,mode=700 spmv \"$SPMV_CACHE_DIR\"";
    let isolated = |script: String| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "sh", "-c", &script]);
        command.arg(std::env::current_exe().unwrap()).args(child_args("uses_the_cache"));
        command.envs(child("uses_the_cache").get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.env("SPMV_CACHE_DIR", fixture.folder());
        command
    };
    if !isolated(mount.into()).output().is_ok_and(|output| output.status.success()) {
        println!("SKIPPED (no mount namespaces here): a_full_disk");
        return;
    }
    let seen = Seen::of(isolated(format!("{mount} && exec \"$0\" \"$@\"")));
    assert!(seen.stored > 0 && seen.stored < KERNELS, "{seen:?}");
    assert_eq!(seen.stored, seen.hits);
    seen.assert_warned_once(&["write to", fixture.folder().to_str().unwrap(), "No space left"]);
}

#[test]
fn an_io_error() {
    let fixture = Fixture::new();
    Seen::at(fixture.folder()).assert_works();
    let mut command = child("uses_the_cache");
    command.env("SPMV_CACHE_DIR", fixture.folder()).env("FAULT", "no descriptors");
    let seen = Seen::of(command);
    assert_eq!((seen.stored, seen.hits), (0, 0));
    seen.assert_warned_once(&[fixture.folder().to_str().unwrap(), "Too many open files"]);
    let mut command = child("uses_the_cache");
    command.env("SPMV_CACHE_DIR", fixture.folder()).env("FAULT", "only read");
    assert_eq!(Seen::of(command).hits, KERNELS, "an error while reading is no reason to delete");
}

#[test]
fn a_folder_removed_under_the_process_comes_back() {
    let fixture = Fixture::new();
    let cache = fixture.cache();
    assert!(cache.put(&request(1), &artifact(1)));
    fs::remove_dir_all(fixture.folder()).unwrap();
    assert_eq!(cache.get(&request(1)), Lookup::Miss);
    assert!(cache.entries().unwrap().is_empty());
    assert!(cache.put(&request(1), &artifact(1)));
    assert_eq!(cache.get(&request(1)), Lookup::Hit(artifact(1)));
    assert_eq!(fs::metadata(fixture.folder()).unwrap().permissions().mode() & 0o7777, 0o700);
    // What comes back is checked as at the start.
    fs::remove_dir_all(fixture.folder()).unwrap();
    symlink(fixture.root(), fixture.folder()).unwrap();
    assert!(!cache.put(&request(2), &artifact(2)));
    assert!(cache.status().problem.unwrap().to_string().contains("symbolic link"));
}

#[test]
fn a_damaged_entry_is_told_once() {
    let fixture = Fixture::new();
    Seen::at(fixture.folder()).assert_works();
    fixture.plant(&request(0), b"spoilt");
    let output = child("meets_a_damaged_entry").env("SPMV_CACHE_DIR", fixture.folder()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let warnings: Vec<_> = text.lines().filter(|line| line.starts_with("warning:")).collect();
    assert_eq!(warnings.len(), 1, "{text}");
    assert!(warnings[0].contains(fixture.entry(&request(0)).to_str().unwrap()), "{text}");
}

/// Runs in a child process.
#[test]
fn meets_a_damaged_entry() {
    if !is_child("meets_a_damaged_entry") {
        return;
    }
    let cache = DiskCache::from_env();
    assert!(matches!(cache.get(&request(0)), Lookup::Discarded { .. }));
    assert_eq!(cache.get(&request(0)), Lookup::Miss);
    assert!(matches!(cache.get(&request(1)), Lookup::Hit(_)));
    assert!(cache.put(&request(0), &artifact(0)));
    assert_eq!(cache.get(&request(0)), Lookup::Hit(artifact(0)));
    assert!(cache.status().problem.is_none());
}
