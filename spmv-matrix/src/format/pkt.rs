//! Packets: square pieces of the diagonal with columns of their own.

use std::ops::Range;

use super::ell::stride;
use super::runs::{array_bytes, csr_of_rows, offsets_of, split};
use super::{Footprint, Format, FormatKind};
use crate::assemble::zeroed;
use crate::{CsrMatrix, Entry, MatrixError, Offset, parallel};

/// The column of a slot of a packet that holds no entry.
pub const NO_LOCAL_COLUMN: u16 = u16::MAX;

/// A matrix in packets (PKT: N. Bell and M. Garland, *Efficient Sparse Matrix-Vector Multiplication on CUDA*, 2008).
///
/// A packet is a square piece on the diagonal whose part of x fits in shared memory. Where the published format groups
/// rows with a graph partitioner, packet `p` here has the consecutive rows and columns from `p * rows_per_packet` on:
/// a matrix that is to profit must have been ordered before. Its entries are padded to the longest of its rows: entry `k`
/// of the packet's row `i` has slot `packet_offsets[p] + k * stride + i`, where `stride` is the number of the packet's
/// rows, rounded up to a multiple of 32. `local_cols` counts from the packet's first column. All other entries are in
/// `remainder`.
#[derive(Clone, Debug, PartialEq)]
pub struct PktMatrix<V, O = u32> {
    nnz: usize,
    rows_per_packet: usize,
    packet_offsets: Vec<O>,
    local_cols: Vec<u16>,
    values: Vec<V>,
    remainder: CsrMatrix<V, O>,
}

/// What may be chosen of [`PktMatrix`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PktParameters {
    /// Rows and columns of a packet: a multiple of 32, at most 4096.
    pub rows_per_packet: usize,
}

impl Default for PktParameters {
    fn default() -> Self {
        Self { rows_per_packet: 1024 }
    }
}

impl PktParameters {
    fn check(self) -> Result<Self, MatrixError> {
        match self.rows_per_packet {
            rows @ 1..=4096 if rows.is_multiple_of(32) => Ok(self),
            rows => Err(MatrixError::Parameter {
                name: "rows_per_packet",
                value: rows as u64,
                allowed: "the multiples of 32 from 32 to 4096",
            }),
        }
    }
}

/// The packets of a matrix.
#[derive(Clone, Copy)]
struct Packets<'a, V, O> {
    a: &'a CsrMatrix<V, O>,
    rows_per_packet: usize,
}

impl<V: Entry, O: Offset> Packets<'_, V, O> {
    fn count(self) -> usize {
        self.a.num_rows().div_ceil(self.rows_per_packet)
    }

    fn rows(self, packet: usize) -> Range<usize> {
        let first = packet * self.rows_per_packet;
        first..self.a.num_rows().min(first + self.rows_per_packet)
    }

    /// The positions of a row's entries in its packet, or of its others.
    fn entries(self, row: usize, local: bool) -> impl Iterator<Item = usize> {
        let packet = row / self.rows_per_packet;
        let is_local =
            move |position: &usize| self.a.col_indices()[*position] as usize / self.rows_per_packet == packet;
        self.a.row_range(row).filter(move |position| is_local(position) == local)
    }

    /// The number of slots of each packet.
    fn slots(self) -> Vec<usize> {
        let slots = |packet| {
            let rows = self.rows(packet);
            let width = rows.clone().map(|row| self.entries(row, true).count()).max().unwrap_or(0);
            width * stride(rows.len())
        };
        parallel::map(0..self.count(), slots)
    }

    /// The number of entries in packets.
    fn local_nnz(self) -> u64 {
        parallel::sum(self.a.num_rows(), 1024, |row| self.entries(row, true).count() as u64)
    }
}

impl<V: Entry, O: Offset> PktMatrix<V, O> {
    /// Rows and columns of a packet.
    pub fn rows_per_packet(&self) -> usize {
        self.rows_per_packet
    }

    /// The first slot of each packet, and the number of slots.
    pub fn packet_offsets(&self) -> &[O] {
        &self.packet_offsets
    }

    /// The column of each slot in its packet; [`NO_LOCAL_COLUMN`] where there is no entry.
    pub fn local_cols(&self) -> &[u16] {
        &self.local_cols
    }

    /// The value of each slot; 0 where there is no entry.
    pub fn values(&self) -> &[V] {
        &self.values
    }

    /// The entries outside the packets.
    pub fn remainder(&self) -> &CsrMatrix<V, O> {
        &self.remainder
    }

    /// The slots of a row's entries, with their columns.
    fn row(&self, row: usize) -> impl Iterator<Item = (usize, usize)> {
        let (packet, place) = (row / self.rows_per_packet, row % self.rows_per_packet);
        let first_row = packet * self.rows_per_packet;
        let stride = stride((self.remainder.num_rows() - first_row).min(self.rows_per_packet));
        let [start, end] = [packet, packet + 1].map(|packet| self.packet_offsets[packet].to_usize());
        (start + place..end)
            .step_by(stride)
            .map(|slot| (slot, self.local_cols[slot]))
            .take_while(|&(_, col)| col != NO_LOCAL_COLUMN)
            .map(move |(slot, col)| (slot, first_row + col as usize))
    }
}

impl<V: Entry, O: Offset> Format<V, O> for PktMatrix<V, O> {
    type Parameters = PktParameters;
    const KIND: FormatKind = FormatKind::Pkt;
    const KEEPS_ORDER: bool = false;

    fn predict_with(a: &CsrMatrix<V, O>, parameters: PktParameters) -> Result<Footprint, MatrixError> {
        let packets = Packets { a, rows_per_packet: parameters.check()?.rows_per_packet };
        let local: u64 = packets.slots().iter().map(|&slots| slots as u64).sum();
        let remainder = a.nnz() as u64 - packets.local_nnz();
        Ok(Footprint {
            nnz: a.nnz() as u64,
            slots: local + remainder,
            offsets: (packets.count() + 1 + a.num_rows() + 1) as u64,
            index_bytes: local * 2 + remainder * 4,
        })
    }

    fn from_csr_with(a: &CsrMatrix<V, O>, parameters: PktParameters) -> Result<Self, MatrixError> {
        Self::predict_with(a, parameters)?.admit(FormatKind::Pkt, a)?;
        let packets = Packets { a, rows_per_packet: parameters.rows_per_packet };
        let slots = packets.slots();
        let packet_offsets: Vec<O> = offsets_of(slots.iter().copied(), "packet_offsets")?;
        let num_slots = packet_offsets[packets.count()].to_usize();
        let mut local_cols: Vec<u16> = zeroed(num_slots, "local_cols")?;
        let mut values: Vec<V> = zeroed(num_slots, "values")?;
        let [lengths, of_values] = [slots.iter().copied(), slots.iter().copied()];
        let parts = split(&mut local_cols, lengths).into_iter().zip(split(&mut values, of_values));
        parallel::for_each(parts.enumerate(), |(packet, (cols, values))| {
            cols.fill(NO_LOCAL_COLUMN);
            let rows = packets.rows(packet);
            let stride = stride(rows.len());
            for (place, row) in rows.clone().enumerate() {
                for (k, position) in packets.entries(row, true).enumerate() {
                    let col = a.col_indices()[position] as usize - rows.start;
                    cols[k * stride + place] = col as u16;
                    values[k * stride + place] = a.values()[position];
                }
            }
        });
        let remainder = csr_of_rows(
            a.num_rows(),
            a.num_cols(),
            |row| packets.entries(row, false).count(),
            |row, cols, values| {
                for (position, (col, value)) in packets.entries(row, false).zip(cols.iter_mut().zip(values)) {
                    (*col, *value) = (a.col_indices()[position], a.values()[position]);
                }
            },
        )?;
        let rows_per_packet = parameters.rows_per_packet;
        Ok(Self { nnz: a.nnz(), rows_per_packet, packet_offsets, local_cols, values, remainder })
    }

    fn to_csr(&self) -> Result<CsrMatrix<V, O>, MatrixError> {
        let mut a: CsrMatrix<V, O> = csr_of_rows(
            self.remainder.num_rows(),
            self.remainder.num_cols(),
            |row| self.row(row).count() + self.remainder.row(row).0.len(),
            |row, cols, values| {
                let (other_cols, other_values) = self.remainder.row(row);
                let local = cols.len() - other_cols.len();
                cols[local..].copy_from_slice(other_cols);
                values[local..].copy_from_slice(other_values);
                for ((slot, of_slot), (col, value)) in self.row(row).zip(cols.iter_mut().zip(values)) {
                    (*col, *value) = (of_slot as u32, self.values[slot]);
                }
            },
        )?;
        // The entries of a packet came before those around it.
        a.sort_columns();
        Ok(a)
    }

    fn num_rows(&self) -> usize {
        self.remainder.num_rows()
    }

    fn num_cols(&self) -> usize {
        self.remainder.num_cols()
    }

    fn nnz(&self) -> usize {
        self.nnz
    }

    fn bytes(&self) -> u64 {
        array_bytes(&self.packet_offsets)
            + array_bytes(&self.local_cols)
            + array_bytes(&self.values)
            + self.remainder.bytes() as u64
    }

    fn for_each_entry(&self, mut entry: impl FnMut(usize, usize, V)) {
        for row in 0..self.remainder.num_rows() {
            for (slot, col) in self.row(row) {
                entry(row, col, self.values[slot]);
            }
            let (cols, values) = self.remainder.row(row);
            for (&col, &value) in cols.iter().zip(values) {
                entry(row, col as usize, value);
            }
        }
    }
}
