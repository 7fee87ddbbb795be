//! What differs from a configuration in one setting.

use spmv_codegen::{Algorithm, COMMON_KEYS, KernelConfig};

/// Settings that every algorithm has and that change nothing but how long a product takes.
const COMMON: [&str; 2] = ["loads", "threads_per_block"];

/// What a lane has in flight is this times the first of [`OF_A_ROW`], and what a row has is that times the others: a step in one of
/// those is also made with what keeps the product.
const UNROLL: &str = "unroll";
const OF_A_ROW: [&str; 3] = ["entries_per_step", "lanes_per_row", "threads_per_vector"];

/// Whether a parameter follows from what is in a matrix, not from the device.
fn is_of_the_matrix(parameter: &str) -> bool {
    const BLOCKS_AND_LAYOUT: [&str; 6] = ["block", "block_rows", "block_cols", "col_bits", "piece", "x_kib"];
    Algorithm::FOLLOWING.contains(&parameter) || BLOCKS_AND_LAYOUT.contains(&parameter)
}

/// The configurations that differ from this one in one setting by one step among what is allowed for it: how the matrix is loaded,
/// the block size, a parameter of the algorithm. Those are left out that follow from what is in a matrix: how values and columns
/// are stored, the sizes of blocks, where rows are cut and whether x is copied. With `entries_per_step`, `unroll` changes so that a
/// lane has as much in flight, where that is allowed; with the lanes of a row it may, so that a row has, and there are both.
pub fn neighbours(config: KernelConfig) -> Vec<KernelConfig> {
    let algorithm = config.algorithm();
    let common = COMMON.iter().filter_map(|name| COMMON_KEYS.iter().find(|key| key.name == *name));
    let common = common.map(|key| (key.name, key.of(&config), (key.allowed)()));
    let own = algorithm.spec().parameters.iter().zip(algorithm.parameter_values());
    let own = own.filter(|(parameter, _)| !is_of_the_matrix(parameter.name)).map(|(parameter, value)| {
        (parameter.name, value.to_string(), parameter.allowed.iter().map(u32::to_string).collect())
    });
    let beside = |(key, value, allowed): (&'static str, String, Vec<String>)| {
        let place = allowed.iter().position(|allowed| *allowed == value);
        let places = place.map(|place| [place.checked_sub(1), Some(place + 1)]);
        let steps = places.into_iter().flatten().flatten();
        steps.filter_map(|place| Some((key, allowed.get(place)?.clone()))).collect::<Vec<_>>()
    };
    let unroll = value_of(algorithm, UNROLL);
    let changed = |(key, value): (&str, String)| {
        let mut plain = config.to_builder();
        let plain = plain.set(key, &value).is_ok().then_some(plain);
        let kept = || {
            OF_A_ROW.contains(&key).then_some(())?;
            let in_flight = value_of(algorithm, key)? * unroll?;
            let now = value.parse::<u32>().ok().filter(|now| in_flight % now == 0)?;
            let mut kept = plain.clone()?;
            kept.set(UNROLL, &(in_flight / now).to_string()).is_ok().then_some(kept)
        };
        let kept = kept();
        let plain = plain.filter(|_| key != OF_A_ROW[0] || kept.is_none());
        plain.into_iter().chain(kept).filter_map(|builder| builder.build().ok()).collect::<Vec<_>>()
    };
    common.chain(own).flat_map(beside).flat_map(changed).collect()
}

/// The name of a setting and its value.
pub(crate) type Setting = (&'static str, String);

/// Settings that one configuration has and another has not, and those that the other has instead.
pub(crate) type Step<'a> = [Vec<&'a Setting>; 2];

/// What leads from one of an algorithm's configurations to another, given all their settings in order: a step as [`neighbours`]
/// makes them, or one in any two settings; `None` where they are further apart.
pub(crate) fn step<'a>(mut from: &'a [Setting], mut to: &'a [Setting]) -> Option<Step<'a>> {
    let mut step = [Vec::new(), Vec::new()];
    while step.iter().all(|side| side.len() <= 2) {
        (from, to) = match (from, to) {
            ([], []) => return step.iter().any(|side| !side.is_empty()).then_some(step),
            ([before, from @ ..], [after, to @ ..]) if before == after => (from, to),
            ([before, from @ ..], []) => {
                step[0].push(before);
                (from, to)
            }
            ([before, from @ ..], [after, ..]) if before < after => {
                step[0].push(before);
                (from, to)
            }
            (from, [after, to @ ..]) => {
                step[1].push(after);
                (from, to)
            }
        };
    }
    None
}

/// The value of a parameter that the algorithm has.
fn value_of(algorithm: Algorithm, name: &str) -> Option<u32> {
    let place = algorithm.spec().parameters.iter().position(|parameter| parameter.name == name)?;
    algorithm.parameter_values().into_iter().nth(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_a_step_away_in_one_setting() {
        for spec in spmv_codegen::Algorithm::ALL {
            let config = KernelConfig::builder((spec.default)()).build().unwrap();
            let found = neighbours(config);
            assert!(found.len() >= 3, "{}: other loads, a smaller and a larger block", spec.name);
            for (place, other) in found.iter().enumerate() {
                assert!(!found[..place].contains(other), "{other}");
                let settings = other.settings();
                let before = config.settings();
                let changed: Vec<_> = settings.iter().filter(|setting| !before.contains(setting)).collect();
                let names: Vec<_> = changed.iter().map(|setting| setting.0).collect();
                let keeps = names.len() == 2 && OF_A_ROW.contains(&names[0]) && names[1] == UNROLL;
                assert!(names.len() == 1 || keeps, "{other}");
                assert!(!is_of_the_matrix(names[0]), "{other}");
            }
        }
        let config = KernelConfig::from_settings("hybrid", [("nnz_per_lane", "2")]).unwrap();
        let text: Vec<_> = neighbours(config).iter().map(ToString::to_string).collect();
        let has = |setting: &str| text.iter().filter(|text| text.contains(setting)).count();
        assert_eq!(
            ["nnz_per_lane=4 ", "nnz_per_lane=8 ", "nnz_per_warp=256 ", "loads=cached"].map(has),
            [1, 0, 1, 1]
        );
        let config =
            KernelConfig::from_settings("special", [("entries_per_step", "4"), ("unroll", "2")]).unwrap();
        let text: Vec<_> = neighbours(config).iter().map(ToString::to_string).collect();
        let has = |entries: u32, unroll: u32| {
            let settings = [format!("entries_per_step={entries} "), format!("unroll={unroll} ")];
            text.iter().any(|text| settings.iter().all(|setting| text.contains(setting)))
        };
        let found =
            [(2, 4), (8, 1), (4, 1), (4, 3), (2, 2), (8, 2)].map(|(entries, unroll)| has(entries, unroll));
        assert_eq!(found, [true, true, true, true, false, false]);
        let config =
            KernelConfig::from_settings("special", [("lanes_per_row", "4"), ("unroll", "2")]).unwrap();
        let text: Vec<_> = neighbours(config).iter().map(ToString::to_string).collect();
        let has = |lanes: u32, unroll: u32| {
            let settings = [format!("lanes_per_row={lanes} "), format!("unroll={unroll} ")];
            text.iter().any(|text| settings.iter().all(|setting| text.contains(setting)))
        };
        let found =
            [(2, 2), (2, 4), (8, 2), (8, 1), (4, 1), (2, 1)].map(|(lanes, unroll)| has(lanes, unroll));
        assert_eq!(found, [true, true, true, true, true, false]);
    }
}
