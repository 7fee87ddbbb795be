//! Several records as one.

use std::collections::{BTreeMap, BTreeSet};

use crate::record::{Record, Row};

/// Why records cannot be joined.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JoinError {
    /// There is none.
    #[error("no record was given; at least one is needed")]
    None,
    /// Their figures are of different machines.
    #[error(
        "figures of `{first}` and `{other}` do not belong together; take the records of each GPU by themselves"
    )]
    Gpus {
        /// The GPU of the first record.
        first: String,
        /// Another one.
        other: String,
    },
    /// A row is in more than one record.
    #[error(
        "{matrix} {value} {operation} {contender} is in more than one of the records; `spmv compare` sets records side by side"
    )]
    Twice {
        /// The row's matrix.
        matrix: String,
        /// Its value type.
        value: String,
        /// Its operation.
        operation: String,
        /// Its contender with parameters.
        contender: String,
    },
}

/// The rows of all records under the head of the first one, with the others' notes, and a note for each fact in which
/// a later head differs. The copy roof stays that of the first.
///
/// # Errors
/// [`JoinError`] where there is no record, GPUs differ or a row is in more than one record.
pub fn join(records: impl IntoIterator<Item = Record>) -> Result<Record, JoinError> {
    let mut records = records.into_iter();
    let mut joined = records.next().ok_or(JoinError::None)?;
    for record in records {
        if record.head.gpu != joined.head.gpu {
            return Err(JoinError::Gpus { first: joined.head.gpu, other: record.head.gpu });
        }
        let there: BTreeSet<_> = joined.rows.iter().map(name).collect();
        if let Some(row) = record.rows.iter().find(|row| there.contains(&name(row))) {
            return Err(JoinError::Twice {
                matrix: row.matrix.clone(),
                value: row.value.clone(),
                operation: row.operation.clone(),
                contender: row.label(),
            });
        }
        let facts = [
            ("date", joined.head.date.clone(), record.head.date),
            ("commit", joined.head.commit.clone(), record.head.commit),
            ("driver", joined.head.driver.clone(), record.head.driver),
            ("NVRTC", joined.head.nvrtc.clone(), record.head.nvrtc),
            ("copy roof", roof(joined.head.copy_gb_per_s), roof(record.head.copy_gb_per_s)),
        ];
        let differing = facts.into_iter().filter(|(_, first, other)| first != other);
        joined.head.notes.extend(differing.map(|(what, first, other)| {
            format!("joined of records of different {what}: {first} above, {other} for some of the rows")
        }));
        joined.head.notes.extend(record.head.notes);
        for version in record.head.cusparse {
            if !joined.head.cusparse.contains(&version) {
                joined.head.cusparse.push(version);
            }
        }
        joined.rows.extend(record.rows);
    }
    Ok(joined)
}

/// The records with every product once: as the last of them has it that measured it.
pub(crate) fn newest(mut records: Vec<Record>) -> Vec<Record> {
    let mut places = BTreeMap::new();
    for (place, record) in records.iter().enumerate() {
        for row in &record.rows {
            let this = (row.is_ok() && row.time_ms().is_some(), place);
            places.entry(name(row)).and_modify(|known| *known = this.max(*known)).or_insert(this);
        }
    }
    for (place, record) in records.iter_mut().enumerate() {
        record.rows.retain(|row| places[&name(row)].1 == place);
    }
    records
}

fn roof(gb_per_s: f64) -> String {
    format!("{gb_per_s:.0} GB/s")
}

fn name(row: &Row) -> (String, String, String, String) {
    (row.matrix.clone(), row.value.clone(), row.operation.clone(), row.label())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Head;

    fn record(gpu: &str, date: &str, contender: &str) -> Record {
        let row =
            Row { contender: contender.into(), warm_ms: Some(1.0), status: "ok".into(), ..Row::default() };
        let head = Head { gpu: gpu.into(), date: date.into(), notes: vec![date.into()], ..Head::default() };
        Record { head, rows: vec![row] }
    }

    #[test]
    fn rows_come_together_and_differences_are_noted() {
        let joined = join([record("a", "one", "ours:x"), record("a", "two", "ours:y")]).unwrap();
        assert_eq!(joined.rows.len(), 2);
        let note = "joined of records of different date: one above, two for some of the rows";
        assert_eq!(joined.head.notes, ["one", note, "two"]);
    }

    #[test]
    fn what_was_measured_again_counts_once() {
        let [mut first, second] = ["one", "two"].map(|date| record("a", date, "ours:x"));
        first.rows.push(Row { contender: "ours:y".into(), ..Row::default() });
        let newest = newest(vec![first.clone(), second.clone()]);
        assert_eq!([&newest[0].rows[..], &newest[1].rows[..]], [&first.rows[1..], &second.rows[..]]);
        assert_eq!(join(newest).unwrap().rows.len(), 2);
        let mut failed = second;
        failed.rows[0].status = "failed: no memory".into();
        assert_eq!(super::newest(vec![first.clone(), failed.clone()])[0].rows, first.rows);
        assert_eq!(join(super::newest(vec![failed.clone(), failed])).unwrap().rows.len(), 1);
    }

    #[test]
    fn what_does_not_belong_together() {
        assert!(matches!(join([]), Err(JoinError::None)));
        let first = record("a", "", "ours:x");
        assert!(matches!(join([first.clone(), record("b", "", "ours:y")]), Err(JoinError::Gpus { .. })));
        assert!(matches!(join([first.clone(), first]), Err(JoinError::Twice { .. })));
    }
}
