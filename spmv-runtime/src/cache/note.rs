//! Small answers to questions, kept as kernels are.

use super::entry::{self, Damage};
use super::folder::ReadError;
use super::key::Key;
use super::problem::CacheProblem;
use super::{DiskCache, MAX_ENTRY_BYTES, discard};

/// A question and its answer.
type Note = (Vec<u8>, Vec<u8>);

impl DiskCache {
    /// The answer that was noted for exactly this question, if it is there and whole.
    pub(crate) fn answer(&self, question: &[u8]) -> Option<Vec<u8>> {
        let folder = self.folder()?;
        let name = Key::of_question(question).note_name();
        let read = self.read(&folder, &name).and_then(|found| {
            let Some(found) = found else { return Ok(None) };
            let (asked, answer) = entry::decode_note(&found.bytes)?;
            if asked != question {
                return Err(Damage::OtherRequest);
            }
            found.renew();
            Ok(Some(answer))
        });
        read.unwrap_or_else(|reason| {
            discard(&folder, &name, reason);
            None
        })
    }

    /// Notes an answer, and says whether it is on disk now.
    pub(crate) fn note(&self, question: &[u8], answer: &[u8]) -> bool {
        self.store(&Key::of_question(question).note_name(), &entry::encode_note(question, answer))
    }

    /// All whole notes, questions and answers, in the order of their names.
    pub(crate) fn notes(&self) -> Result<Vec<Note>, CacheProblem> {
        let Some(folder) = self.folder() else { return Ok(Vec::new()) };
        let problem = |action, source| CacheProblem::io(action, folder.path(), source);
        let mut listed = folder
            .list(|name| Key::from_note_name(name).is_some())
            .map_err(|source| problem("list", source))?;
        listed.sort_by(|a, b| a.name.cmp(&b.name));
        let mut notes = Vec::with_capacity(listed.len());
        for listed in listed {
            match folder.read(&listed.name, MAX_ENTRY_BYTES) {
                Ok(Some(found)) => {
                    let note = entry::decode_note(&found.bytes).ok();
                    notes.extend(
                        note.filter(|(question, _)| Key::of_question(question).note_name() == listed.name),
                    );
                }
                // Another process deleted it just now, or it is none.
                Ok(None) | Err(ReadError::Damaged(_)) => {}
                Err(ReadError::Io(source)) => return Err(problem("read from", source)),
            }
        }
        Ok(notes)
    }
}
