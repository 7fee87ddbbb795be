//! Edits of the files of the cache: entries of kernels and notes of tuning. Most have a right checksum, so that what is
//! behind it is read.

use std::fs;
use std::path::PathBuf;

use spmv_codegen::{IndexType, KernelConfig, Operation, StorageFormat};
use spmv_matrix::CsrMatrix;
use spmv_runtime::cache::{CacheLocation, DiskCache, Lookup};
use spmv_runtime::tuning::{Choice, Question, Unit};
use spmv_runtime::{Artifact, CompileRequest, Constraints, Device, Fingerprint, Image, KernelResources};
use tempfile::TempDir;

use super::mutation::{Outcome, Random, edit_byte, how_many, mutate_text};

/// Where the checksum of what follows it stands in a file.
const CHECKSUM: std::ops::Range<usize> = 12..44;

const WORDS: [[u8; 8]; 8] = [
    0u64.to_le_bytes(),
    1u64.to_le_bytes(),
    8u64.to_le_bytes(),
    300u64.to_le_bytes(),
    (u32::MAX as u64).to_le_bytes(),
    (1u64 << 40).to_le_bytes(),
    i64::MAX.to_le_bytes(),
    u64::MAX.to_le_bytes(),
];

pub fn mutate(file: &[u8], random: &mut Random) -> Vec<u8> {
    let mut file = file.to_vec();
    for _ in 0..how_many(random) {
        match random.below(4) {
            0 => file = mutate_text(&file, &WORDS, random),
            1 if file.len() > 8 => {
                let at = random.below(file.len() - 8);
                file[at..at + 8].copy_from_slice(&WORDS[random.below(WORDS.len())]);
            }
            _ => edit_byte(&mut file, random),
        }
    }
    if random.below(4) > 0 && file.len() > CHECKSUM.end {
        let checksum = blake3::hash(&file[CHECKSUM.end..]);
        file[CHECKSUM].copy_from_slice(checksum.as_bytes());
    }
    file
}

pub fn choice() -> Choice {
    let a = CsrMatrix::<f64>::new(2, 2, vec![0, 1, 2], vec![0, 1], vec![1.0, 2.0]).expect("a matrix");
    let config = KernelConfig::named("csr_vector").expect("an algorithm").build().expect("its defaults");
    let question = Question::of(
        &Device::simulator(),
        Fingerprint::of(&a, IndexType::U32),
        StorageFormat::Csr,
        Operation::NonTranspose,
        config.types(),
        &Constraints::default(),
    );
    Choice { question, config, product: 1.25, prepare: 0.5, unit: Unit::Counted }
}

/// A cache with an entry and a note.
pub struct Folder {
    _root: TempDir,
    cache: DiskCache,
    request: CompileRequest,
    choice: Choice,
    entry: PathBuf,
    note: PathBuf,
}

impl Folder {
    pub fn new() -> Folder {
        let root = TempDir::new().expect("a folder");
        let cache = DiskCache::open(&CacheLocation::folder(root.path().join("cache")));
        let request = CompileRequest {
            source: "extern \"C\" __global__ void spmv() {}\n".into(),
            options: vec!["-arch=sm_90".into(), "--fmad=false".into()],
            arch: "sm_90".into(),
            nvrtc_version: (12, 8),
            nvrtc_bytes: 1 << 26,
            driver_version: Some((12, 4)),
        };
        let resources = |name: &str| KernelResources {
            name: name.into(),
            registers: 32,
            spill_store_bytes: 8,
            spill_load_bytes: 16,
            shared_bytes: 1024,
        };
        let artifact = Artifact {
            images: vec![Image { cubin: (0..40).collect(), ptx: ".version 8.0\n".into() }],
            log: "ptxas info".into(),
            kernels: vec![resources("spmv"), resources("spmv_prepare")],
        };
        let choice = choice();
        assert!(cache.put(&request, &artifact) && choice.keep(&cache));
        let files = fs::read_dir(root.path().join("cache")).expect("the folder is there");
        let files: Vec<PathBuf> = files.map(|file| file.expect("a file").path()).collect();
        let of_kind =
            |kind: &str| files.iter().find(|file| file.extension().is_some_and(|found| found == kind));
        let (entry, note) =
            (of_kind("spmv").expect("an entry").clone(), of_kind("note").expect("a note").clone());
        Folder { _root: root, cache, request, choice, entry, note }
    }

    pub fn seeds(&self) -> Vec<Vec<u8>> {
        [&self.entry, &self.note].map(|file| fs::read(file).expect("it is there")).to_vec()
    }

    /// Reads the file as the entry, or as the note where it starts like one. What is taken is what would be written.
    pub fn read(&self, file: &[u8]) -> Outcome {
        let is_note = file.starts_with(b"spmvNOTE");
        let path = if is_note { &self.note } else { &self.entry };
        fs::write(path, file).expect("the folder can be written");
        let refused = |what: &str| {
            assert!(!path.exists(), "what is no {what} is deleted");
            what.to_owned()
        };
        if is_note {
            match self.choice.question.choice(&self.cache) {
                Some(choice) => {
                    assert_eq!(choice.question, self.choice.question);
                    Outcome::Taken
                }
                // A whole note that names no kernel stays.
                None if path.exists() => Outcome::Refused("an answer that is none".into()),
                None => Outcome::Refused(refused("note")),
            }
        } else {
            match self.cache.get(&self.request) {
                Lookup::Hit(artifact) => {
                    assert!(self.cache.put(&self.request, &artifact));
                    assert!(fs::read(path).is_ok_and(|written| written == file), "an entry has one text");
                    Outcome::Taken
                }
                Lookup::Discarded { reason } => {
                    refused("entry");
                    Outcome::Refused(reason.to_string())
                }
                Lookup::Miss => panic!("the file is there"),
            }
        }
    }
}
