//! The problems of a record: a matrix, a value type and an operation each, and who is fastest on them.

use std::collections::BTreeMap;

use crate::record::Row;

/// A row and the time that ranks it.
#[derive(Clone, Copy, Debug)]
pub struct Timed<'a> {
    /// The row.
    pub row: &'a Row,
    /// Its time in milliseconds, finite and above 0.
    pub ms: f64,
}

/// The rows of one matrix, value type and operation.
///
/// Times rank rows only where they were taken alike: where any row was measured cold (caches flushed), GPU
/// contenders count with their cold times and those that have none do not count; else everybody counts with the warm
/// time. The CPU counts with the time it has.
#[derive(Clone, Debug)]
pub struct Problem<'a> {
    /// The matrix's name.
    pub matrix: &'a str,
    /// The matrix's class.
    pub class: &'a str,
    /// Type of the values.
    pub value: &'a str,
    /// `non_transpose` or `transpose`.
    pub operation: &'a str,
    /// Everybody's rows, also those without a time or with a wrong result.
    pub rows: Vec<&'a Row>,
    cold: bool,
}

/// The problems among rows, in the order of their first rows.
pub fn problems(rows: &[Row]) -> Vec<Problem<'_>> {
    let mut places = BTreeMap::new();
    let mut problems: Vec<Problem<'_>> = Vec::new();
    for row in rows {
        let key = (&*row.matrix, &*row.value, &*row.operation);
        let place = *places.entry(key).or_insert_with(|| {
            problems.push(Problem {
                matrix: &row.matrix,
                class: &row.class,
                value: &row.value,
                operation: &row.operation,
                rows: Vec::new(),
                cold: false,
            });
            problems.len() - 1
        });
        let problem = &mut problems[place];
        problem.cold |= row.is_ok() && row.side() != "cpu" && row.cold_ms.is_some();
        problem.rows.push(row);
    }
    problems
}

impl<'a> Problem<'a> {
    /// Whether GPU contenders count with their cold times.
    pub fn is_cold(&self) -> bool {
        self.cold
    }

    /// The row's time where it counts: the result is right, and the time was taken like the others'.
    pub fn timed(&self, row: &'a Row) -> Option<Timed<'a>> {
        let ms = if self.cold && row.side() != "cpu" { row.cold_ms } else { row.time_ms() }?;
        (row.is_ok() && ms.is_finite() && ms > 0.0).then_some(Timed { row, ms })
    }

    /// The fastest of a side: `ours`, `cusparse`, `cpu`. The first of equals.
    pub fn best(&self, side: &str) -> Option<Timed<'a>> {
        self.fastest(|row| row.side() == side)
    }

    /// The fastest of ours that is named; where none took part, what the planner chose.
    pub fn ours(&self) -> Option<Timed<'a>> {
        self.best("ours").or_else(|| self.best("auto"))
    }

    /// A contender's fastest row over its parameters.
    pub fn best_of(&self, contender: &str) -> Option<Timed<'a>> {
        self.fastest(|row| row.contender == contender)
    }

    /// The fastest of the rows that are asked for.
    pub fn fastest(&self, asked: impl Fn(&Row) -> bool) -> Option<Timed<'a>> {
        let timed = self.rows.iter().filter(|row| asked(row)).filter_map(|row| self.timed(row));
        timed.reduce(|best, next| if next.ms < best.ms { next } else { best })
    }

    /// As [`Problem::speed_up`], over those paths of cuSPARSE that take CSR as it is, without converting it.
    pub fn speed_up_on_csr(&self) -> Option<f64> {
        let theirs = self.fastest(|row| row.side() == "cusparse" && row.convert_ms.is_none())?;
        ratio(theirs, self.ours()?)
    }

    /// Time of the best cuSPARSE path over that of our best: above 1 we are faster. Finite and above 0.
    pub fn speed_up(&self) -> Option<f64> {
        ratio(self.best("cusparse")?, self.ours()?)
    }
}

/// None where the times are so far apart that f64 has no ratio of them, as no times are that were taken.
fn ratio(theirs: Timed<'_>, ours: Timed<'_>) -> Option<f64> {
    let ratio = theirs.ms / ours.ms;
    (ratio.is_finite() && ratio > 0.0).then_some(ratio)
}

impl Timed<'_> {
    /// 2 nnz / t in GFLOP/s.
    pub fn gflops(&self) -> f64 {
        2.0 * self.row.nnz as f64 / (self.ms * 1e6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(contender: &str, cold_ms: Option<f64>, warm_ms: Option<f64>) -> Row {
        Row { contender: contender.into(), cold_ms, warm_ms, status: "ok".into(), ..Row::default() }
    }

    #[test]
    fn times_are_compared_with_their_like() {
        let mut rows = vec![
            row("ours:a", Some(2.0), Some(0.5)),
            row("ours:b", None, Some(0.1)),
            row("cusparse:c", Some(3.0), None),
            row("cpu:parallel", None, Some(9.0)),
        ];
        let found = problems(&rows);
        let [problem] = &found[..] else { panic!("one problem") };
        assert_eq!(problem.best("ours").map(|best| best.ms), Some(2.0));
        assert_eq!(problem.best("cpu").map(|best| best.ms), Some(9.0));
        assert_eq!(problem.speed_up(), Some(1.5));
        assert_eq!(problem.best_of("ours:b").map(|best| best.ms), None);
        rows[0].status = "wrong: 3 rows".into();
        rows[2].cold_ms = Some(f64::NAN);
        let found = problems(&rows);
        assert!(found[0].best("ours").is_none() && found[0].speed_up().is_none());
        // What the planner chose stands for us where nobody is named.
        rows[0] = row("auto", Some(2.0), None);
        rows[2].cold_ms = Some(5.0);
        assert_eq!(problems(&rows)[0].speed_up(), Some(2.5));
        for (theirs, ours) in [(1e300, 1e-300), (1e-300, 1e300)] {
            (rows[2].cold_ms, rows[0].cold_ms) = (Some(theirs), Some(ours));
            let found = problems(&rows);
            assert_eq!((found[0].speed_up(), found[0].speed_up_on_csr()), (None, None));
        }
    }

    #[test]
    fn problems_are_apart() {
        let with =
            |matrix: &str, value: &str| Row { matrix: matrix.into(), value: value.into(), ..Row::default() };
        let rows = [with("b", "f32"), with("a", "f32"), with("b", "f64"), with("b", "f32")];
        let found: Vec<_> = problems(&rows).iter().map(|p| (p.matrix, p.value, p.rows.len())).collect();
        assert_eq!(found, [("b", "f32", 2), ("a", "f32", 1), ("b", "f64", 1)]);
        assert!(problems(&[]).is_empty());
    }
}
