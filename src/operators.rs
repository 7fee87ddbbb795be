//! What a configuration combines, reduces and stores with, its types known: the same for a kernel and for the CPU.

use std::fmt::Write;

use crate::config::KernelConfig;
use crate::dot::DotBins;
use crate::function::{Float, Function, FunctionError, Type, Typed, Value, constant, helpers};
use crate::semiring::{Semiring, SemiringNumber};
use crate::types::ValueType;
use crate::user::{FIXED, FIXED_OF_DOT, FUNCTION_KEYS, FunctionKey, MAX_OPERANDS, UserFunctions};

/// ⊗, ⊕, the maps, the epilogue and the dot of a configuration.
///
/// ```
/// use spmv_codegen::KernelConfig;
///
/// let settings = [("combine", "|a, x| (a - x).abs()"), ("epilogue", "|row, sum, y, c| y + c * sum"), ("scalars", "[c]")];
/// let operators = KernelConfig::from_settings("csr_vector", settings)?.operators();
/// let sum = operators.reduce(operators.combine(3.0f32, 1.0, 0), operators.combine(1.0, 5.0, 1));
/// assert_eq!(operators.store(0, sum, 10.0, &[0.5]), 13.0);
/// # Ok::<(), spmv_codegen::ConfigError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Operators {
    semiring: Semiring,
    user: UserFunctions,
    accumulator: ValueType,
    combine: Option<Typed>,
    reduce: Option<Typed>,
    identity: Option<Value>,
    map_value: Option<Typed>,
    map_x: Option<Typed>,
    epilogue: Option<Typed>,
    dot: Option<Typed>,
}

/// What is wrong with a function: its key, and what of it.
pub(crate) type KeyError = (&'static FunctionKey, FunctionError);

/// The type in which functions compute; `None` where sums are of a type that they have not.
fn float(accumulator: ValueType) -> Option<Type> {
    match accumulator {
        ValueType::F32 => Some(Type::F32),
        ValueType::F64 => Some(Type::F64),
        _ => None,
    }
}

impl Operators {
    /// The operators with their types, or the first thing that does not fit.
    pub(crate) fn new(
        semiring: Semiring,
        user: &UserFunctions,
        accumulator: ValueType,
    ) -> Result<Operators, KeyError> {
        let number = float(accumulator).unwrap_or(Type::F32);
        let typed = |name: &str, fixed: &[Type]| {
            let key = FunctionKey::find(name).expect("a key of the table");
            let Some(function) = key.function(user) else { return Ok(None) };
            let typed = check_parameters(key, function, user).and_then(|()| {
                let mut parameters = fixed.to_vec();
                parameters.resize(function.parameters().count(), number);
                function.typed(&parameters, number, number)
            });
            typed.map(Some).map_err(|error| (key, error))
        };
        let operators = Operators {
            combine: typed("combine", &[number, number])?,
            reduce: typed("reduce", &[number, number])?,
            identity: typed("identity", &[])?.map(|identity| identity.eval(&[])),
            map_value: typed("map_value", &[number])?,
            map_x: typed("map_x", &[number, Type::U32])?,
            epilogue: typed("epilogue", &[Type::U32, number, number])?,
            dot: typed("dot", &[Type::U32, number])?,
            semiring,
            user: user.clone(),
            accumulator,
        };
        match number {
            Type::F32 => operators.check_reduce::<f32>(f64::from),
            _ => operators.check_reduce::<f64>(|number| number),
        }?;
        Ok(operators)
    }

    /// Tries whether ⊕ may be applied in any order.
    fn check_reduce<N: Float + SemiringNumber>(&self, wide: impl Fn(N) -> f64) -> Result<(), KeyError> {
        let Some(reduce) = &self.user.reduce else { return Ok(()) };
        let key = FunctionKey::find("reduce").expect("a key of the table");
        let differ = |left: N, right: N| {
            let (left, right) = (wide(left), wide(right));
            let tolerance = 1e-3 * left.abs().max(right.abs()).max(1e-3);
            // Of infinite numbers there is no difference.
            let are_near = (left - right).abs() <= tolerance;
            left != right && (left.is_infinite() || right.is_infinite() || !are_near)
        };
        let refuse = |message: String| Err((key, FunctionError::whole(reduce, message)));
        let two = N::ONE.plus(N::ONE);
        let half = two.plus(N::ONE).times(two); // 6, and no power of two
        let numbers = [N::ONE, two, half, half.plus(N::ONE).times(half)];
        for s in numbers {
            for t in numbers {
                let both = self.reduce(s, t);
                if differ(both, self.reduce(t, s)) {
                    let (s, t, both, other) = (wide(s), wide(t), wide(both), wide(self.reduce(t, s)));
                    return refuse(format!(
                        "it must be commutative, and gives {both} of {s} and {t}, {other} of {t} and {s}"
                    ));
                }
                let identity = self.identity();
                for (left, right, number) in
                    [(identity, both, both), (both, identity, both), (identity, identity, identity)]
                {
                    let reduced = self.reduce(left, right);
                    if differ(reduced, number) {
                        let (left, right, reduced) = (wide(left), wide(right), wide(reduced));
                        return refuse(format!(
                            "it must leave a number as it is where the other is the identity, and gives {reduced} of {left} and {right}"
                        ));
                    }
                }
                for u in numbers {
                    let (left, right) = (self.reduce(both, u), self.reduce(s, self.reduce(t, u)));
                    if differ(left, right) {
                        let (s, t, u, left, right) = (wide(s), wide(t), wide(u), wide(left), wide(right));
                        return refuse(format!(
                            "it must be associative, and {s}, {t} and {u} give {left} from the left and {right} from the right"
                        ));
                    }
                }
            }
        }
        Ok(())
    }

    /// The function of this key, where it is written; `identity` is a number already.
    pub(crate) fn typed(&self, key: &str) -> Option<&Typed> {
        let functions = [
            ("combine", &self.combine),
            ("reduce", &self.reduce),
            ("map_value", &self.map_value),
            ("map_x", &self.map_x),
            ("epilogue", &self.epilogue),
            ("dot", &self.dot),
        ];
        functions.into_iter().find(|(name, _)| *name == key).and_then(|(_, typed)| typed.as_ref())
    }

    /// What changes nothing: the result of an empty row.
    pub fn identity<N: Float + SemiringNumber>(&self) -> N {
        self.identity.and_then(N::of).unwrap_or_else(|| self.semiring.identity())
    }

    /// a ⊕ b.
    pub fn reduce<N: Float + SemiringNumber>(&self, a: N, b: N) -> N {
        called(self.reduce.as_ref(), &[a.into(), b.into()]).unwrap_or_else(|| self.semiring.reduce(a, b))
    }

    /// What a value of the matrix becomes.
    pub fn map_value<N: Float>(&self, value: N) -> N {
        called(self.map_value.as_ref(), &[value.into()]).unwrap_or(value)
    }

    /// What the entry of x in this column becomes.
    pub fn map_x<N: Float>(&self, x: N, col: u32) -> N {
        called(self.map_x.as_ref(), &[x.into(), col.into()]).unwrap_or(x)
    }

    /// value ⊗ x, both mapped first; `x` is the entry of column `col`.
    pub fn combine<N: Float + SemiringNumber>(&self, value: N, x: N, col: u32) -> N {
        let (value, x) = (self.map_value(value), self.map_x(x, col));
        called(self.combine.as_ref(), &[value.into(), x.into()])
            .unwrap_or_else(|| self.semiring.combine(value, x))
    }

    /// What is stored in a row: the epilogue's result, or the sum where there is none. `operands` are the row's entries of
    /// vectors and the scalars, in the order of [`Program::operands`](crate::Program::operands).
    pub fn store<N: Float>(&self, row: u32, sum: N, y: N, operands: &[N]) -> N {
        let Some(epilogue) = &self.epilogue else { return sum };
        let fixed: [Value; FIXED] = [row.into(), sum.into(), y.into()];
        // Its own come first.
        let own = operands.iter().map(|operand| (*operand).into()).take(epilogue.num_parameters() - FIXED);
        called(Some(epilogue), &fixed.into_iter().chain(own).collect::<Vec<_>>()).unwrap_or(sum)
    }

    /// What a row adds to the sum over all rows, of what was stored in it; `None` without `dot`. `operands` as for
    /// [`store`](Self::store).
    pub fn dot<N: Float>(&self, row: u32, result: N, operands: &[N]) -> Option<N> {
        let fixed: [Value; FIXED_OF_DOT] = [row.into(), result.into()];
        let own = self.user.operands_of_dot().map(|place| operands[place].into());
        called(self.dot.as_ref(), &fixed.into_iter().chain(own).collect::<Vec<_>>())
    }

    /// Whether rows are sums, whose rounding depends on the order.
    pub fn adds(&self) -> bool {
        self.reduce.is_none() && matches!(self.semiring, Semiring::PlusTimes | Semiring::PlusPair)
    }

    /// Whether rows are sums of products, so that α and β scale.
    pub fn is_scaled(&self) -> bool {
        self.semiring == Semiring::PlusTimes && self.combine.is_none() && self.reduce.is_none()
    }

    /// Whether rows are reduced by the functions of `prelude/plus_times.cuh`.
    pub(crate) fn are_plus_times(&self) -> bool {
        self.semiring == Semiring::PlusTimes && !self.user.changes_product()
    }

    fn written(&self) -> impl Iterator<Item = &Typed> {
        let of_product = [&self.map_value, &self.map_x, &self.combine, &self.reduce];
        of_product.into_iter().chain([&self.epilogue, &self.dot]).flatten()
    }

    /// What functions of the user call.
    pub(crate) fn cuda_helpers(&self) -> String {
        helpers(self.written())
    }

    /// What a source has in place of `prelude/plus_times.cuh`.
    pub(crate) fn cuda(&self) -> String {
        let Operators { semiring, .. } = self;
        let mut text = String::new();
        if self.user.combine.is_none() && self.user.reduce.is_none() {
            writeln!(text, "// {semiring}: a row is the {} of its entries.", semiring.meaning())
                .expect("a String");
        }
        for key in FUNCTION_KEYS.iter().filter(|key| key.changes_product()) {
            if let Some(written) = key.of(&self.user) {
                writeln!(text, "// {} = {written}", key.name).expect("a String");
            }
        }
        let identity =
            self.identity.map_or_else(|| semiring.cuda_identity(self.accumulator).into(), constant);
        let zeros_add_nothing = semiring.zeros_add_nothing() && !self.user.changes_product();
        let mut function = |name: &str, typed: &Option<Typed>| {
            text += &typed.as_ref().map(|typed| typed.cuda(name, |_| true).0).unwrap_or_default();
        };
        function("map_value", &self.map_value);
        function("map_x", &self.map_x);
        function("combine", &self.combine);
        function("reduce", &self.reduce);
        let x = if self.map_x.is_some() { "map_x(x, col)" } else { "x" };
        let col = if self.map_x.is_some() { "uint32_t col" } else { "uint32_t" };
        let combined = self.cuda_combined("value", x);
        let reducing = match &self.reduce {
            Some(_) => String::new(),
            None => format!(
                "__device__ __forceinline__ AccumT reduce(AccumT a, AccumT b) {{ return {}; }}\n",
                semiring.cuda_reduced(self.accumulator)
            ),
        };
        let into_sum = match self.is_scaled() {
            true => format!("multiply_add({}, {x}, sum)", self.cuda_value("value")),
            false if self.map_x.is_some() => "reduce(sum, combine(value, x, col))".into(),
            false => "reduce(sum, combine(value, x, 0u))".into(),
        };
        text + &format!(
            "constexpr AccumT kIdentity = {identity};\n\
             constexpr bool kZerosAddNothing = {zeros_add_nothing};\n\
             {reducing}\
             __device__ __forceinline__ AccumT combine(AccumT value, AccumT x, {col}) {{ return {combined}; }}\n\
             __device__ __forceinline__ AccumT combine_reduce(AccumT value, AccumT x, {col}, AccumT sum) {{\n  \
               return {into_sum};\n\
             }}\n"
        )
    }

    /// A value as it is combined.
    fn cuda_value(&self, value: &str) -> String {
        if self.map_value.is_some() { format!("map_value({value})") } else { value.into() }
    }

    /// A value with an entry of x that is mapped.
    fn cuda_combined(&self, value: &str, x: &str) -> String {
        let value = self.cuda_value(value);
        match &self.combine {
            Some(_) => format!("combine({value}, {x})"),
            None => self.semiring.cuda_combined(self.accumulator, &value, x),
        }
    }

    /// Whether entries of x are mapped, which makes sums' type of theirs.
    pub(crate) fn maps_x(&self) -> bool {
        self.map_x.is_some()
    }

    /// What a source has in place of `prelude/mapped_x.cuh` where the user maps x.
    pub(crate) fn cuda_mapped_x(&self) -> String {
        let into_sum = match self.is_scaled() {
            true => format!("multiply_add({}, x, sum)", self.cuda_value("AccumT(value)")),
            false => format!("reduce(sum, {})", self.cuda_combined("AccumT(value)", "x")),
        };
        format!(
            "using MappedX = AccumT;\n\
             __device__ __forceinline__ MappedX mapped_x(XT x, uint32_t col) {{ return map_x(AccumT(x), col); }}\n\
             __device__ __forceinline__ AccumT combine_reduce_mapped(ValueT value, MappedX x, AccumT sum) {{\n  \
               return {into_sum};\n\
             }}\n"
        )
    }

    /// What a source has in place of `prelude/scaling.cuh` where the user says what is stored; `dot_kernels` is what a dot
    /// calls.
    pub(crate) fn cuda_store(&self, dot_kernels: &str) -> Option<String> {
        if !self.user.stores() {
            return None;
        }
        let mut text = String::new();
        let mut function = |key: &str, fixed: usize| {
            let (written, typed) = FunctionKey::find(key)?.function(&self.user).zip(self.typed(key))?;
            let (function, names) = typed.cuda(key, |place| place >= fixed || written.reads(place));
            write!(text, "// {key} = {written}\n{function}").expect("a String");
            Some((written, names))
        };
        let (epilogue, dot) = (function("epilogue", FIXED), function("dot", FIXED_OF_DOT));
        let names_of = |function: &Option<(_, Vec<String>)>, fixed| -> Vec<String> {
            function.iter().flat_map(|(_, names)| names[fixed..].to_vec()).collect()
        };
        let (names, names_of_dot) = (names_of(&epilogue, FIXED), names_of(&dot, FIXED_OF_DOT));
        let mut members = String::new();
        let mut arguments = Vec::new();
        for (place, (_, is_vector)) in self.user.operands().enumerate() {
            let of_dot = || self.user.operands_of_dot().position(|operand| operand == place);
            // No two are one, however a function names its parameters.
            let name = match names.get(place) {
                Some(name) => format!("epilogue_{name}"),
                None => format!("dot_{}", names_of_dot[of_dot().expect("one of the functions takes it")]),
            };
            if is_vector {
                writeln!(members, "  const YT* __restrict__ {name};").expect("a String");
                arguments.push(format!("AccumT(__ldg(beta.{name} + row))"));
            } else {
                writeln!(members, "  alignas(8) AccumT {name};").expect("a String");
                arguments.push(format!("beta.{name}"));
            }
        }
        let mut result = "sum".to_owned();
        if let Some((written, names)) = &epilogue {
            let fixed = ["row", "sum", "AccumT(y[row])"].into_iter().enumerate();
            let fixed = fixed.filter(|(place, _)| written.reads(*place)).map(|(_, argument)| argument);
            let own = arguments.iter().map(String::as_str).take(names.len() - FIXED);
            result = format!("epilogue({})", fixed.chain(own).collect::<Vec<_>>().join(", "));
        }
        let mut store = format!("  y[row] = YT({result});\n");
        if let Some((written, _)) = &dot {
            members += "  uint64_t* bins;\n";
            let fixed = ["row", "AccumT(result)"].into_iter().enumerate();
            let fixed = fixed.filter(|(place, _)| written.reads(*place)).map(|(_, argument)| argument);
            let own = self.user.operands_of_dot().map(|place| arguments[place].as_str());
            let arguments = fixed.chain(own).collect::<Vec<_>>().join(", ");
            store = format!(
                "  const YT result = YT({result});\n  \
                   y[row] = result;\n  \
                   add_to_dot(beta.bins, row, dot({arguments}));\n"
            );
            text += &DotBins::of(self.accumulator).cuda_constants();
            text += dot_kernels;
        }
        let fields = if members.is_empty() {
            "struct BetaT {};\n".into()
        } else {
            format!("struct BetaT {{\n{members}}};\n")
        };
        let beta = if members.is_empty() { "const BetaT&" } else { "const BetaT& beta" };
        Some(format!(
            "{text}\
             // What is taken beside the row, in place of beta.\n\
             {fields}\
             __device__ __forceinline__ bool skips_product(AccumT) {{ return false; }}\n\
             __device__ __forceinline__ void store_scaled(YT* y, uint32_t row, AccumT sum, AccumT, {beta}) {{\n\
             {store}\
             }}\n"
        ))
    }
}

fn called<N: Float>(function: Option<&Typed>, arguments: &[Value]) -> Option<N> {
    function.and_then(|function| N::of(function.eval(arguments)))
}

/// Whether a function has the parameters of its key, and an epilogue's others are vectors or scalars.
fn check_parameters(
    key: &FunctionKey,
    function: &Function,
    user: &UserFunctions,
) -> Result<(), FunctionError> {
    let names: Vec<&str> = function.parameters().collect();
    let fixed = key.parameters.len();
    let wrong = |place: usize, message: String| Err(FunctionError::parameter(function, place, message));
    if names.len() < fixed || names.len() > fixed && !key.takes_operands() {
        let written = match fixed {
            0 => "a number, without parameters".to_owned(),
            _ => format!("`{}`", key.form),
        };
        let message = format!("it is written {written}: {fixed} parameters, not {}", names.len());
        return wrong(names.len().min(fixed), message);
    }
    if names.len() > fixed && user.operands().count() > MAX_OPERANDS {
        let place = names.len().min(fixed + MAX_OPERANDS + 1) - 1;
        return wrong(place, format!("epilogue and dot take at most {MAX_OPERANDS} vectors and scalars"));
    }
    for (place, name) in names.iter().enumerate().skip(fixed) {
        match (
            user.vectors.iter().any(|vector| vector == name),
            user.scalars.iter().any(|scalar| scalar == name),
        ) {
            (true, true) => {
                return wrong(
                    place,
                    format!("`{name}` is among `vectors` and among `scalars`; leave it in one"),
                );
            }
            (false, false) => {
                return wrong(
                    place,
                    format!("say what `{name}` is: `vectors = [{name}]` or `scalars = [{name}]`"),
                );
            }
            _ => {}
        }
    }
    Ok(())
}

impl KernelConfig {
    /// What it combines, reduces and stores with.
    pub fn operators(&self) -> Operators {
        let operators = Operators::new(self.semiring(), self.user_functions(), self.types().accumulator);
        operators.unwrap_or_else(|(key, error)| unreachable!("`{}` was checked: {error}", key.name))
    }
}

#[cfg(test)]
mod tests {
    use crate::algorithm::{Algorithm, AlgorithmSpec};
    use crate::config::{Coefficient, ConfigError, KernelConfig};
    use crate::program::{Arg, Operand, Program};
    use crate::semiring::Semiring;
    use crate::types::ValueType;

    fn config(algorithm: &str, settings: &[(&str, &str)]) -> Result<KernelConfig, ConfigError> {
        KernelConfig::from_settings(algorithm, settings.iter().copied())
    }

    const JACOBI: &[(&str, &str)] = &[
        ("epilogue", "|row,sum,y, x, b, d, omega| x + omega*((b - sum)/d)"),
        ("vectors", "x, b, d"),
        ("scalars", "[omega]"),
    ];

    #[test]
    fn functions_are_settings_like_others() {
        let jacobi = config("csr_vector", JACOBI).unwrap();
        let text = jacobi.to_string();
        assert!(
            text.ends_with(
                "alpha=1 beta=0 epilogue=|row, sum, y, x, b, d, omega| x + omega * ((b - sum) / d) \
                 vectors=[x, b, d] scalars=[omega]"
            ),
            "{text}"
        );
        let settings = jacobi.settings();
        let again = settings.iter().map(|(key, value)| (*key, value.as_str()));
        assert_eq!(KernelConfig::from_settings("csr_vector", again).unwrap(), jacobi);
        assert_eq!(jacobi.to_builder().build().unwrap(), jacobi);
        let other = jacobi.to_builder().accumulator(ValueType::F64).build().unwrap();
        assert_ne!(other.program().source, jacobi.program().source);
        let plain = KernelConfig::named("csr_vector").unwrap().build().unwrap();
        assert_ne!(plain, jacobi);
        assert_eq!(plain.scaling().alpha, Coefficient::Any);
    }

    #[test]
    fn what_is_not_used_leaves_no_trace() {
        let source = |settings: &[(&str, &str)]| config("csr_vector", settings).unwrap().program().source;
        let plain = source(&[]);
        for word in ["map_value", "map_x", "epilogue(", "struct BetaT", "powi"] {
            assert!(!plain.contains(word), "{word}");
        }
        let relu = source(&[("epilogue", "|row, sum, y| sum.max(0.0)")]);
        assert!(
            relu.contains("AccumT sum") && relu.contains("epilogue(float sum) { return fmaxf(sum, 0.0f); }")
        );
        assert!(relu.contains("y[row] = YT(epilogue(sum));"), "{relu}");
        assert!(!relu.contains("const BetaT& beta"), "nothing is passed");
        let jacobi = source(JACOBI);
        let members = "struct BetaT {\n  const YT* __restrict__ epilogue_x;\n  const YT* __restrict__ epilogue_b;\n  const YT* __restrict__ epilogue_d;\n  alignas(8) AccumT epilogue_omega;\n};\n";
        assert!(jacobi.contains(members), "{jacobi}");
        assert!(
            jacobi.contains("YT(epilogue(sum, AccumT(__ldg(beta.epilogue_x + row)), "),
            "y and row are not read: {jacobi}"
        );
        let mapped = source(&[("map_value", "|a| a.powi(2)")]);
        assert!(mapped.contains("multiply_add(map_value(value), x, sum)") && mapped.contains("T powi(T a)"));
        assert!(
            !mapped.contains("map_x") && mapped.contains("alpha * sum"),
            "sums of mapped products are scaled"
        );
        let least = source(&[("reduce", "|s, t| s.min(t)"), ("identity", "f32::INFINITY")]);
        assert!(
            least.contains("constexpr AccumT kIdentity = (1.0f / 0.0f);") && !least.contains("multiply_add")
        );
        assert!(least.contains("float reduce(float s, float t) { return fminf(s, t); }"), "{least}");
    }

    #[test]
    fn a_program_says_what_its_epilogue_takes() {
        for spec in Algorithm::ALL.iter().filter(|spec| spec.takes_epilogue()) {
            let names = |program: &Program| -> Vec<String> {
                let name = |operand: &Operand| match operand {
                    Operand::Vector { name, .. } | Operand::Scalar { name, .. } => name.clone(),
                    Operand::Buffer(index) => program.buffers[*index].name.to_owned(),
                };
                program.operands.iter().map(name).collect()
            };
            let both =
                [JACOBI, &[("dot", "|row, result, c, b| c * (result - b)"), ("scalars", "[omega, c]")]];
            let program = config(spec.name, &both.concat()).unwrap().program();
            assert_eq!(names(&program), ["x", "b", "d", "omega", "c", "dot_bins"]);
            let dot = &program.buffers[program.dot.expect("it adds up")];
            assert_eq!((dot.name, program.multiply.last().unwrap().kernel.as_str()), ("dot", "spmv_dot"));
            let program = config(spec.name, JACOBI).unwrap().program();
            assert_eq!(names(&program), ["x", "b", "d", "omega"]);
            assert_eq!(program.dot, None);
            let args = || program.multiply.iter().flat_map(|pass| &pass.args);
            assert!(args().any(|arg| *arg == Arg::Operands), "{}", spec.name);
            assert!(!args().any(|arg| matches!(arg, Arg::Beta(_))), "{}", spec.name);
        }
    }

    #[test]
    fn what_functions_exclude_is_refused() {
        let row_sum = ("epilogue", "|row, sum, y| sum");
        for (algorithm, settings, key, message) in [
            ("csr_vector", &[("reduce", "|s, t| s + t")][..], "reduce", "reduce needs `identity`"),
            ("csr_vector", &[("identity", "0.0")], "identity", "identity is what `reduce` leaves as it is"),
            (
                "csr_vector",
                &[("combine", "|a| a")],
                "combine",
                "`combine`: it is written `|a, x| …`: 2 parameters, not 1",
            ),
            ("csr_vector", &[("map_x", "|x, col| x + col")], "map_x", "`map_x`: `+` needs two of one type"),
            (
                "csr_vector",
                &[("combine", "|a, x| a <")],
                "combine",
                "`combine`: expected an expression, found nothing",
            ),
            (
                "csr_vector",
                &[("epilogue", "|row, sum, y, d| d")],
                "epilogue",
                "`epilogue`: say what `d` is: `vectors = [d]`",
            ),
            ("csr_vector", &[row_sum, ("vectors", "[d]")], "vectors", "`d` is no parameter of epilogue"),
            ("csr_vector", &[("scalars", "[c]")], "scalars", "`c` is no parameter of epilogue"),
            (
                "csr_vector",
                &[("epilogue", "|row, sum, y, d| d"), ("vectors", "d"), ("scalars", "d")],
                "epilogue",
                "`epilogue`: `d` is among `vectors` and among",
            ),
            ("csr_vector", &[row_sum, ("beta", "1")], "beta", "beta = 1 has no part in what epilogue stores"),
            (
                "csr_vector",
                &[row_sum, ("alpha", "any")],
                "alpha",
                "alpha = any has no part in what epilogue stores",
            ),
            (
                "csr_vector",
                &[("combine", "|a, x| a"), ("alpha", "-1")],
                "alpha",
                "alpha = -1 would scale a product over functions of the user's",
            ),
            (
                "naive_t",
                &[row_sum],
                "epilogue",
                "naive_t adds to y more than once a row and takes no epilogue; these store each row once: csr_scalar, ",
            ),
            (
                "hola",
                &[("dot", "|row, result| result")],
                "dot",
                "hola adds to y more than once a row and takes no dot; these store each row once: csr_scalar, ",
            ),
            (
                "csr_vector",
                &[("dot", "|row, result| result"), ("beta", "1")],
                "beta",
                "beta = 1 has no part in what is stored with dot, and an epilogue can say it; allowed: 0",
            ),
            (
                "csr_vector",
                &[("dot", "|row, result, p| result * p")],
                "dot",
                "`dot`: say what `p` is: `vectors = [p]`",
            ),
            (
                "csr_vector",
                &[("dot", "|row| 1.0")],
                "dot",
                "`dot`: it is written `|row, result, …| …`: 2 parameters, not 1",
            ),
            (
                "dasp",
                &[("map_value", "|a| a")],
                "map_value",
                "dasp sums products by additions alone and takes no map_value; these take it: csr_scalar, ",
            ),
            (
                "csr_vector",
                &[("reduce", "|s, t| s - t"), ("identity", "0.0")],
                "reduce",
                "`reduce`: it must be associative",
            ),
            (
                "csr_vector",
                &[("reduce", "|s, t| (s + t) / 2.0"), ("identity", "0.0")],
                "reduce",
                "`reduce`: it must",
            ),
            (
                "csr_vector",
                &[("reduce", "|s, t| s * t"), ("identity", "0.0")],
                "reduce",
                "`reduce`: it must leave a number as it is",
            ),
            (
                "csr_vector",
                // Of two idle lanes it is no number.
                &[
                    ("reduce", "|s, t| s.max(t) + (-(s - t).abs()).exp().ln_1p()"),
                    ("identity", "f32::NEG_INFINITY"),
                ],
                "reduce",
                "`reduce`: it must leave a number as it is where the other is the identity, and gives NaN of -inf and -inf",
            ),
            (
                "csr_vector",
                &[
                    ("semiring", "min_plus"),
                    ("combine", "|a, x| a"),
                    ("reduce", "|s, t| s + t"),
                    ("identity", "0.0"),
                ],
                "semiring",
                "semiring = min_plus is not used",
            ),
        ] {
            let error = config(algorithm, settings).expect_err(message);
            assert_eq!(error.key(), key, "{error}");
            assert!(error.to_string().starts_with(message), "{error}");
        }
    }

    #[test]
    fn operators_of_named_semirings_are_theirs() {
        for &semiring in Semiring::ALL {
            let name = AlgorithmSpec::over(semiring)[0];
            let operators =
                KernelConfig::named(name).unwrap().semiring(semiring).build().unwrap().operators();
            assert_eq!(operators.combine(3.0f64, 4.0, 7), semiring.combine(3.0, 4.0));
            assert_eq!(operators.reduce(3.0f64, 4.0), semiring.reduce(3.0, 4.0));
            assert_eq!(operators.identity::<f64>(), semiring.identity());
            assert_eq!(operators.store(1, 5.0f64, 6.0, &[]), 5.0);
        }
    }
}
