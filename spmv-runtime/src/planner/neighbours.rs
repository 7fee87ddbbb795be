//! What differs from a configuration in one setting.

use spmv_codegen::{Algorithm, COMMON_KEYS, KernelConfig};

/// Settings that every algorithm has and that change nothing but how long a product takes.
const COMMON: [&str; 2] = ["loads", "threads_per_block"];

/// Parameters whose product is what a lane has in flight: a step in the first keeps it, where the second allows.
const IN_FLIGHT: [&str; 2] = ["entries_per_step", "unroll"];

/// Whether a parameter follows from what is in a matrix, not from the device.
fn is_of_the_matrix(parameter: &str) -> bool {
    const BLOCKS_AND_LAYOUT: [&str; 6] = ["block", "block_rows", "block_cols", "col_bits", "piece", "x_kib"];
    Algorithm::FOLLOWING.contains(&parameter) || BLOCKS_AND_LAYOUT.contains(&parameter)
}

/// The configurations that differ from this one in one setting by one step among what is allowed for it: how the matrix is loaded,
/// the block size, a parameter of the algorithm. Those are left out that follow from what is in a matrix: how values and columns
/// are stored, the sizes of blocks, where rows are cut and whether x is copied. With `entries_per_step`, `unroll` changes so that a
/// lane has as much in flight.
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
    let in_flight = IN_FLIGHT.map(|name| value_of(algorithm, name));
    let changed = |(key, value): (&str, String)| {
        let mut builder = config.to_builder();
        builder.set(key, &value).ok()?;
        if let ([Some(before), Some(other)], Ok(now)) = (in_flight, value.parse::<u32>())
            && key == IN_FLIGHT[0]
        {
            let mut kept = builder.clone();
            let is_allowed = kept.set(IN_FLIGHT[1], &(before * other / now).to_string()).is_ok();
            builder = if is_allowed { kept } else { builder };
        }
        builder.build().ok()
    };
    common.chain(own).flat_map(beside).filter_map(changed).collect()
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
                assert!(names.len() == 1 || names == IN_FLIGHT, "{other}");
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
    }
}
