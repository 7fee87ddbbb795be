//! Files that commands read and write; `-` is standard input or output.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use clap::builder::{PathBufValueParser, TypedValueParser};
use spmv_runtime::matrix::replace::{end_of_links, replace_file};

use crate::failure::{Failure, Kind};

const STDIN: &str = "/dev/stdin";
const STDOUT: &str = "/dev/stdout";

/// A file to read as it is named on the command line.
pub fn input() -> impl TypedValueParser<Value = PathBuf> {
    named(STDIN)
}

/// A file to write as it is named on the command line.
pub fn output() -> impl TypedValueParser<Value = PathBuf> {
    named(STDOUT)
}

/// A path of any bytes, where `-` is a stream.
fn named(stream: &'static str) -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new()
        .map(move |path| if path == Path::new("-") { PathBuf::from(stream) } else { path })
}

/// Whether a file to read is standard input, which can be read once.
pub fn is_stdin(path: &Path) -> bool {
    path == Path::new(STDIN)
}

/// Whether a file to write is standard output, where nothing else may go then.
pub fn is_stdout(path: &Path) -> bool {
    [STDOUT, "/dev/fd/1", "/proc/self/fd/1"].map(Path::new).contains(&path)
}

/// Writes a file as a whole: whoever interrupts this leaves what was there before. Pipes and devices are written
/// to as they are.
pub fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    if is_stdout(path) {
        let mut out = io::stdout().lock();
        out.write_all(content)?;
        return out.flush();
    }
    replace_file(path, |file| file.write_all(content))
}

/// The ending of a file to write, where that is one of a packed or binary format, and not of these.
pub fn other_packing(path: &Path, written: &[&str]) -> Option<String> {
    const PACKED: [&str; 8] = ["gz", "xz", "zst", "bz2", "lz4", "zip", "npz", "npy"];
    let ending = path.extension()?.to_str()?.to_ascii_lowercase();
    (PACKED.contains(&&*ending) && !written.contains(&&*ending)).then_some(ending)
}

/// Makes the folder of a file that is to be written later, and says whether it can be written then.
pub fn prepare(path: &Path) -> io::Result<()> {
    check(path, prepare_folder)
}

/// Whether a file can be written, as far as it is known before.
pub fn check_writable(path: &Path) -> io::Result<()> {
    check(path, |folder| tempfile::tempfile_in(folder).map(drop))
}

/// Refuses an option's file that is one of those that are read, which it would replace.
pub fn refuse_inputs<'p>(
    option: &str,
    output: &Path,
    inputs: impl IntoIterator<Item = &'p PathBuf>,
) -> Result<(), Failure> {
    match inputs.into_iter().find(|input| is_same_file(input, output)) {
        Some(input) => {
            let message =
                format!("{option} {} would replace {}, which is read", output.display(), input.display());
            Err(Failure::new(Kind::Usage, message).help("name another file to write"))
        }
        None => Ok(()),
    }
}

fn is_same_file(a: &Path, b: &Path) -> bool {
    match (fs::metadata(a), fs::metadata(b)) {
        (Ok(a), Ok(b)) => a.is_file() && (a.dev(), a.ino()) == (b.dev(), b.ino()),
        _ => false,
    }
}

/// Whether a path is that of a file to write, and what there is to say of its folder.
fn check(path: &Path, of_folder: impl Fn(&Path) -> io::Result<()>) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(data) if data.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        Ok(data) if !data.is_file() => Ok(()),
        // A file is replaced by another one beside it, by whoever may write it.
        existing => {
            if existing.is_ok() {
                fs::File::options().write(true).open(path)?;
            }
            let end = end_of_links(path);
            of_folder(end.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new(".")))
        }
    }
}

/// Makes a folder, and says whether files can be written there.
pub fn prepare_folder(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder).map_err(|error| match folder.exists() && !folder.is_dir() {
        true => io::ErrorKind::NotADirectory.into(),
        false => error,
    })?;
    tempfile::tempfile_in(folder).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dash_is_a_standard_stream() {
        fn read(parser: impl TypedValueParser<Value = PathBuf>, name: &str) -> PathBuf {
            parser.parse_ref(&clap::Command::new("spmv"), None, name.as_ref()).unwrap()
        }
        assert!(is_stdin(&read(input(), "-")) && !is_stdin(&read(input(), "-.mtx")));
        assert!(is_stdout(&read(output(), "-")) && !is_stdout(&read(output(), "y.mtx")));
    }

    #[test]
    fn files_are_replaced_as_a_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("y.mtx");
        write(&path, b"long content").unwrap();
        write(&path, b"short").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"short");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        assert!(write(&folder.path().join("missing/y.mtx"), b"").is_err());
    }

    #[test]
    fn links_stay_links_and_permissions_what_they_were() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = tempfile::tempdir().unwrap();
        let [path, link] = ["y.mtx", "link.mtx"].map(|name| folder.path().join(name));
        write(&path, b"old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        symlink(&path, &link).unwrap();
        write(&link, b"new").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        fs::remove_file(&path).unwrap();
        symlink("y.mtx", folder.path().join("to_nothing.mtx")).unwrap();
        symlink("to_nothing.mtx", folder.path().join("to_a_link.mtx")).unwrap();
        write(&folder.path().join("to_a_link.mtx"), b"made").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"made");
    }

    #[test]
    fn what_is_read_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let [a, b, link, new] =
            ["a.mtx", "b.mtx", "link.mtx", "new.mtx"].map(|name| folder.path().join(name));
        write(&a, b"a").unwrap();
        write(&b, b"b").unwrap();
        std::os::unix::fs::symlink(&a, &link).unwrap();
        let inputs = [b.clone(), a.clone()];
        for same in
            [&a, &b, &link, &folder.path().join("../").join(folder.path().file_name().unwrap()).join("a.mtx")]
        {
            let refused = refuse_inputs("-o", same, &inputs).unwrap_err();
            assert_eq!(refused.kind(), Kind::Usage, "{}", same.display());
        }
        refuse_inputs("-o", &new, &inputs).unwrap();
        refuse_inputs("-o", Path::new("/dev/null"), &[PathBuf::from("/dev/null")]).unwrap();
    }

    #[test]
    fn what_cannot_be_written_is_known_before() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("new/y.mtx");
        assert_eq!(check_writable(&file).unwrap_err().kind(), io::ErrorKind::NotFound);
        prepare(&file).unwrap();
        check_writable(&file).unwrap();
        write(&file, b"content").unwrap();
        prepare(&file).unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"content");
        assert_eq!(prepare(folder.path()).unwrap_err().kind(), io::ErrorKind::IsADirectory);
        assert_eq!(prepare_folder(&file).unwrap_err().kind(), io::ErrorKind::NotADirectory);
        assert!(prepare(&file.join("y.mtx")).is_err());
        assert_eq!(fs::read_dir(file.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn pipes_are_written_to_as_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || fs::read(pipe).unwrap()
        });
        write(&pipe, b"content").unwrap();
        assert!(!fs::metadata(pipe).unwrap().is_file(), "the pipe is still there");
        assert_eq!(reader.join().unwrap(), b"content");
    }
}
