//! What the simulator counted of a product, in the terms of a profiler.

use std::fmt::Display;
use std::io::{self, Write};

use serde::Serialize;
use spmv_runtime::ptx_sim::Counters;

use crate::quantity;

/// Bytes of a sector: the least that moves between the caches and memory.
const SECTOR_BYTES: u64 = 32;

/// The counters of one product with the metrics that follow from them. A metric is absent where nothing happened
/// that it could be taken of.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CounterFacts {
    pub warp_instructions: u64,
    pub thread_instructions: u64,
    /// Lanes that took part, as a part of all lanes of the warps that executed.
    pub warp_execution_efficiency: Option<f64>,
    pub global_load_requests: u64,
    pub global_load_sectors: u64,
    pub global_load_bytes: u64,
    /// Bytes that threads asked for, as a part of the sectors moved for them; more than 1 where lanes share bytes.
    pub global_load_efficiency: Option<f64>,
    pub sectors_per_load_request: Option<f64>,
    pub global_store_requests: u64,
    pub global_store_sectors: u64,
    pub global_store_bytes: u64,
    pub global_store_efficiency: Option<f64>,
    /// Sectors of loads and stores, in bytes.
    pub bytes_moved: u64,
    pub shared_requests: u64,
    pub shared_bank_conflicts: u64,
    pub global_atomic_requests: u64,
    pub global_atomics: u64,
    pub shared_atomics: u64,
    pub barriers: u64,
    pub blocks: u64,
}

impl From<Counters> for CounterFacts {
    fn from(counters: Counters) -> CounterFacts {
        let of = |happened: u64, metric: f64| (happened > 0).then_some(metric);
        CounterFacts {
            warp_instructions: counters.warp_instructions,
            thread_instructions: counters.thread_instructions,
            warp_execution_efficiency: of(counters.warp_instructions, counters.warp_execution_efficiency()),
            global_load_requests: counters.global_load_requests,
            global_load_sectors: counters.global_load_sectors,
            global_load_bytes: counters.global_load_bytes,
            global_load_efficiency: of(counters.global_load_requests, counters.global_load_efficiency()),
            sectors_per_load_request: of(counters.global_load_requests, counters.sectors_per_load_request()),
            global_store_requests: counters.global_store_requests,
            global_store_sectors: counters.global_store_sectors,
            global_store_bytes: counters.global_store_bytes,
            global_store_efficiency: of(counters.global_store_requests, counters.global_store_efficiency()),
            bytes_moved: (counters.global_load_sectors + counters.global_store_sectors) * SECTOR_BYTES,
            shared_requests: counters.shared_requests,
            shared_bank_conflicts: counters.shared_bank_conflicts,
            global_atomic_requests: counters.global_atomic_requests,
            global_atomics: counters.global_atomics,
            shared_atomics: counters.shared_atomics,
            barriers: counters.barriers,
            blocks: counters.blocks,
        }
    }
}

impl CounterFacts {
    /// A line a metric.
    pub fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        let number = |number: u64| quantity::count(number as usize);
        writeln!(out, "report        of one product, counted by the simulator")?;
        let mut line = |what: &str, is: &dyn Display| writeln!(out, "  {what:<28}{is}");
        line(
            "warp instructions",
            &format_args!("{} in {} blocks", number(self.warp_instructions), number(self.blocks)),
        )?;
        line("warp execution efficiency", &percent(self.warp_execution_efficiency))?;
        line(
            "global loads",
            &format_args!(
                "{} requests, {} sectors of 32 B, {} asked for",
                number(self.global_load_requests),
                number(self.global_load_sectors),
                quantity::bytes(self.global_load_bytes)
            ),
        )?;
        line("global load efficiency", &percent(self.global_load_efficiency))?;
        line("sectors a load request", &ratio(self.sectors_per_load_request))?;
        line(
            "global stores",
            &format_args!(
                "{} requests, {} sectors of 32 B, {} stored",
                number(self.global_store_requests),
                number(self.global_store_sectors),
                quantity::bytes(self.global_store_bytes)
            ),
        )?;
        line("global store efficiency", &percent(self.global_store_efficiency))?;
        line(
            "bytes moved",
            &format_args!("{} in sectors of loads and stores", quantity::bytes(self.bytes_moved)),
        )?;
        line(
            "bank conflicts",
            &format_args!(
                "{} in {} requests of shared memory",
                number(self.shared_bank_conflicts),
                number(self.shared_requests)
            ),
        )?;
        line(
            "atomics",
            &format_args!(
                "{} global in {} requests, {} shared",
                number(self.global_atomics),
                number(self.global_atomic_requests),
                number(self.shared_atomics)
            ),
        )?;
        line("barriers", &number(self.barriers))
    }
}

/// A part as `87.5 %`.
pub fn percent(part: Option<f64>) -> String {
    part.map_or_else(|| "none to take it of".to_owned(), |part| format!("{:.1} %", part * 100.0))
}

fn ratio(number: Option<f64>) -> String {
    number.map_or_else(|| "none to take it of".to_owned(), quantity::significant)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_follow_from_counters() {
        let mut counters = Counters::default();
        counters.warp_instructions = 10;
        counters.thread_instructions = 240;
        counters.global_load_requests = 4;
        counters.global_load_sectors = 16;
        counters.global_load_bytes = 384;
        counters.global_store_sectors = 2;
        let facts = CounterFacts::from(counters);
        assert_eq!(facts.warp_execution_efficiency, Some(0.75));
        assert_eq!(facts.global_load_efficiency, Some(0.75));
        assert_eq!(facts.sectors_per_load_request, Some(4.0));
        assert_eq!(facts.bytes_moved, 18 * 32);
        assert_eq!(facts.global_store_efficiency, None);
        assert_eq!(percent(facts.warp_execution_efficiency), "75.0 %");
    }
}
