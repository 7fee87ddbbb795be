//! The product with a symmetric, skew-symmetric or Hermitian matrix from diagonals of its lower triangle.

use super::{Plan, Plans};
use crate::config::{ConfigError, KernelConfig};
use crate::diagonals::Diagonals;
use crate::expr::{Expr, Variable};
use crate::parameter::parameters;
use crate::program::{Arg, Buffer, Count, Pass, Slots};
use crate::types::IndexType;

parameters! {
    /// Diagonals of the lower triangle, stored whole and without columns: every slot comes from memory once, for both halves.
    pub struct SymDia computes [Symmetric, SkewSymmetric, Hermitian] {
        /// Diagonals whose loads are under way at once, those of their mirror images too.
        unroll = 2, one of [1, 2, 3, 4];
        /// Values: 0 as they are, 1 as f32 where every f64 is one, 2 by places in a table of 255, 3 whole ones up to 127 as bytes.
        encoding = 0, one of [0, 1, 2, 3];
        /// Blocks that walk along a farthest diagonal that lies alone, over those that are resident, where values are as they are; 0 none.
        walk = 1, one of [0, 1, 2, 4, 8];
        /// Shared memory in KiB to which bulk copies bring what a block needs that walks along farthest diagonals that lie together, from compute capability 9.0 on and where values are as they are; 0 none.
        stage_kib = 0, one of [0, 112, 224];
    }
}

/// Copies of a stage, at most: a lane begins each. `kMostCopies` of the template.
const MOST_COPIES: u32 = 32;

/// Shared memory of a multiprocessor that blocks share, in KiB.
const MOST_KIB: u32 = 224;

impl SymDia {
    fn diagonals(&self) -> Diagonals {
        Diagonals { encoding: self.encoding, most_packs: 2 }
    }
}

fn size(variable: Variable) -> Arg {
    Arg::Size(variable.into(), IndexType::U32)
}

/// Adds a pass that looks at the diagonals, the buffer in which it leaves counts, and these.
fn look<const COUNTS: usize>(
    plan: &mut Plan,
    (kernel, buffer): (&str, &'static str),
    names: [&'static str; COUNTS],
    more: impl IntoIterator<Item = Arg>,
) -> [Variable; COUNTS] {
    let place = plan.buffers.len();
    plan.buffers.push(Buffer::new(buffer, COUNTS as u32 * 8).zeroed().scratch());
    let mut args =
        [Variable::NumRows, Diagonals::NUM_DIAGONALS, Diagonals::NUM_DISORDERED].map(size).to_vec();
    args.extend([Arg::Buffer(Diagonals::OFFSETS), Arg::Buffer(place)]);
    args.extend(more);
    let threads_per_block = plan.multiply[0].threads_per_block;
    plan.prepare.push(Pass {
        kernel: kernel.into(),
        grid: 1.into(),
        threads_per_block,
        shared_bytes: 0,
        args,
    });
    let (after, first) = (plan.prepare.len() - 1, plan.counts.len());
    let counts = names.into_iter().zip(0..);
    plan.counts.extend(counts.map(|(name, entry)| Count { name, buffer: place, entry, after }));
    std::array::from_fn(|entry| Variable::Count((first + entry) as u8))
}

/// Puts a product in so many blocks in place of the one with values as they are, where a count is not 0.
fn instead(plan: &mut Plan, mut product: Pass, blocks: Expr, count: Variable) {
    let usual = &mut plan.multiply[0];
    // Where values are encoded, no block has those as they are.
    product.grid = blocks.clone().min(usual.grid.clone() * blocks);
    usual.grid = usual.grid.clone() * Expr::from(1).minus(Expr::from(1).min(count));
    plan.multiply.insert(1, product);
}

/// Adds the pass that finds out whether threads walk, and the product in which they do. Blocks are as many as these, over those that
/// are resident.
fn walk(plan: &mut Plan, waves: u32) {
    let names = ["walked_distance", "walking_blocks_a_step", "walking_blocks"];
    let [distance, side, blocks] = look(plan, ("spmv_sym_dia_walks", "walks"), names, []);
    let mut product = Pass { kernel: "spmv_sym_dia_walk".into(), ..plan.multiply[0].clone() };
    product.args.extend([distance, side].map(size));
    let resident = Expr::from(Variable::Multiprocessors) * Variable::ResidentBlocks;
    instead(plan, product, Expr::from(blocks).min((resident * waves).max(side)), distance);
}

/// Adds the pass that finds out whether blocks walk with stages in so much shared memory, and the product in which they do. Where
/// a thread walks by itself, the first gap between diagonals is the widest, and no block does.
fn stage(plan: &mut Plan, kib: u32) {
    // Behind the buffer of counts.
    let places = Arg::Buffer(plan.buffers.len() + 1);
    let resident = Expr::from(Variable::Multiprocessors) * (MOST_KIB / kib);
    let [rows, distance, side, far, blocks] = look(
        plan,
        ("spmv_sym_dia_stages", "staged"),
        ["staged_rows", "staged_distance", "staged_blocks_a_step", "staged_far_diagonals", "staged_blocks"],
        [places.clone(), Arg::Size(resident, IndexType::U32)],
    );
    plan.buffers.push(Buffer::new("stage_places", (1 + 2 * MOST_COPIES) * 16));
    let usual = plan.multiply[0].clone();
    let mut product = Pass { kernel: "spmv_sym_dia_staged".into(), shared_bytes: kib * 1024, ..usual };
    product.threads_per_block = (product.threads_per_block * 3 / 2 / 32 * 32 + 32).min(1024);
    product.args.extend([rows, distance, side, far].map(size));
    product.args.push(places);
    let resident = Expr::from(Variable::Multiprocessors) * Variable::ResidentBlocks;
    instead(plan, product, Expr::from(blocks).min(resident.max(side)), rows);
}

impl Plans for SymDia {
    fn check(&self, config: &KernelConfig) -> Result<(), ConfigError> {
        self.diagonals().check(config)
    }

    fn slots(&self, config: &KernelConfig) -> Option<Slots> {
        Some(self.diagonals().slots(config))
    }

    fn plan(&self, config: &KernelConfig) -> Plan {
        // A chain for each half, to which fill adds exact zeros, their sum, alpha, beta and two conversions.
        let mut plan = self.diagonals().plan(config, Expr::from(Variable::RowNnz) + 6);
        // Rows of slots of 1 or 2 bytes are not a thread's own wherever it goes.
        let is_walked = config.types().value.size() >= 4;
        if is_walked && self.walk > 0 {
            walk(&mut plan, self.walk);
        }
        if is_walked && self.stage_kib > 0 {
            stage(&mut plan, self.stage_kib);
        }
        plan
    }
}
