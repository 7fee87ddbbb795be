//! Templates into CUDA text: a generated prelude in front of an unchanged body.

use std::fmt::Write;

use crate::config::{KernelConfig, Loads};
use crate::copies::MatrixCopy;
use crate::expr::{Expr, Variable};
use crate::features::Features;
use crate::operators::Operators;
use crate::parameter::cuda_constant;
use crate::program::Arg;
use crate::types::{IndexType, Operation, ValueKind, ValueType};

/// The helper files that a template may include, by the name in its `#include` line.
const HELPERS: &[(&str, &str)] = &[
    ("prelude/types.cuh", include_str!("../templates/prelude/types.cuh")),
    ("prelude/f16.cuh", include_str!("../templates/prelude/f16.cuh")),
    ("prelude/bf16.cuh", include_str!("../templates/prelude/bf16.cuh")),
    ("prelude/integers.cuh", include_str!("../templates/prelude/integers.cuh")),
    ("prelude/bool.cuh", include_str!("../templates/prelude/bool.cuh")),
    ("prelude/complex.cuh", include_str!("../templates/prelude/complex.cuh")),
    (ON_DEVICE, include_str!("../templates/prelude/on_device.cuh")),
    (ARITHMETIC, include_str!("../templates/prelude/arithmetic.cuh")),
    (PLUS_TIMES, include_str!("../templates/prelude/plus_times.cuh")),
    (MAPPED_X, include_str!("../templates/prelude/mapped_x.cuh")),
    (ACCUMULATING, include_str!("../templates/prelude/accumulating.cuh")),
    (SCALING, include_str!("../templates/prelude/scaling.cuh")),
    (DOT, include_str!("../templates/prelude/dot.cuh")),
    ("prelude/group.cuh", include_str!("../templates/prelude/group.cuh")),
    ("prelude/group_rows.cuh", include_str!("../templates/prelude/group_rows.cuh")),
    ("prelude/unsigned.cuh", include_str!("../templates/prelude/unsigned.cuh")),
    ("prelude/stream.cuh", include_str!("../templates/prelude/stream.cuh")),
    ("prelude/loaded.cuh", include_str!("../templates/prelude/loaded.cuh")),
    ("prelude/x_packets.cuh", include_str!("../templates/prelude/x_packets.cuh")),
    ("prelude/held.cuh", include_str!("../templates/prelude/held.cuh")),
    ("prelude/bulk_copy.cuh", include_str!("../templates/prelude/bulk_copy.cuh")),
    ("prelude/async_copy.cuh", include_str!("../templates/prelude/async_copy.cuh")),
    ("prelude/stage_async.cuh", include_str!("../templates/prelude/stage_async.cuh")),
    ("prelude/stage.cuh", include_str!("../templates/prelude/stage.cuh")),
    ("prelude/segmented.cuh", include_str!("../templates/prelude/segmented.cuh")),
    ("prelude/first_rows.cuh", include_str!("../templates/prelude/first_rows.cuh")),
    ("prelude/spanning_row.cuh", include_str!("../templates/prelude/spanning_row.cuh")),
    ("prelude/fetch.cuh", include_str!("../templates/prelude/fetch.cuh")),
    ("prelude/block.cuh", include_str!("../templates/prelude/block.cuh")),
    ("prelude/row_part.cuh", include_str!("../templates/prelude/row_part.cuh")),
    ("prelude/tile.cuh", include_str!("../templates/prelude/tile.cuh")),
    ("prelude/shares.cuh", include_str!("../templates/prelude/shares.cuh")),
    ("prelude/thread_sort.cuh", include_str!("../templates/prelude/thread_sort.cuh")),
    ("prelude/column_sums.cuh", include_str!("../templates/prelude/column_sums.cuh")),
    ("prelude/transposed.cuh", include_str!("../templates/prelude/transposed.cuh")),
    ("prelude/slots.cuh", include_str!("../templates/prelude/slots.cuh")),
    ("prelude/ell.cuh", include_str!("../templates/prelude/ell.cuh")),
    ("prelude/row_blocks.cuh", include_str!("../templates/prelude/row_blocks.cuh")),
    ("prelude/search.cuh", include_str!("../templates/prelude/search.cuh")),
    ("prelude/transposed_copy.cuh", include_str!("../templates/prelude/transposed_copy.cuh")),
    ("prelude/upper_triangle.cuh", include_str!("../templates/prelude/upper_triangle.cuh")),
    ("prelude/expanded_copy.cuh", include_str!("../templates/prelude/expanded_copy.cuh")),
    ("prelude/mirror.cuh", include_str!("../templates/prelude/mirror.cuh")),
    ("prelude/diagonals.cuh", include_str!("../templates/prelude/diagonals.cuh")),
    ("prelude/jagged_diagonals.cuh", include_str!("../templates/prelude/jagged_diagonals.cuh")),
    ("primitives/block_scan.cuh", include_str!("../templates/primitives/block_scan.cuh")),
    ("primitives/grid_scan.cuh", include_str!("../templates/primitives/grid_scan.cuh")),
    ("primitives/partition.cuh", include_str!("../templates/primitives/partition.cuh")),
    ("primitives/radix_sort.cuh", include_str!("../templates/primitives/radix_sort.cuh")),
    ("primitives/grid_scan_kernels.cuh", include_str!("../templates/primitives/grid_scan_kernels.cuh")),
    ("primitives/value_encoding.cuh", include_str!("../templates/primitives/value_encoding.cuh")),
    ("primitives/value_table_kernels.cuh", include_str!("../templates/primitives/value_table_kernels.cuh")),
    ("primitives/radix_sort_kernels.cuh", include_str!("../templates/primitives/radix_sort_kernels.cuh")),
];

/// What stands in for the generated prelude where a template is opened in an editor.
const DEFAULT_PRELUDE: &str = "prelude/default.cuh";

/// How a kernel is given a number that lies in device memory.
const ON_DEVICE: &str = "prelude/on_device.cuh";

/// What products are made of; what rows are reduced with; how they reach y, and how they do where they are no sums of
/// products.
const ARITHMETIC: &str = "prelude/arithmetic.cuh";
/// What stands before all that loads, where the configuration says so.
const CACHED_LOADS: &str = "prelude/cached_loads.cuh";
const PLUS_TIMES: &str = "prelude/plus_times.cuh";
/// How entries of x are kept until they are combined.
const MAPPED_X: &str = "prelude/mapped_x.cuh";
const SCALING: &str = "prelude/scaling.cuh";
const ACCUMULATING: &str = "prelude/accumulating.cuh";
/// Where what is stored is added up over the rows.
const DOT: &str = "prelude/dot.cuh";

/// The arguments that a product from CSR begins with.
pub(crate) fn csr_product_args(config: &KernelConfig) -> Vec<Arg> {
    let accumulator = config.types().accumulator;
    vec![
        Arg::Size(Variable::NumRows.into(), IndexType::U32),
        Arg::RowOffsets,
        Arg::ColIndices,
        Arg::Values,
        Arg::X,
        Arg::Y,
        Arg::Alpha(accumulator),
        Arg::Beta(accumulator),
    ]
}

/// Roundings that a term of `group_row_product` passes through: the terms of a lane's step, the lane's steps (one more
/// where the first access is aligned), the tree over the lanes, then alpha, beta and two conversions.
pub(crate) fn group_depth(threads_per_vector: u32, unroll: u32) -> Expr {
    let steps = Expr::from(Variable::RowNnz).div_ceil(threads_per_vector * unroll) + 1;
    steps + unroll + threads_per_vector.ilog2() + 4
}

/// The source of a product.
pub(crate) fn program_source(config: &KernelConfig) -> String {
    let types = config.types();
    let scaling = config.scaling();
    let spec = config.algorithm().spec();
    let mut constants = constant("int", "threads_per_block", config.threads_per_block());
    for (parameter, value) in spec.parameters.iter().zip(config.algorithm().parameter_values()) {
        constants += &constant("int", parameter.name, value);
    }
    constants += &constant("Coefficient", "alpha", format_args!("Coefficient::{}", scaling.alpha.cuda()));
    constants += &constant("Coefficient", "beta", format_args!("Coefficient::{}", scaling.beta.cuda()));
    if config.operation().is_of_triangle() {
        let operation = config.operation();
        let sign = if operation == Operation::SkewSymmetric { -1 } else { 1 };
        constants += &constant("int", "mirror_sign", sign);
        constants += &constant("bool", "mirror_conjugates", operation == Operation::Hermitian);
    }
    let values = [types.value, types.x, types.y, types.accumulator];
    let entries =
        [("ValueT", types.value), ("XT", types.x), ("YT", types.y)].map(|(name, t)| (name, t.cuda()));
    let others = [
        ("AccumT", types.accumulator.cuda_sum()),
        ("OffsetT", types.offset.cuda()),
        ("IndexT", types.index.cuda()),
    ];
    // What the user stores with says what BetaT is.
    let factors = [("AlphaT", scaling.alpha.cuda_type()), ("BetaT", scaling.beta.cuda_type())];
    let factors = if config.user_functions().stores() { &factors[..1] } else { &factors[..] };
    let copy = MatrixCopy::of(config).map_or(&[][..], MatrixCopy::helpers);
    let file = format!("{}.cu", spec.name);
    let aliases = [&entries[..], &others[..], factors].concat();
    let prelude = Prelude { values: &values, aliases: &aliases, constants: &constants };
    assemble(&config.to_string(), &prelude, Some(config), copy, &file, spec.template)
}

/// A helper of a product with what the configuration combines, reduces and stores with: behind arithmetic what rows are
/// reduced with.
fn append_of_product(text: &mut String, name: &str, operators: &Operators, reduces: bool) {
    match name {
        ARITHMETIC => {
            // Products over other semirings multiply and add in one step nowhere.
            if operators.is_scaled() {
                append(text, name, helper(name));
            }
            let functions = operators.cuda_helpers();
            if !functions.is_empty() {
                append(text, "functions", &functions);
            }
            match operators.are_plus_times() {
                true if reduces => append(text, PLUS_TIMES, helper(PLUS_TIMES)),
                true => {}
                false => append(text, "semiring", &operators.cuda()),
            }
        }
        MAPPED_X if operators.maps_x() => append(text, "mapped_x", &operators.cuda_mapped_x()),
        SCALING => match operators.cuda_store(helper(DOT)) {
            Some(store) => append(text, "epilogue", &store),
            None if operators.is_scaled() => append(text, name, helper(name)),
            None => append(text, ACCUMULATING, helper(ACCUMULATING)),
        },
        _ => append(text, name, helper(name)),
    }
}

/// The source of the vector operations for entries of one type.
pub(crate) fn vector_source(entry: ValueType, threads_per_block: u32) -> String {
    let constants = constant("int", "threads_per_block", threads_per_block);
    let title = format!("vector threads_per_block={threads_per_block} x={entry}");
    let template = include_str!("../templates/vector.cu");
    let accumulator = entry.narrowest_accumulator();
    let aliases = [("XT", entry.cuda()), ("AccumT", accumulator.cuda_sum())];
    let prelude = Prelude { values: &[entry, accumulator], aliases: &aliases, constants: &constants };
    assemble(&title, &prelude, None, &[], "vector.cu", template)
}

/// Blocks that share the shapes of dense blocks, in the analysis of a group of rows.
pub(crate) const PARTS_OF_GROUP: u32 = 3;

/// The source of the kernels that find a structure's features.
pub(crate) fn analysis_source(offset: IndexType, index: IndexType, threads_per_block: u32) -> String {
    let numbers = [
        ("log_short_stretch", Features::STRETCH[0].ilog2()),
        ("log_long_stretch", Features::STRETCH[1].ilog2()),
        ("log_short_bits", Features::LOG_BITS[0]),
        ("log_long_bits", Features::LOG_BITS[1]),
        ("cols_per_sector", Features::COLS_PER_SECTOR),
        ("rows_per_group", Features::ROWS_PER_GROUP),
        ("max_group_entries", Features::MAX_GROUP_ENTRIES as u32),
        ("gathers_per_row", Features::GATHERS_PER_ROW),
        ("gathers_in_order", Features::GATHERS_IN_ORDER),
        ("num_shapes", Features::BLOCK_SHAPES.len() as u32),
        ("degree_sample", Features::DEGREE_SAMPLE as u32),
        ("few_samples", Features::FEW_SAMPLES as u32),
        ("log_degree_places", Features::LOG_DEGREE_PLACES),
        ("compared_rows", Features::COMPARED_ROWS as u32),
        ("compared_diagonals", Features::COMPARED_DIAGONALS as u32),
        ("sampled_values", Features::SAMPLED_VALUES as u32),
        ("log_block_cols", Features::LOG_BLOCK_COLS),
        ("parts_of_group", PARTS_OF_GROUP),
        ("samples_of_small", Features::SAMPLES_OF_SMALL as u32),
    ];
    let mut constants = constant("int", "threads_per_block", threads_per_block);
    constants.extend(numbers.map(|(name, number)| constant("int", name, number)));
    constants += &constant("uint32_t", "hash_factor", format_args!("{:#x}u", Features::HASH_FACTOR));
    // Four bits a shape.
    let packed = |of: fn(&(u32, u32)) -> u32| {
        Features::BLOCK_SHAPES.iter().rev().fold(0u64, |bits, shape| bits << 4 | u64::from(of(shape)))
    };
    for (name, bits) in [("shape_rows", packed(|shape| shape.0)), ("shape_cols", packed(|shape| shape.1))] {
        constants += &constant("uint64_t", name, format_args!("{bits:#x}u"));
    }
    let title = format!("analysis threads_per_block={threads_per_block} offset={offset} index={index}");
    let template = include_str!("../templates/analysis.cu");
    let aliases = [("OffsetT", offset.cuda()), ("IndexT", index.cuda())];
    let prelude = Prelude { values: &[], aliases: &aliases, constants: &constants };
    assemble(&title, &prelude, None, &[], "analysis.cu", template)
}

/// The source of the kernel that hashes the arrays of a structure.
pub(crate) fn fingerprint_source(threads_per_block: u32) -> String {
    let constants = constant("int", "threads_per_block", threads_per_block);
    let title = format!("fingerprint threads_per_block={threads_per_block}");
    let template = include_str!("../templates/fingerprint.cu");
    let prelude = Prelude { values: &[], aliases: &[], constants: &constants };
    assemble(&title, &prelude, None, &[], "fingerprint.cu", template)
}

fn constant(cuda_type: &str, name: &str, value: impl std::fmt::Display) -> String {
    format!("constexpr {cuda_type} {} = {value};\n", cuda_constant(name))
}

/// What a source begins with: types of numbers, names of types, constants.
struct Prelude<'a> {
    values: &'a [ValueType],
    aliases: &'a [(&'a str, &'a str)],
    constants: &'a str,
}

/// What the language does not have of a type.
fn type_helper(value: ValueType) -> Option<&'static str> {
    match value {
        ValueType::F16 => Some("prelude/f16.cuh"),
        ValueType::Bf16 => Some("prelude/bf16.cuh"),
        _ => match value.kind() {
            ValueKind::Integer => Some("prelude/integers.cuh"),
            ValueKind::Bool => Some("prelude/bool.cuh"),
            ValueKind::Complex => Some("prelude/complex.cuh"),
            ValueKind::Float => None,
        },
    }
}

/// Prelude, the helpers that the template includes and others, the template; `product` where it is one. `#line` makes
/// NVRTC name template files and lines in its messages.
fn assemble(
    title: &str,
    prelude: &Prelude<'_>,
    product: Option<&KernelConfig>,
    others: &'static [&'static str],
    file: &str,
    template: &str,
) -> String {
    let mut text = format!("// {title}\n#define SPMV_GENERATED 1\n");
    append(&mut text, "prelude/types.cuh", helper("prelude/types.cuh"));
    let reads_factors = product.is_some_and(|config| config.scaling().is_on_device());
    let used = |name: &str| {
        (name == ON_DEVICE && reads_factors)
            || prelude.values.iter().any(|&value| type_helper(value) == Some(name))
    };
    for (name, body) in HELPERS.iter().filter(|(name, _)| used(name)) {
        append(&mut text, name, body);
    }
    text.push_str("#line 1 \"generated\"\n");
    for (name, cuda_type) in prelude.aliases {
        writeln!(text, "using {name} = {cuda_type};").expect("writing to a String succeeds");
    }
    text.push_str(prelude.constants);
    if product.is_some_and(|config| config.loads() == Loads::Cached) {
        append(&mut text, CACHED_LOADS, include_str!("../templates/prelude/cached_loads.cuh"));
    }
    let mut helpers: Vec<&str> = included(template).collect();
    helpers.extend(others.iter().filter(|name| !included(template).any(|included| included == **name)));
    let reduces =
        helpers.iter().map(|name| helper(name)).chain([template]).any(|part| part.contains("reduce("));
    let operators = product.map(KernelConfig::operators);
    for name in helpers {
        match &operators {
            Some(operators) => append_of_product(&mut text, name, operators, reduces),
            None => append(&mut text, name, helper(name)),
        }
    }
    append(&mut text, file, template);
    text
}

fn append(text: &mut String, file: &str, body: &str) {
    writeln!(text, "#line 1 \"{file}\"").expect("writing to a String succeeds");
    text.push_str(body);
}

fn included(template: &str) -> impl Iterator<Item = &str> {
    let includes = template.lines().filter_map(|line| line.strip_prefix("#include \"")?.strip_suffix('"'));
    includes.filter(|name| *name != DEFAULT_PRELUDE)
}

fn helper(name: &str) -> &'static str {
    let found = HELPERS.iter().find(|(helper, _)| *helper == name);
    found.unwrap_or_else(|| panic!("templates include only what HELPERS lists, and {name} is not there")).1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::{Algorithm, AlgorithmSpec};
    use crate::program::Program;

    #[test]
    fn the_template_is_unchanged() {
        for spec in Algorithm::ALL {
            let config = KernelConfig::builder((spec.default)()).build().unwrap();
            assert!(config.program().source.ends_with(spec.template));
        }
    }

    /// NVRTC 13.0 takes them for functions of the host; 13.5 does not.
    #[test]
    fn no_lambda_is_generic() {
        let others = [
            include_str!("../templates/analysis.cu"),
            include_str!("../templates/fingerprint.cu"),
            include_str!("../templates/vector.cu"),
        ];
        let helpers = HELPERS.iter().map(|(_, text)| *text);
        for text in helpers.chain(Algorithm::ALL.iter().map(|spec| spec.template)).chain(others) {
            let parameters = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
            parameters.for_each(|listed| assert!(!listed.contains("auto "), "{listed}"));
        }
    }

    /// Kernels are launched while the one ahead of them still ends.
    #[test]
    fn every_kernel_awaits_its_stream_first() {
        let others = [
            include_str!("../templates/analysis.cu"),
            include_str!("../templates/fingerprint.cu"),
            include_str!("../templates/vector.cu"),
        ];
        let helpers = HELPERS.iter().map(|(_, text)| *text);
        let mut kernels = 0;
        for text in helpers.chain(Algorithm::ALL.iter().map(|spec| spec.template)).chain(others) {
            for kernel in text.split("__global__ ").skip(1) {
                let (head, body) = kernel.split_once(") {\n").expect("a kernel has a body");
                let first = body.lines().next().map(str::trim);
                let head = head.split('(').nth(1).unwrap_or(head);
                assert_eq!(
                    first,
                    Some("await_stream();"),
                    "a kernel begins with the line await_stream(): {head}"
                );
                kernels += 1;
            }
        }
        assert!(kernels > 200, "{kernels}");
    }

    /// The default of every algorithm, for each operation that it computes and f32 has.
    fn every_program() -> impl Iterator<Item = (&'static AlgorithmSpec, Program)> {
        let all = Algorithm::ALL
            .iter()
            .flat_map(|spec| spec.operations.iter().map(move |operation| (spec, *operation)));
        let of_f32 = all.filter(|(_, operation)| *operation != Operation::Hermitian);
        of_f32.map(|(spec, operation)| {
            (spec, KernelConfig::builder((spec.default)()).operation(operation).build().unwrap().program())
        })
    }

    #[test]
    fn every_pass_names_a_kernel_of_the_source() {
        for (spec, program) in every_program() {
            for pass in program.prepare.iter().chain(&program.multiply) {
                let copies = ["transposed_copy", "expanded_copy", "upper_triangle"];
                let prefixes = [&[spec.name, "scan", "sort", "jagged", "diagonals"][..], &copies].concat();
                let prefixes = prefixes.iter().map(|prefix| format!("spmv_{prefix}_"));
                let named = format!("{}_", pass.kernel);
                assert!(prefixes.clone().any(|prefix| named.starts_with(&prefix)), "{}", pass.kernel);
                assert!(program.source.contains(&format!("\n{}(", pass.kernel)), "{}", pass.kernel);
            }
        }
    }

    /// A launcher allocates, runs and reads back in the order of the data: nothing may depend on what comes later.
    #[test]
    fn prepare_passes_know_what_they_need() {
        for (spec, program) in every_program() {
            assert!(program.counts.is_sorted_by_key(|count| count.after), "{}", spec.name);
            for count in &program.counts {
                assert!(count.after < program.prepare.len() && count.buffer < program.buffers.len());
            }
            let known_before =
                |index: usize| program.counts.iter().filter(|count| count.after < index).count();
            let multiply = program.multiply.iter().map(|pass| (program.prepare.len(), pass));
            for (index, pass) in program.prepare.iter().enumerate().chain(multiply) {
                let sizes = pass.args.iter().filter_map(|arg| match arg {
                    Arg::Size(size, _) => Some(size),
                    Arg::Buffer(buffer) => {
                        let buffer = &program.buffers[*buffer];
                        assert!(!buffer.scratch || index < program.prepare.len(), "{} is gone", buffer.name);
                        Some(&buffer.bytes)
                    }
                    _ => None,
                });
                for size in sizes.chain([&pass.grid]) {
                    assert!(size.counts_needed() <= known_before(index), "{} needs {size}", pass.kernel);
                }
            }
        }
    }

    /// What stands in for the generated prelude in an editor declares all that a template may use: its own
    /// parameters beside its includes, the rest in `default.cuh`.
    #[test]
    fn templates_open_in_an_editor() {
        for spec in Algorithm::ALL {
            for parameter in spec.parameters {
                let declared = constant("int", parameter.name, parameter.default);
                assert!(spec.template.contains(&declared), "{}.cu lacks `{}`", spec.name, declared.trim());
            }
        }
        let text = include_str!("../templates/prelude/default.cuh");
        for name in
            ["ValueT", "XT", "YT", "AccumT", "OffsetT", "IndexT", "AlphaT", "BetaT", "kAlpha", "kBeta"]
        {
            assert!(text.contains(&format!(" {name} = ")), "default.cuh lacks {name}");
        }
    }
}
