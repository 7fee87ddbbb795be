//! Two records side by side: what became faster, what slower, and what noise explains.
//!
//! # The rule
//! The ratio is the new median over the old one. A median of many samples n whose quartiles lie a share `spread` of it
//! apart is known to about 0.93 · spread / √n (one standard error, where the samples scatter normally); of few samples the
//! quartiles are not known well either. The band of a ratio is
//!
//! b = 0.01 + √(c(n_old)² · spread_old² / n_old + c(n_new)² · spread_new² / n_new),
//!
//! two-sided 95 % with c as in [`BANDS`], and a percent ([`RUN_TO_RUN`]) for what differs from one run to the next and shows
//! in neither. Above 1 + b the row is slower, below 1 / (1 + b) faster, else the same. Where a side has no spread or fewer
//! than two samples, nothing is known of the noise and nothing is said.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use serde::Serialize;

use crate::geomean;
use crate::ours::all_params;
use crate::record::{Head, Record, Row};

/// From so many samples on, c: the difference of two medians of n normal samples each is less than c times what the
/// distances of their quartiles give, √((d₁² + d₂²) / n), in 95 of 100 cases, and in 92 where one has 3 samples and the other
/// 25. Of very many samples it is 1.96 · 0.93.
pub const BANDS: [(u32, f64); 9] =
    [(2, 6.2), (3, 3.2), (4, 2.95), (6, 2.45), (8, 2.3), (10, 2.15), (15, 2.02), (25, 1.95), (50, 1.85)];

/// The share by which medians of two runs may differ although nothing changed.
pub const RUN_TO_RUN: f64 = 0.01;

/// What two times say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The new one is shorter than noise explains.
    Faster,
    /// The new one is longer than noise explains.
    Slower,
    /// Noise explains the difference.
    Same,
    /// The noise is not known.
    Unknown,
}

/// With which caches two times were taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Caches {
    /// Flushed before each product.
    Cold,
    /// As the product before left them.
    Warm,
}

/// What names a row in both records.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Key {
    /// The matrix's name.
    pub matrix: String,
    /// Type of the values.
    pub value: String,
    /// `non_transpose` or `transpose`.
    pub operation: String,
    /// Who.
    pub contender: String,
    /// With which parameters.
    pub params: String,
}

/// A row that has a right result and a time in both records.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pair {
    /// Which.
    #[serde(flatten)]
    pub key: Key,
    /// Which of its times: cold where both records have it.
    pub caches: Caches,
    /// Old median in milliseconds.
    pub old_ms: f64,
    /// New median in milliseconds.
    pub new_ms: f64,
    /// New over old: below 1 the new one is faster.
    pub ratio: f64,
    /// By how much the ratio may differ from 1 through noise; empty where that is not known.
    pub band: Option<f64>,
    /// What follows.
    pub verdict: Verdict,
}

/// A row of one of the records that has no partner to be compared with, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Alone {
    /// Which.
    #[serde(flatten)]
    pub key: Key,
    /// Its status in the old record; empty where it is not there.
    pub old: Option<String>,
    /// Its status in the new record; empty where it is not there.
    pub new: Option<String>,
}

/// The ratios of a contender, or of all.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Who.
    pub contender: String,
    /// How many pairs.
    pub pairs: usize,
    /// Geometric mean of new over old.
    pub geomean: f64,
    /// How many pairs are faster.
    pub faster: usize,
    /// How many pairs are slower.
    pub slower: usize,
}

/// What [`compare`] finds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// What makes the records hard to compare: other GPUs, other matrices of the same name, rows that are there twice.
    pub warnings: Vec<String>,
    /// All contenders together; empty where there is no pair.
    pub overall: Option<Summary>,
    /// Each contender, by name.
    pub contenders: Vec<Summary>,
    /// Rows of both records, in the order of the new one.
    pub pairs: Vec<Pair>,
    /// Rows that were right and are wrong or failed now.
    pub broken: Vec<Alone>,
    /// Other rows that one of the records has no right result with a time for.
    pub alone: Vec<Alone>,
}

impl Comparison {
    /// The pairs that are slower by more than a share (0.05 for 5 %), and more than noise explains; where the noise is
    /// not known it excuses nothing.
    pub fn slower_by(&self, share: f64) -> impl Iterator<Item = &Pair> {
        self.pairs.iter().filter(move |pair| {
            matches!(pair.verdict, Verdict::Slower | Verdict::Unknown) && pair.ratio > 1.0 + share
        })
    }
}

/// Compares each row of a record with its partner in another one.
pub fn compare(old: &Record, new: &Record) -> Comparison {
    let mut warnings = heads(&old.head, &new.head);
    let (old_rows, new_rows) = (keyed("old", old, &mut warnings), keyed("new", new, &mut warnings));
    let mut found = Comparison {
        warnings,
        overall: None,
        contenders: Vec::new(),
        pairs: Vec::new(),
        broken: Vec::new(),
        alone: Vec::new(),
    };
    let mut unlike = BTreeMap::new();
    for row in &new.rows {
        let key = Key::of(row);
        // A row that is there twice counts once.
        if !std::ptr::eq(new_rows[&key], row) {
            continue;
        }
        let Some(&before) = old_rows.get(&key) else {
            found.alone.push(Alone { key, old: None, new: Some(row.status.clone()) });
            continue;
        };
        if (before.rows, before.cols, before.nnz) != (row.rows, row.cols, row.nnz) {
            unlike.insert(key.matrix.clone(), (before, row));
        }
        match pair(&key, before, row) {
            Some(pair) if !unlike.contains_key(&key.matrix) => found.pairs.push(pair),
            _ => {
                let broken = before.is_ok() && is_broken(row);
                let alone = Alone { key, old: Some(before.status.clone()), new: Some(row.status.clone()) };
                if broken { &mut found.broken } else { &mut found.alone }.push(alone);
            }
        }
    }
    for row in &old.rows {
        let key = Key::of(row);
        if !new_rows.contains_key(&key) && std::ptr::eq(old_rows[&key], row) {
            found.alone.push(Alone { key, old: Some(row.status.clone()), new: None });
        }
    }
    for (matrix, (before, now)) in unlike {
        found.warnings.push(format!(
            "{matrix} is another matrix now and is not compared: {} x {} with {} entries, before {} x {} with {}",
            now.rows, now.cols, now.nnz, before.rows, before.cols, before.nnz
        ));
    }
    found.overall = summary("all", &found.pairs.iter().collect::<Vec<_>>());
    let mut contenders: BTreeMap<&str, Vec<&Pair>> = BTreeMap::new();
    for pair in &found.pairs {
        contenders.entry(&pair.key.contender).or_default().push(pair);
    }
    found.contenders = contenders.iter().filter_map(|(name, pairs)| summary(name, pairs)).collect();
    found
}

impl Key {
    fn of(row: &Row) -> Key {
        Key {
            matrix: row.matrix.clone(),
            value: row.value.clone(),
            operation: row.operation.clone(),
            contender: row.contender.clone(),
            params: all_params(row),
        }
    }
}

/// What the heads say against comparing.
fn heads(old: &Head, new: &Head) -> Vec<String> {
    let (old_cusparse, new_cusparse) = (old.cusparse.join(" and "), new.cusparse.join(" and "));
    let threads = [old, new].map(|head| match head.cpu_threads {
        0 => head.cpu.clone(),
        threads => format!("{}, {threads} threads", head.cpu),
    });
    let facts = [
        ("GPU", &old.gpu, &new.gpu),
        ("architecture", &old.arch, &new.arch),
        ("driver", &old.driver, &new.driver),
        ("CUDA of the driver", &old.cuda, &new.cuda),
        ("NVRTC", &old.nvrtc, &new.nvrtc),
        ("cuSPARSE", &old_cusparse, &new_cusparse),
        ("CPU", &threads[0], &threads[1]),
    ];
    let shown = |text: &str| if text.is_empty() { "unknown".to_owned() } else { text.to_owned() };
    let mut warnings: Vec<String> = facts
        .into_iter()
        .filter(|(_, old, new)| old != new)
        .map(|(what, old, new)| format!("the {what} is another one: {}, before {}", shown(new), shown(old)))
        .collect();
    let roofs = [old.copy_gb_per_s, new.copy_gb_per_s];
    if roofs.iter().all(|roof| *roof > 0.0) && (roofs[1] / roofs[0] - 1.0).abs() > 2.0 * RUN_TO_RUN {
        warnings.push(format!("the copy roof differs: {:.0} GB/s, before {:.0}", roofs[1], roofs[0]));
    }
    warnings
}

/// The rows by name; of rows with the same name the last, with a warning.
fn keyed<'a>(which: &str, record: &'a Record, warnings: &mut Vec<String>) -> BTreeMap<Key, &'a Row> {
    let mut rows = BTreeMap::new();
    let mut twice = 0;
    for row in &record.rows {
        match rows.entry(Key::of(row)) {
            Entry::Vacant(place) => {
                place.insert(row);
            }
            Entry::Occupied(mut place) => {
                place.insert(row);
                twice += 1;
            }
        }
    }
    if twice > 0 {
        warnings.push(format!("the {which} record has {twice} rows more than once; the last of each counts"));
    }
    rows
}

fn is_broken(row: &Row) -> bool {
    row.status.starts_with("wrong") || row.status.starts_with("failed")
}

fn pair(key: &Key, old: &Row, new: &Row) -> Option<Pair> {
    if !(old.is_ok() && new.is_ok()) {
        return None;
    }
    let times = |old: Option<f64>, new: Option<f64>| {
        let time = |ms: &f64| ms.is_finite() && *ms > 0.0;
        Some((old.filter(time)?, new.filter(time)?))
    };
    let (caches, (old_ms, new_ms)) = match times(old.cold_ms, new.cold_ms) {
        Some(times) => (Caches::Cold, times),
        None => (Caches::Warm, times(old.warm_ms, new.warm_ms)?),
    };
    let ratio = new_ms / old_ms;
    let band = band([old, new]);
    Some(Pair { key: key.clone(), caches, old_ms, new_ms, ratio, band, verdict: verdict(ratio, band) })
}

/// How far a ratio may be from 1 through noise.
fn band(rows: [&Row; 2]) -> Option<f64> {
    let mut variance = 0.0;
    for row in rows {
        let spread = row.spread.filter(|spread| spread.is_finite() && *spread >= 0.0)?;
        let samples = row.samples?;
        let (_, factor) = BANDS.iter().rfind(|(least, _)| *least <= samples)?;
        variance += (factor * spread).powi(2) / f64::from(samples);
    }
    Some(RUN_TO_RUN + variance.sqrt())
}

fn verdict(ratio: f64, band: Option<f64>) -> Verdict {
    match band {
        None => Verdict::Unknown,
        Some(band) if ratio > 1.0 + band => Verdict::Slower,
        Some(band) if ratio < 1.0 / (1.0 + band) => Verdict::Faster,
        Some(_) => Verdict::Same,
    }
}

fn summary(contender: &str, pairs: &[&Pair]) -> Option<Summary> {
    let count = |verdict| pairs.iter().filter(|pair| pair.verdict == verdict).count();
    Some(Summary {
        contender: contender.to_owned(),
        pairs: pairs.len(),
        geomean: geomean(pairs.iter().map(|pair| pair.ratio))?,
        faster: count(Verdict::Faster),
        slower: count(Verdict::Slower),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::quartiles::Quartiles;

    fn row(contender: &str, cold_ms: f64) -> Row {
        Row {
            matrix: "m".into(),
            contender: contender.into(),
            nnz: 9,
            cold_ms: Some(cold_ms),
            spread: Some(0.1),
            samples: Some(25),
            status: "ok".into(),
            ..Row::default()
        }
    }

    fn record(rows: Vec<Row>) -> Record {
        Record { rows, ..Record::default() }
    }

    #[test]
    fn verdicts_at_the_edge_of_the_noise() {
        // 0.01 + 1.95 · √(2 · 0.01 / 25)
        let edge = 1.0 + 0.01 + 1.95 * (0.02f64 / 25.0).sqrt();
        let verdict = |ratio: f64| {
            let found = compare(&record(vec![row("ours:a", 2.0)]), &record(vec![row("ours:a", 2.0 * ratio)]));
            found.pairs[0].verdict
        };
        assert_eq!(verdict(edge + 1e-6), Verdict::Slower);
        assert_eq!(verdict(edge - 1e-6), Verdict::Same);
        assert_eq!(verdict(1.0 / (edge - 1e-6)), Verdict::Same);
        assert_eq!(verdict(1.0 / (edge + 1e-6)), Verdict::Faster);
    }

    /// So many normal samples around 1.
    fn noisy(random: &mut impl FnMut() -> f64, count: u32) -> Row {
        let mut normal = || {
            let (radius, angle) = ((-2.0 * (1.0 - random()).ln()).sqrt(), std::f64::consts::TAU * random());
            1.0 + 0.02 * radius * angle.cos()
        };
        let quartiles = Quartiles::of((0..count).map(|_| normal()).collect()).unwrap();
        Row { spread: Some(quartiles.spread()), samples: Some(count), ..row("ours:a", quartiles.median) }
    }

    #[test]
    fn noise_alone_is_seldom_taken_for_a_change() {
        let mut state = 1u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1u64 << 53) as f64
        };
        for samples in [(2, 2), (3, 3), (4, 4), (5, 5), (9, 9), (11, 11), (24, 24), (75, 75), (3, 25)] {
            let mut changed = 0;
            for _ in 0..4000 {
                let rows = [noisy(&mut random, samples.0), noisy(&mut random, samples.1)];
                let band = band([&rows[0], &rows[1]]).map(|band| band - RUN_TO_RUN);
                let ratio = rows[1].cold_ms.unwrap() / rows[0].cold_ms.unwrap();
                changed += i32::from(verdict(ratio, band) != Verdict::Same);
            }
            // 5 % of 4,000 and three standard deviations; fewer where the next number has a narrower band.
            let most = if samples.0 == samples.1 { 242 } else { 340 };
            assert!((100..=most).contains(&changed), "{samples:?}: {changed} of 4000");
        }
    }

    #[test]
    fn unknown_noise_decides_nothing_and_excuses_nothing() {
        for samples in [None, Some(1)] {
            let old = record(vec![Row { samples, ..row("ours:a", 1.0) }]);
            let found = compare(&old, &record(vec![row("ours:a", 1.2)]));
            assert_eq!((found.pairs[0].verdict, found.pairs[0].band), (Verdict::Unknown, None));
            assert_eq!((found.slower_by(0.1).count(), found.slower_by(0.3).count()), (1, 0));
        }
    }

    #[test]
    fn who_has_no_partner() {
        let wrong = |contender| Row { status: "wrong: 1 row".into(), ..row(contender, 1.0) };
        let old = record(vec![
            row("ours:gone", 1.0),
            row("ours:broken", 1.0),
            wrong("ours:mended"),
            row("ours:a", 4.0),
        ]);
        let new = record(vec![
            wrong("ours:broken"),
            row("ours:new", 1.0),
            row("ours:mended", 1.0),
            row("ours:a", 1.0),
        ]);
        let found = compare(&old, &new);
        let names =
            |alone: &[Alone]| alone.iter().map(|alone| alone.key.contender.clone()).collect::<Vec<_>>();
        assert_eq!(names(&found.broken), ["ours:broken"]);
        assert_eq!(names(&found.alone), ["ours:new", "ours:mended", "ours:gone"]);
        let overall = found.overall.unwrap();
        assert_eq!((overall.pairs, overall.geomean, overall.faster), (1, 0.25, 1));
        assert_eq!(found.contenders.len(), 1);
    }

    #[test]
    fn what_cannot_be_compared_is_said() {
        let mut old = record(vec![row("ours:a", 1.0), row("ours:a", 3.0), row("ours:b", 1.0)]);
        old.rows[2].matrix = "other".into();
        let mut new = record(vec![row("ours:a", 3.0), Row { nnz: 10, ..old.rows[2].clone() }]);
        (old.head.gpu, new.head.gpu) = ("one".into(), "another".into());
        (old.head.copy_gb_per_s, new.head.copy_gb_per_s) = (4000.0, 4200.0);
        let found = compare(&old, &new);
        let said = found.warnings.join("\n");
        for part in [
            "another, before one",
            "4200 GB/s, before 4000",
            "1 rows more than once",
            "other is another matrix",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert_eq!((found.pairs.len(), found.pairs[0].old_ms, found.alone.len()), (1, 3.0, 1));
    }

    #[test]
    fn warm_times_where_cold_ones_are_missing() {
        let warm = Row { cold_ms: None, warm_ms: Some(1.0), ..row("ours:a", 0.0) };
        let both = Row { warm_ms: Some(2.0), ..row("ours:a", 8.0) };
        let found = compare(&record(vec![warm.clone()]), &record(vec![both]));
        assert_eq!((found.pairs[0].caches, found.pairs[0].ratio), (Caches::Warm, 2.0));
        let found = compare(&record(vec![warm]), &record(vec![row("ours:a", 1.0)]));
        assert!(found.pairs.is_empty() && found.overall.is_none() && found.alone.len() == 1);
    }

    proptest! {
        #[test]
        fn exchanging_the_records_turns_the_verdict(
            (old, new) in (0.001..10.0f64, 0.001..10.0f64), spread in 0.0..2.0f64, samples in 2u32..100
        ) {
            let of = |ms| record(vec![Row { spread: Some(spread), samples: Some(samples), ..row("ours:a", ms) }]);
            let there = compare(&of(old), &of(new)).pairs[0].verdict;
            let back = compare(&of(new), &of(old)).pairs[0].verdict;
            let turned = match there {
                Verdict::Faster => Verdict::Slower,
                Verdict::Slower => Verdict::Faster,
                other => other,
            };
            prop_assert_eq!(back, turned);
            prop_assert_eq!(compare(&of(old), &of(old)).pairs[0].verdict, Verdict::Same);
        }
    }
}
