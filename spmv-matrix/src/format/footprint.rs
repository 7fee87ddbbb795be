//! What a layout takes, and when that is too much.

use super::FormatKind;
use crate::{CsrMatrix, Entry, MatrixError, Offset};

/// A layout may have so many slots for each entry, whatever they take.
const FREE_SLOTS: u64 = 8;

/// Bytes of fill that any layout may have.
const FREE_FILL: u64 = 64 << 20;

/// What a layout takes, by the types its arrays have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Footprint {
    /// Entries of the matrix.
    pub nnz: u64,
    /// Values that the layout stores, entries and fill.
    pub slots: u64,
    /// Positions, of the offset type.
    pub offsets: u64,
    /// Bytes of everything else: columns, rows, permutations, masks.
    pub index_bytes: u64,
}

/// Whether a layout suits a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// It takes at most half as much again as compressed sparse rows.
    Suits,
    /// It takes more than that, mostly for fill.
    Pads,
    /// It would be refused.
    Refused,
}

impl Footprint {
    /// Slots that hold no entry.
    pub fn fill(&self) -> u64 {
        self.slots - self.nnz
    }

    /// Bytes with values and offsets of so many bytes each.
    pub fn bytes(&self, value_bytes: usize, offset_bytes: usize) -> u64 {
        let part = |count: u64, bytes: usize| count.saturating_mul(bytes as u64);
        part(self.slots, value_bytes)
            .saturating_add(part(self.offsets, offset_bytes))
            .saturating_add(self.index_bytes)
    }

    /// Whether the layout suits a matrix of these types that takes `csr_bytes` in compressed sparse rows.
    pub fn fit(&self, value_bytes: usize, offset_bytes: usize, csr_bytes: u64) -> Fit {
        if self.explodes(value_bytes) {
            Fit::Refused
        } else if self.bytes(value_bytes, offset_bytes) > csr_bytes.saturating_add(csr_bytes / 2) {
            Fit::Pads
        } else {
            Fit::Suits
        }
    }

    /// Whether there is too much fill: more than 8 slots an entry, and more than 64 MiB of values and columns.
    fn explodes(&self, value_bytes: usize) -> bool {
        let entry_bytes = (value_bytes + size_of::<u32>()) as u64;
        self.slots > self.nnz.saturating_mul(FREE_SLOTS)
            && self.fill().saturating_mul(entry_bytes) > FREE_FILL
    }

    /// Refuses a layout that explodes, and one whose slots cannot be counted.
    pub(super) fn admit<V: Entry, O: Offset>(
        &self,
        kind: FormatKind,
        a: &CsrMatrix<V, O>,
    ) -> Result<(), MatrixError> {
        if self.explodes(size_of::<V>()) {
            let csr_bytes = a.bytes() as u64;
            let suits = |kind: &FormatKind| {
                let fit = |footprint: Footprint| footprint.fit(size_of::<V>(), size_of::<O>(), csr_bytes);
                matches!(kind.predict(a).map(fit), Ok(Fit::Suits))
            };
            return Err(MatrixError::Fill {
                format: kind.name(),
                slots: self.slots,
                nnz: self.nnz,
                bytes: self.bytes(size_of::<V>(), size_of::<O>()),
                csr_bytes,
                limit_bytes: FREE_FILL,
                alternatives: FormatKind::ALL
                    .iter()
                    .filter(|kind| suits(kind))
                    .map(|kind| kind.name())
                    .collect(),
            });
        }
        if usize::try_from(self.slots).is_err() {
            return Err(MatrixError::OutOfMemory {
                bytes: self.bytes(size_of::<V>(), size_of::<O>()),
                what: kind.name(),
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fill_is_refused_beyond_both_bounds() {
        let explodes = |nnz: u64, fill: u64, value_bytes: usize| {
            Footprint { nnz, slots: nnz + fill, offsets: 0, index_bytes: 0 }.explodes(value_bytes)
        };
        // 64 MiB are so many slots with a column and an f64, or an f32.
        let (of_f64, of_f32) = (FREE_FILL / 12, FREE_FILL / 8);
        assert!(!explodes(1, of_f64, 8) && explodes(1, of_f64 + 1, 8));
        assert!(!explodes(1, of_f32, 4) && explodes(1, of_f32 + 1, 4));
        assert!(!explodes(of_f64, 7 * of_f64, 8) && explodes(of_f64, 7 * of_f64 + 1, 8));
    }
}
