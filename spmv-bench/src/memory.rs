//! How much memory the host has left.

use std::fs;
use std::path::Path;

/// Bytes that the system could give, where it says so: what the machine has left, and the control groups of this process, as a
/// container's is one.
pub fn available() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let machine = line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)?;
    Some(left_to_groups(Path::new("/sys/fs/cgroup")).map_or(machine, |left| left.min(machine)))
}

/// The least that is left to this process's control groups (version 2, mounted here), where any has a limit.
fn left_to_groups(mounted: &Path) -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let group = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    Path::new(group).ancestors().filter_map(|group| left_to_group(&mounted.join(group))).min()
}

/// What is left to a control group: its limit less what it has, of which the system takes back copies of files.
fn left_to_group(group: &Path) -> Option<u64> {
    let number = |name: &str| fs::read_to_string(group.join(name)).ok()?.trim().parse::<u64>().ok();
    let (limit, current) = (number("memory.max")?, number("memory.current")?);
    let stat = fs::read_to_string(group.join("memory.stat")).unwrap_or_default();
    let lines = stat.lines().filter_map(|line| line.split_once(' '));
    let of_files = lines.filter(|(name, _)| ["active_file", "inactive_file"].contains(name));
    let files: u64 = of_files.filter_map(|(_, bytes)| bytes.trim().parse::<u64>().ok()).sum();
    Some(limit.saturating_sub(current.saturating_sub(files)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_with_a_limit_has_what_is_left() {
        let group = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(group.path().join(name), text).unwrap();
        assert_eq!(left_to_group(group.path()), None);
        write("memory.max", "max\n");
        write("memory.current", "700\n");
        assert_eq!(left_to_group(group.path()), None, "no limit");
        write("memory.max", "1000\n");
        assert_eq!(left_to_group(group.path()), Some(300));
        write("memory.stat", "anon 400\nfile 300\ninactive_file 250\nactive_file 50\n");
        assert_eq!(left_to_group(group.path()), Some(600));
        write("memory.current", "1700\n");
        assert_eq!(left_to_group(group.path()), Some(0));
    }
}
