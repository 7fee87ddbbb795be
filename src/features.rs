//! What a kernel's time depends on in the structure of a matrix: whole numbers that one look at the matrix finds, on the
//! host or on a device.

use std::ops::Range;

/// What is known of a structure. The host and the device count alike, so that both come to the same choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Features {
    /// Rows.
    pub num_rows: u64,
    /// Columns.
    pub num_cols: u64,
    /// Stored entries.
    pub nnz: u64,
    /// Entries of the longest row.
    pub longest_row: u64,
    /// Rows with 0 entries, 1, 2 or 3, 4 to 7, 8 to 15 and so on.
    pub row_lengths: [u64; 33],
    /// Steps that warps take for all rows where so many threads share a row, for each of
    /// [`Features::THREADS_PER_ROW`]: a warp's rows follow one another, and its longest row decides.
    pub warp_steps: [u64; 6],
    /// Diagonals that hold an entry; `None` where the longest row or a group of rows says that rows stored by diagonals would be
    /// mostly fill ([`Features::may_be_diagonal`]).
    pub num_diagonals: Option<u64>,
    /// Bits that the columns of short stretches of entries set, and of long ones, in all samples.
    pub marked: [u64; 2],
    /// Entries of the groups of rows in which blocks were counted.
    pub grouped: u64,
    /// Dense blocks that hold an entry in those groups, for each of [`Features::BLOCK_SHAPES`].
    pub blocks: [u64; Features::BLOCK_SHAPES.len()],
    /// Diagonals that hold an entry in the group with most of them.
    pub group_diagonals: u64,
    /// Sectors of x that warps read in the groups that were looked at, a warp's reads of a step together: where so many threads
    /// share a row, for each of [`Features::THREADS_PER_ROW`]; then where a warp takes entries that follow one another.
    pub gathered: [u64; 7],
    /// Entries of those rows, and of those that follow one another.
    pub gathers: [u64; 2],
    /// How the entries are spread over the columns.
    pub degrees: Degrees,
    /// Rows that differ, in more than their place, among those of [`Features::compared_rows`]; values count. `None` where none are
    /// compared.
    pub different_rows: Option<u64>,
    /// What samples of the values are.
    pub values: SampledValues,
}

/// Of values that are spread evenly over the entries, [`Features::SAMPLED_VALUES`] at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampledValues {
    /// How many were looked at: all where there are fewer, none where a value takes more than 8 bytes.
    pub count: u64,
    /// How many of these differ.
    pub different: u64,
    /// How many of these, of a type of 8 bytes and read as f64, no f32 is equal to.
    pub wide: u64,
    /// How many of these, of a type of 4 or 8 bytes and read as f32 or f64, are no whole numbers from -127 to 127.
    pub uneven: u64,
}

impl SampledValues {
    /// Whether an f32 holds every one that was looked at; of a type of 8 bytes that is not f64 it means nothing.
    pub fn are_narrow(&self) -> bool {
        self.count > 0 && self.wide == 0
    }

    /// Whether every one that was looked at is a whole number from -127 to 127; of a type that is neither f32 nor f64 it means
    /// nothing.
    pub fn are_whole(&self) -> bool {
        self.count > 0 && self.uneven == 0
    }

    /// Whether there are so few different ones that a table of 256 most likely has room for all values of the matrix: each of
    /// those that were looked at was found many times.
    pub fn are_few(&self) -> bool {
        self.count > 0 && self.different <= 256 && self.different * 8 <= self.count
    }
}

/// Columns by the entries they have, in classes: 0 entries, 1, 2 or 3, 4 to 7 and so on. Of samples of the entries, with
/// some columns taken for one where there are many ([`Features::degree_place`]); of a transpose, of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Degrees {
    /// Columns of each class.
    pub cols: [u64; Degrees::CLASSES],
    /// Entries of each class.
    pub entries: [u64; Degrees::CLASSES],
}

impl Degrees {
    /// Classes of columns.
    pub const CLASSES: usize = 33;

    /// Columns below this class have too few entries for chance not to matter.
    const SURE: usize = 4;

    /// The part of the entries that lie in the columns with most entries, when these are so many.
    pub fn hot_share(&self, hot_cols: u64) -> f64 {
        if hot_cols >= self.cols.iter().sum() {
            return 1.0;
        }
        let all: u64 = self.entries.iter().sum();
        let (mut left, mut hot) = (hot_cols as f64, 0.0);
        for class in (Self::SURE..Self::CLASSES).rev() {
            let (cols, entries) = (self.cols[class] as f64, self.entries[class] as f64);
            if cols > 0.0 {
                hot += entries * (left / cols).min(1.0);
                left = (left - cols).max(0.0);
            }
        }
        hot / all.max(1) as f64
    }

    /// The part of so many entries, of rows that follow one another, that are the first of their column among them, if
    /// chance decides which rows an entry of a column is in. All entries of the matrix are `nnz`.
    pub fn distinct_share(&self, entries: u64, nnz: u64) -> f64 {
        let entries = entries.min(nnz) as f64;
        let all = self.entries.iter().sum::<u64>().max(1) as f64;
        let of_class = |(cols, in_class): (&u64, &u64)| {
            let cols = *cols as f64;
            // How many of them are in one of its columns.
            let expected = *in_class as f64 / cols.max(1.0) * entries / all;
            cols * -(-expected).exp_m1()
        };
        let distinct: f64 = self.cols.iter().zip(&self.entries).map(of_class).sum();
        if entries > 0.0 { (distinct / entries).min(1.0) } else { 1.0 }
    }

    /// Adds a column, or what is taken for one, with so many entries.
    pub fn add(&mut self, entries: u64) {
        let class = ((u64::BITS - entries.leading_zeros()) as usize).min(Self::CLASSES - 1);
        self.cols[class] += 1;
        self.entries[class] += entries;
    }

    /// The columns of a transpose, whose rows have these lengths: a class has the middle of its lengths.
    fn of_rows(classes: &[u64; Self::CLASSES]) -> Degrees {
        let middle = |class: usize| if class < 2 { class as u64 } else { 3 << (class - 2) };
        Degrees { cols: *classes, entries: std::array::from_fn(|class| classes[class] * middle(class)) }
    }
}

impl Default for Degrees {
    fn default() -> Degrees {
        Degrees { cols: [0; Degrees::CLASSES], entries: [0; Degrees::CLASSES] }
    }
}

/// What is known of the lengths of rows, or of columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lengths {
    /// Entries of the longest.
    pub longest: u64,
    /// As [`Features::row_lengths`].
    pub classes: [u64; 33],
    /// As [`Features::warp_steps`].
    pub warp_steps: [u64; 6],
}

/// Samples of entries that follow one another: of each, how many different sectors of x it reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Samples {
    /// Entries of the matrix.
    pub nnz: u64,
    /// How many.
    pub count: u64,
    /// Entries of each; the last may have fewer.
    pub length: u64,
}

impl Samples {
    /// The first entry of the sample of this number.
    pub fn begin(&self, number: u64) -> u64 {
        (u128::from(number) * u128::from(self.nnz) / u128::from(self.count)) as u64
    }

    /// Entries of the last one, the only one that may be shorter than the others.
    fn last(&self) -> u64 {
        self.length.min(self.nnz.div_ceil(self.count.max(1)))
    }

    /// Entries at the beginning of each whose columns are counted.
    pub fn degree_sample(&self) -> u64 {
        if self.count <= Features::FEW_SAMPLES {
            Features::DEGREE_SAMPLE
        } else if self.count <= Features::SAMPLES_OF_SMALL {
            Features::STRETCH[0]
        } else {
            2 * Features::DEGREE_SAMPLE
        }
    }

    /// Entries of all of them, those that are in two counted twice.
    pub fn num_entries(&self) -> u64 {
        self.count.saturating_sub(1) * self.length + self.last()
    }

    /// Stretches of all of them, of a kind of [`Features::STRETCH`].
    pub fn stretches(&self, kind: usize) -> u64 {
        let stretch = Features::STRETCH[kind];
        self.count.saturating_sub(1) * (self.length / stretch) + self.last().div_ceil(stretch)
    }
}

impl Default for Features {
    /// Those of a matrix without rows.
    fn default() -> Features {
        Features {
            num_rows: 0,
            num_cols: 0,
            nnz: 0,
            longest_row: 0,
            row_lengths: [0; 33],
            warp_steps: [0; 6],
            num_diagonals: None,
            marked: [0; 2],
            grouped: 0,
            blocks: [0; Features::BLOCK_SHAPES.len()],
            group_diagonals: 0,
            gathered: [0; 7],
            gathers: [0; 2],
            degrees: Degrees::default(),
            different_rows: None,
            values: SampledValues::default(),
        }
    }
}

impl Features {
    /// Rows of the middle that are compared, at most.
    pub(crate) const COMPARED_ROWS: u64 = 512;

    /// The most diagonals of a grid whose rows are compared, and the most entries of such a row, which may hold a column twice.
    pub(crate) const COMPARED_DIAGONALS: u64 = 256;

    /// The rows that are compared: some in the middle where most entries lie on up to 256 diagonals, as those of a regular grid
    /// do. `None` for other matrices.
    pub fn compared_rows(&self) -> Option<Range<u64>> {
        let diagonals = self.num_diagonals?;
        let is_grid = diagonals <= Self::COMPARED_DIAGONALS
            && self.longest_row <= Self::COMPARED_DIAGONALS
            && diagonals.saturating_mul(self.num_rows) <= self.nnz.saturating_mul(2);
        if self.nnz == 0 || !is_grid {
            return None;
        }
        let first = self.num_rows.saturating_sub(Self::COMPARED_ROWS) / 2;
        Some(first..self.num_rows.min(first + Self::COMPARED_ROWS))
    }

    /// Whether few of the rows that were compared differ, as where a regular grid has constant coefficients.
    pub fn rows_repeat(&self) -> bool {
        let compared = self.compared_rows().map_or(0, |rows| rows.end - rows.start);
        self.different_rows.is_some_and(|different| different * 2 <= compared)
    }

    /// What is known where the values of a matrix are not, or will be others.
    #[must_use]
    pub fn without_values(self) -> Features {
        Features { different_rows: None, values: SampledValues::default(), ..self }
    }

    /// Values that are looked at, at most.
    pub const SAMPLED_VALUES: u64 = 2048;

    /// The entry that the value of this number is of, among as many as are looked at.
    pub fn sampled_value(number: u64, nnz: u64) -> u64 {
        (u128::from(number) * u128::from(nnz) / u128::from(nnz.min(Self::SAMPLED_VALUES))) as u64
    }

    /// What is known of a matrix of this size before anybody has looked at it.
    pub fn of_size((num_rows, num_cols): (u64, u64), nnz: u64) -> Features {
        Features { num_rows, num_cols, nnz, ..Features::default() }
    }

    /// The features of the transpose, as far as they follow from these and the lengths of the columns: how x is read is taken to
    /// be as here, where that is possible, and blocks to lie as they do here. Of a structure that is symmetric they are its
    /// own.
    #[must_use]
    pub fn transposed(&self, columns: &Lengths) -> Features {
        let stretches = |kind: usize| Self::samples(self.nnz).stretches(kind);
        // No stretch reads more places of x than there are.
        let places = self.num_rows.div_ceil(u64::from(Self::COLS_PER_SECTOR));
        let marked = |kind: usize| self.marked[kind].min(stretches(kind) * places);
        let may_be_diagonal =
            Self::may_be_diagonal(self.num_cols, self.nnz, columns.longest, self.group_diagonals);
        let blocks_of = |(rows, cols): (u32, u32)| {
            let mirrored = Self::BLOCK_SHAPES.iter().position(|shape| *shape == (cols, rows));
            self.blocks[mirrored.expect("the mirror image of every shape is one, too")]
        };
        Features {
            num_rows: self.num_cols,
            num_cols: self.num_rows,
            nnz: self.nnz,
            longest_row: columns.longest,
            row_lengths: columns.classes,
            warp_steps: columns.warp_steps,
            num_diagonals: self.num_diagonals.filter(|_| may_be_diagonal),
            marked: [marked(0), marked(1)],
            grouped: self.grouped,
            blocks: Self::BLOCK_SHAPES.map(blocks_of),
            group_diagonals: self.group_diagonals,
            gathered: self.gathered,
            gathers: self.gathers,
            degrees: Degrees::of_rows(&self.row_lengths),
            different_rows: self.different_rows,
            values: self.values,
        }
    }

    /// Threads that share a row, for [`Features::warp_steps`].
    pub const THREADS_PER_ROW: [u32; 6] = [1, 2, 4, 8, 16, 32];

    /// Columns that count as one place of x.
    pub const COLS_PER_SECTOR: u32 = 8;

    /// Entries of a short and of a long stretch. A sample is a long stretch and has short ones one after the other.
    pub const STRETCH: [u64; 2] = [1 << 12, 1 << 16];

    /// Logarithms of the bits that a stretch marks.
    pub const LOG_BITS: [u32; 2] = [14, 17];

    /// Spreads neighbouring places over the bits.
    pub const HASH_FACTOR: u32 = 0x9e37_79b1;

    /// Entries up to which a matrix is small: it is looked at in fewer places, since products are few microseconds then, and so are
    /// differences between kernels.
    pub const SMALL: u64 = Self::SAMPLES_OF_SMALL * Self::STRETCH[1];

    /// Samples of a small matrix, at most.
    pub const SAMPLES_OF_SMALL: u64 = 32;

    /// Samples at most.
    pub const MAX_SAMPLES: u64 = 64;

    /// The samples of a matrix with so many entries: all of it where it is small, some entries in two of them.
    pub const fn samples(nnz: u64) -> Samples {
        let count = nnz.div_ceil(Self::STRETCH[1]);
        let count = if count > Self::MAX_SAMPLES { Self::MAX_SAMPLES } else { count };
        Samples { nnz, count, length: Self::STRETCH[1] }
    }

    /// Entries at the beginning of each sample whose columns are counted for [`Features::degrees`], where there are no more than
    /// [`Features::FEW_SAMPLES`]; a short stretch of each other small matrix's, and twice as many of a larger one's.
    pub const DEGREE_SAMPLE: u64 = 1 << 14;

    /// Samples up to which as many entries of each are counted by columns as in [`Features::DEGREE_SAMPLE`].
    pub const FEW_SAMPLES: u64 = 8;

    /// The logarithm of the most places of columns that are counted.
    pub const LOG_DEGREE_PLACES: u32 = 20;

    /// Where a column is counted: with more columns than places, some share one.
    pub const fn degree_place(num_cols: u64, col: u32) -> u32 {
        if num_cols <= 1 << Self::LOG_DEGREE_PLACES {
            col
        } else {
            col.wrapping_mul(Self::HASH_FACTOR) >> (32 - Self::LOG_DEGREE_PLACES)
        }
    }

    /// The bit that a column marks in a stretch of this kind, 0 for a short one and 1 for a long one.
    pub const fn bit(kind: usize, col: u32) -> u32 {
        (col / Self::COLS_PER_SECTOR).wrapping_mul(Self::HASH_FACTOR) >> (32 - Self::LOG_BITS[kind])
    }

    /// Rows and columns of the dense blocks that are counted, no more than 15 each, with all their mirror images.
    pub const BLOCK_SHAPES: [(u32, u32); 11] =
        [(2, 2), (3, 3), (4, 4), (6, 6), (8, 8), (1, 2), (2, 1), (2, 4), (4, 2), (1, 4), (4, 1)];

    /// The logarithm of the most columns of blocks that are told apart for certain.
    pub const LOG_BLOCK_COLS: u32 = 26;

    /// What a dense block is known by in its group of rows: its row and column, in blocks.
    pub const fn block_key(row: u32, col: u32) -> u32 {
        row << Self::LOG_BLOCK_COLS ^ col
    }

    /// Rows of a group, which all heights of blocks divide; half as many where these have too many entries, which all heights
    /// divide but 8, of which there are more blocks there than elsewhere.
    pub const ROWS_PER_GROUP: u32 = 24;

    /// Groups in which blocks are counted, at most, spread over all rows; of a [small](Features::SMALL) matrix and of others.
    pub const MAX_GROUPS: [u64; 2] = [44, 128];

    /// How many groups are looked at.
    pub const fn num_groups(num_rows: u64, nnz: u64) -> u64 {
        let (groups, most) =
            (num_rows.div_ceil(Self::ROWS_PER_GROUP as u64), Self::MAX_GROUPS[(nnz > Self::SMALL) as usize]);
        if groups > most { most } else { groups }
    }

    /// Entries of a group in which blocks are counted, at most: one with more tells nothing.
    pub const MAX_GROUP_ENTRIES: u64 = 2048;

    /// Rows of a group in which sectors of x are counted, from its first row on: those of a warp whose threads take one each.
    pub const ROWS_PER_GATHER: u32 = 32;

    /// Entries of such a row that count, from its first on.
    pub const GATHERS_PER_ROW: u32 = 64;

    /// Entries of a group that follow one another and count, from its first on.
    pub const GATHERS_IN_ORDER: u32 = 2048;

    /// Slots an entry where it is stored in dense blocks of this shape, in the groups that were looked at: 1 where no block
    /// has fill. `None` where it does not follow from the shapes that are counted, or no group was looked at.
    pub fn slots_per_entry(&self, shape: (u32, u32)) -> Option<f64> {
        let slots = |(index, counted): (usize, &(u32, u32))| {
            let slots = self.blocks[index] * u64::from(counted.0) * u64::from(counted.1);
            (self.grouped > 0).then(|| slots as f64 / self.grouped as f64)
        };
        let mut counted = Self::BLOCK_SHAPES.iter().enumerate();
        match counted.clone().find(|(_, counted)| **counted == shape) {
            Some(counted) => slots(counted),
            // A block without fill consists of smaller ones without fill.
            None => counted.find_map(|(index, counted)| {
                let divides = counted.0 % shape.0 == 0 && counted.1 % shape.1 == 0;
                slots((index, counted)).filter(|slots| divides && *slots == 1.0)
            }),
        }
    }

    /// Whether diagonals are worth counting: as many as the longest row has entries, or as a group of rows has, would hold no
    /// more than half fill. Not where rows are so long that no group was looked at.
    pub const fn may_be_diagonal(num_rows: u64, nnz: u64, longest_row: u64, group_diagonals: u64) -> bool {
        nnz > 0
            && group_diagonals > 0
            && longest_row.saturating_mul(num_rows) <= nnz.saturating_mul(2)
            && group_diagonals.saturating_mul(num_rows) <= nnz.saturating_mul(2)
    }

    /// Sectors of x an entry that a warp reads in a step where so many threads share a row, one of
    /// [`Features::THREADS_PER_ROW`], or where it takes entries that follow one another: between 1/32 and 1, which takes 32 times
    /// as long.
    pub fn sectors_per_gather(&self, threads_per_row: Option<u32>) -> f64 {
        let of_threads = |threads| Self::THREADS_PER_ROW.iter().position(|known| *known == threads);
        let (kind, entries) = match threads_per_row.and_then(of_threads) {
            Some(kind) => (kind, self.gathers[0]),
            None => (Self::THREADS_PER_ROW.len(), self.gathers[1]),
        };
        self.gathered[kind] as f64 / entries.max(1) as f64
    }

    /// Different sectors of x that an entry of a stretch reads, on average: near 0 where neighbours in a row or column are
    /// read together, 1 where every entry is somewhere else. The marked bits are fewer than the sectors, since some share a
    /// bit; this is the number that most likely marks as many.
    pub fn sectors_per_entry(&self, kind: usize) -> f64 {
        let samples = Self::samples(self.nnz);
        if samples.count == 0 {
            return 0.0;
        }
        let (sampled, stretches) = (samples.num_entries(), samples.stretches(kind) as f64);
        let bits = f64::from(1u32 << Self::LOG_BITS[kind]);
        let share = (self.marked[kind] as f64 / stretches / bits).min(0.999);
        (-bits * (-share).ln_1p() * stretches / sampled as f64).min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::Degrees;

    #[test]
    fn entries_in_columns_of_their_own() {
        // A million columns of one entry, and 64 that have as many together.
        let mut degrees = Degrees::default();
        (0..1_000_000).for_each(|_| degrees.add(1));
        assert!((degrees.distinct_share(10_000, 1_000_000) - 1.0).abs() < 0.01);
        (0..64).for_each(|_| degrees.add(15_625));
        let share = degrees.distinct_share(10_000, 2_000_000);
        assert!((share - (5000.0 + 64.0) / 10_000.0).abs() < 0.01, "{share}");
        // All entries of the matrix, and more than it has.
        let all = degrees.distinct_share(2_000_000, 2_000_000);
        assert_eq!(degrees.distinct_share(3_000_000, 2_000_000), all);
        assert_eq!(Degrees::default().distinct_share(100, 0), 1.0);
    }
}
