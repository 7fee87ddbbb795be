//! Looking after the folder: eviction, and what the `spmv cache` command does.

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use super::entry::{self, Damage};
use super::folder::{Folder, Listed, ReadError};
use super::key::Key;
use super::problem::CacheProblem;
use super::{DiskCache, MAX_ENTRY_BYTES, TEMPORARY_PREFIX};
use crate::artifact::KernelResources;

/// Its length counts the blocks that all processes wrote since the folder was last listed.
const WRITTEN: &str = ".written";

const BLOCK_BYTES: u64 = 4096;

/// A temporary file older than this belongs to a process that was killed.
const TEMPORARY_EXPIRES: Duration = Duration::from_secs(3600);

/// One entry, as a list shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EntryInfo {
    /// Its name.
    pub key: Key,
    /// Its file.
    pub path: PathBuf,
    /// The file's length.
    pub bytes: u64,
    /// The last hit, to the minute, or when it was stored.
    pub last_used: SystemTime,
    /// The architecture it was compiled for.
    pub arch: String,
    /// The compiler's version as (major, minor).
    pub nvrtc_version: (u32, u32),
    /// The first line of its source that is not empty.
    pub title: String,
    /// Its kernels.
    pub kernels: Vec<KernelResources>,
}

/// What [`DiskCache::verify`] found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct VerifyReport {
    /// Entries and notes that are whole.
    pub ok: usize,
    /// Bytes of those.
    pub bytes: u64,
    /// Files that were not, and were deleted.
    pub damaged: Vec<(PathBuf, Damage)>,
}

/// What [`DiskCache::gc`] or [`DiskCache::clear`] deleted and left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SweepReport {
    /// Entries and notes deleted.
    pub removed_entries: usize,
    /// Leftovers of killed processes deleted.
    pub removed_temporaries: usize,
    /// Bytes of both.
    pub removed_bytes: u64,
    /// Entries and notes left.
    pub kept_entries: usize,
    /// Bytes left, those of files being written included.
    pub kept_bytes: u64,
}

impl DiskCache {
    /// All whole entries, the most recently used first.
    pub fn entries(&self) -> Result<Vec<EntryInfo>, CacheProblem> {
        let mut entries = Vec::new();
        self.inspect(|path, listed, key, content| {
            let Ok((request, artifact)) = content else { return false };
            entries.push(EntryInfo {
                key,
                path,
                bytes: listed.bytes,
                last_used: listed.modified,
                arch: request.arch,
                nvrtc_version: request.nvrtc_version,
                title: request.source.lines().map(str::trim).find(|l| !l.is_empty()).unwrap_or("").to_owned(),
                kernels: artifact.kernels,
            });
            false
        })?;
        entries.sort_by(|a, b| b.last_used.cmp(&a.last_used).then(a.key.cmp(&b.key)));
        Ok(entries)
    }

    /// Reads every entry and every note in full and deletes those that are damaged.
    pub fn verify(&self) -> Result<VerifyReport, CacheProblem> {
        let mut report = VerifyReport::default();
        self.verify_notes(&mut report)?;
        self.inspect(|path, listed, _, content| match content {
            Ok(_) => {
                report.ok += 1;
                report.bytes += listed.bytes;
                false
            }
            // Another version's, which shares the folder.
            Err(Damage::OtherFormat { .. }) => false,
            Err(damage) => {
                report.damaged.push((path, damage));
                true
            }
        })?;
        Ok(report)
    }

    fn verify_notes(&self, report: &mut VerifyReport) -> Result<(), CacheProblem> {
        let Some(folder) = self.folder() else { return Ok(()) };
        let problem = |action, source| CacheProblem::io(action, folder.path(), source);
        let listed = folder.list(|name| Key::from_note_name(name).is_some());
        for listed in listed.map_err(|source| problem("list", source))? {
            let read = match folder.read(&listed.name, MAX_ENTRY_BYTES) {
                Ok(Some(found)) => entry::decode_note(&found.bytes).and_then(|(question, _)| {
                    let named = Key::of_question(&question).note_name() == listed.name;
                    if named { Ok(()) } else { Err(Damage::OtherRequest) }
                }),
                Ok(None) => continue,
                Err(ReadError::Damaged(damage)) => Err(damage),
                Err(ReadError::Io(source)) => return Err(problem("read from", source)),
            };
            match read {
                Ok(()) => {
                    report.ok += 1;
                    report.bytes += listed.bytes;
                }
                // Another version's, which shares the folder.
                Err(Damage::OtherFormat { .. }) => {}
                Err(damage) => {
                    folder.remove(&listed.name).map_err(|source| problem("delete from", source))?;
                    report.damaged.push((folder.path().join(&listed.name), damage));
                }
            }
        }
        Ok(())
    }

    /// Deletes leftovers of killed processes that are an hour old, then the least recently used entries until
    /// the folder holds at most `max_bytes`.
    pub fn gc(&self, max_bytes: u64) -> Result<SweepReport, CacheProblem> {
        self.sweep(|folder| sweep(folder, max_bytes, TEMPORARY_EXPIRES))
    }

    /// Deletes all entries and all leftovers. Other files in the folder stay.
    pub fn clear(&self) -> Result<SweepReport, CacheProblem> {
        self.sweep(|folder| {
            let report = sweep(folder, 0, Duration::ZERO)?;
            folder.remove(WRITTEN)?;
            Ok(report)
        })
    }

    fn sweep(&self, sweep: impl Fn(&Folder) -> io::Result<SweepReport>) -> Result<SweepReport, CacheProblem> {
        let Some(folder) = self.folder() else { return Ok(SweepReport::default()) };
        sweep(&folder).map_err(|source| CacheProblem::io("delete from", folder.path(), source))
    }

    /// Shows every entry's content to `visit`, which says whether to delete it.
    fn inspect(
        &self,
        mut visit: impl FnMut(PathBuf, &Listed, Key, Result<entry::Content, Damage>) -> bool,
    ) -> Result<(), CacheProblem> {
        let Some(folder) = self.folder() else { return Ok(()) };
        let problem = |action| move |path: &_, source| CacheProblem::io(action, path, source);
        let listed = folder.list(|name| Key::from_file_name(name).is_some());
        for listed in listed.map_err(|source| problem("list")(folder.path(), source))? {
            let Some(key) = Key::from_file_name(&listed.name) else { continue };
            let content = match folder.read(&listed.name, MAX_ENTRY_BYTES) {
                Ok(Some(found)) => entry::decode(&found.bytes).and_then(|content| {
                    if Key::of(&content.0) == key { Ok(content) } else { Err(Damage::OtherRequest) }
                }),
                // Another process deleted it just now.
                Ok(None) => continue,
                Err(ReadError::Damaged(damage)) => Err(damage),
                Err(ReadError::Io(source)) => return Err(problem("read from")(folder.path(), source)),
            };
            if visit(folder.path().join(&listed.name), &listed, key, content) {
                folder
                    .remove(&listed.name)
                    .map_err(|source| problem("delete from")(folder.path(), source))?;
            }
        }
        Ok(())
    }
}

/// What is left in the folder after an eviction; the rest of the cap is what all processes together may write
/// before the next one.
pub(super) fn low_water(max_bytes: u64) -> u64 {
    max_bytes - max_bytes / 16
}

/// Called before every put. Failures are not told here: if the folder is unusable, the put is about to say so.
pub(super) fn make_room(folder: &Folder, bytes: u64, max_bytes: u64) {
    if count(folder, bytes, max_bytes).unwrap_or(true) {
        let _ = sweep(folder, low_water(max_bytes) - bytes, TEMPORARY_EXPIRES);
    }
}

/// Counts what is about to be written, and says whether that makes an eviction due. Appending is atomic and the
/// length is all that matters, so this needs no lock and survives any kill.
fn count(folder: &Folder, bytes: u64, max_bytes: u64) -> io::Result<bool> {
    let mut file = folder.append(WRITTEN)?;
    let blocks = bytes.div_ceil(BLOCK_BYTES);
    file.write_all(&vec![0; blocks as usize])?;
    let due = file.metadata()?.len() >= (max_bytes / 16 / BLOCK_BYTES).max(1);
    if due {
        // Before the folder is listed: what is counted from now on may be missing in the list.
        file.set_len(0)?;
    }
    Ok(due)
}

/// Whether a file is an entry or a note.
fn is_ours(name: &str) -> bool {
    Key::from_file_name(name).or_else(|| Key::from_note_name(name)).is_some()
}

fn sweep(folder: &Folder, max_bytes: u64, expires: Duration) -> io::Result<SweepReport> {
    let now = SystemTime::now();
    let mut report = SweepReport::default();
    let listed = folder.list(|name| name.starts_with(TEMPORARY_PREFIX) || is_ours(name))?;
    let (temporaries, mut entries): (Vec<_>, Vec<_>) =
        listed.into_iter().partition(|listed| listed.name.starts_with(TEMPORARY_PREFIX));
    // One file that cannot be deleted does not protect the others.
    let mut refused = None;
    let mut remove = |name: &str| folder.remove(name).map_err(|error| refused.get_or_insert(error)).is_ok();
    for temporary in temporaries {
        let expired =
            expires.is_zero() || now.duration_since(temporary.modified).is_ok_and(|age| age >= expires);
        if expired && remove(&temporary.name) {
            report.removed_temporaries += 1;
            report.removed_bytes += temporary.bytes;
        } else {
            report.kept_bytes = report.kept_bytes.saturating_add(temporary.bytes);
        }
    }
    report.kept_bytes = entries.iter().fold(report.kept_bytes, |sum, entry| sum.saturating_add(entry.bytes));
    report.kept_entries = entries.len();
    entries.sort_by(|a, b| a.modified.cmp(&b.modified).then_with(|| a.name.cmp(&b.name)));
    let clear = max_bytes == 0;
    for entry in entries {
        if report.kept_bytes <= max_bytes && !clear {
            break;
        }
        if remove(&entry.name) {
            report.removed_entries += 1;
            report.removed_bytes += entry.bytes;
            report.kept_entries -= 1;
            report.kept_bytes -= entry.bytes;
        }
    }
    refused.map_or(Ok(report), Err)
}
