//! Statements into a dense array of operations with resolved registers, addresses and targets.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use crate::alu::{self, Alu};
use crate::error::LoadError;
use crate::memory::{LOCAL_BASE, MODULE_BASE, SHARED_BASE};
use crate::mma::{Mma, Shape};
use crate::op::*;
use crate::parse::{Function, Instruction, Operand, Statement, Unit, Variable, type_bytes};
use crate::registers::{self, Class};

/// A kernel, ready to run.
#[derive(Debug)]
pub(crate) struct Kernel {
    pub(crate) name: String,
    pub(crate) params: Vec<Param>,
    pub(crate) param_bytes: u64,
    pub(crate) ops: Vec<Op>,
    pub(crate) guards: Vec<Guard>,
    pub(crate) places: Vec<Place>,
    pub(crate) num_w32: u16,
    pub(crate) num_w64: u16,
    pub(crate) num_pred: u16,
    /// Registers that hold something when a warp starts: immediates and special registers.
    pub(crate) initial32: Vec<(R, Initial32)>,
    pub(crate) initial64: Vec<(R, u64)>,
    pub(crate) shared_bytes: u64,
    /// What the address of dynamic shared memory is a multiple of.
    pub(crate) dynamic_align: u64,
    /// Most bytes of shared memory a block, static and dynamic together.
    pub(crate) max_shared: u64,
    /// `.maxntid`
    pub(crate) max_threads: Option<u64>,
    /// `.reqntid`
    pub(crate) block: Option<[u64; 3]>,
    pub(crate) local_bytes: u64,
    /// The smallest unit in which shared memory is accessed, at most 4 bytes, as a shift.
    pub(crate) shared_cell: u32,
    /// Whether the result can depend on the order in which blocks run: then they run one after another.
    pub(crate) order_matters: bool,
    /// Whether it looks at a clock, which goes on when nothing else does.
    pub(crate) reads_clock: bool,
}

impl Kernel {
    /// Where dynamic shared memory begins.
    pub(crate) fn dynamic_shared_at(&self) -> u64 {
        self.shared_bytes.next_multiple_of(self.dynamic_align)
    }
}

/// A kernel parameter.
#[derive(Clone, Debug)]
pub(crate) struct Param {
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
}

/// Where an operation stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) ptx_line: u32,
    pub(crate) file: u32,
    pub(crate) line: u32,
}

/// Where a variable lies.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Symbol {
    Register(Class, R),
    Module(u64),
    Shared(u64),
    Local(u64),
    Param(u64),
}

/// Addresses of module variables, which exist once for all kernels.
pub(crate) type Globals = HashMap<String, u64>;

/// Most bytes of a kernel's parameters, as on sm_70 and later.
const MAX_PARAM_BYTES: u64 = 32_764;
/// Most bytes of static shared memory, on every architecture.
const MAX_STATIC_SHARED: u64 = 48 * 1024;
/// Most calls inside each other.
const MAX_CALL_DEPTH: usize = 256;

/// Decodes an entry with every function that it calls.
pub(crate) fn decode(unit: &Unit, entry: &Function, globals: &Globals) -> Result<Kernel, LoadError> {
    let mut decoder = Decoder::new(globals);
    let mut order = Vec::new();
    call_order(unit, entry, &mut Vec::new(), &mut order)?;
    // The entry first, so that a warp starts at operation 0.
    order.reverse();
    // Of the module's shared variables a kernel has those that it names.
    let mut named = HashSet::new();
    for function in &order {
        decoder.declare(function)?;
        for statement in &function.body {
            if let Statement::Instruction(instruction) = statement {
                instruction.operands.iter().for_each(|operand| names(operand, &mut named));
            }
        }
    }
    for variable in unit.variables.iter().filter(|variable| variable.space == "shared") {
        if named.contains(variable.name.as_str()) {
            decoder.shared(variable, None)?;
        }
    }
    for function in &order {
        decoder.function(function)?;
    }
    decoder.finish(entry, max_shared(unit.target))
}

/// Bytes of shared memory that a block of an architecture can have, static and dynamic together: CUDA C++ Programming
/// Guide, technical specifications per compute capability.
fn max_shared(target: u32) -> u64 {
    1024 * match target {
        ..70 => 48,
        70..75 => 96,
        75..80 => 64,
        80 | 87 => 163,
        81..90 | 120.. => 99,
        90..120 => 227,
    }
}

/// Names that an operand has.
fn names<'a>(operand: &'a Operand, into: &mut HashSet<&'a str>) {
    match operand {
        Operand::Name(name) | Operand::Sum(name, _) | Operand::Address { base: Some(name), .. } => {
            into.insert(name);
        }
        Operand::Vector(list) | Operand::List(list) => list.iter().for_each(|operand| names(operand, into)),
        _ => {}
    }
}

/// Functions in an order in which callees come before their callers.
fn call_order<'a>(
    unit: &'a Unit,
    function: &'a Function,
    path: &mut Vec<&'a str>,
    order: &mut Vec<&'a Function>,
) -> Result<(), LoadError> {
    if path.contains(&function.name.as_str()) {
        let reason = "a recursive call".to_owned();
        return Err(LoadError::Unsupported { line: function.line, instruction: "call".into(), reason });
    }
    if order.iter().any(|known| known.name == function.name) {
        return Ok(());
    }
    if path.len() == MAX_CALL_DEPTH {
        let reason = format!("more than {MAX_CALL_DEPTH} calls inside each other");
        return Err(LoadError::Unsupported { line: function.line, instruction: "call".into(), reason });
    }
    path.push(&function.name);
    for statement in &function.body {
        let Statement::Instruction(instruction) = statement else { continue };
        if instruction.opcode.starts_with("call") {
            let name = instruction.operands.iter().find_map(|operand| match operand {
                Operand::Name(name) => Some(name),
                _ => None,
            });
            let declared: Vec<_> = unit.functions.iter().filter(|f| Some(&f.name) == name).collect();
            match declared.iter().find(|callee| callee.has_body).or(declared.first()) {
                Some(callee) if callee.has_body => call_order(unit, callee, path, order)?,
                Some(callee) => {
                    let (line, instruction) = (instruction.line, instruction.opcode.clone());
                    let reason = format!("`{}` has no body", callee.name);
                    return Err(LoadError::Unsupported { line, instruction, reason });
                }
                None => {}
            }
        }
    }
    path.pop();
    order.push(function);
    Ok(())
}

struct Decoder<'a> {
    globals: &'a Globals,
    ops: Vec<Op>,
    guards: Vec<Guard>,
    places: Vec<Place>,
    place: Place,
    counts: [u32; 3],
    constants32: HashMap<Initial32, R>,
    constants64: HashMap<u64, R>,
    shared_symbols: HashMap<String, Symbol>,
    shared_bytes: u64,
    /// The largest alignment of arrays in dynamic shared memory.
    dynamic_align: u64,
    local_bytes: u64,
    /// Formal results and parameters of device functions.
    signatures: HashMap<String, Signature>,
    scopes: Vec<Scope>,
    /// Registers of 16 bits, which lie in those of 32.
    halves: HashSet<R>,
    open_calls: Vec<(usize, String, u32)>,
    /// Where functions begin, and their local memory.
    entries: HashMap<String, (u32, Range<u64>)>,
    params: Vec<Param>,
    param_bytes: u64,
    in_entry: bool,
    /// The register that holds the carry of extended precision, once there is an instruction that has one.
    carry_flag: Option<R>,
    /// Whether a load may tell what other blocks have written so far.
    looks_at_others: bool,
}

/// What `{ }` holds: names, and branches to labels that may stand behind them or in a scope around.
#[derive(Default)]
struct Scope {
    symbols: HashMap<String, Symbol>,
    labels: HashMap<String, u32>,
    tables: HashMap<String, Vec<String>>,
    open: Vec<OpenBranch>,
    /// The one of `open` that waits for each table.
    waiting: HashMap<String, usize>,
}

impl Scope {
    /// Adds a branch, to those that wait for the same table.
    fn open(&mut self, branch: OpenBranch) {
        if let Some(table) = &branch.table {
            if let Some(same) = self.waiting.get(table) {
                self.open[*same].ops.extend(branch.ops);
                return;
            }
            self.waiting.insert(table.clone(), self.open.len());
        }
        self.open.push(branch);
    }
}

/// A branch that does not know yet where it goes, or all those of a table.
struct OpenBranch {
    ops: Vec<usize>,
    line: u32,
    /// The name of a table of labels, until it is found.
    table: Option<String>,
    targets: Vec<Result<u32, String>>,
}

#[derive(Clone, Default)]
struct Signature {
    returns: Vec<(u64, u64)>,
    params: Vec<(u64, u64)>,
}

impl<'a> Decoder<'a> {
    fn new(globals: &'a Globals) -> Self {
        Decoder {
            globals,
            ops: Vec::new(),
            guards: Vec::new(),
            places: Vec::new(),
            place: Place::default(),
            counts: [0; 3],
            constants32: HashMap::new(),
            constants64: HashMap::new(),
            shared_symbols: HashMap::new(),
            shared_bytes: 0,
            dynamic_align: 16,
            local_bytes: 0,
            signatures: HashMap::new(),
            scopes: Vec::new(),
            halves: HashSet::new(),
            open_calls: Vec::new(),
            entries: HashMap::new(),
            params: Vec::new(),
            param_bytes: 0,
            in_entry: false,
            carry_flag: None,
            looks_at_others: false,
        }
    }

    fn finish(mut self, entry: &Function, max_shared: u64) -> Result<Kernel, LoadError> {
        for (op, name, line) in std::mem::take(&mut self.open_calls) {
            let (target, locals) = self.entries.get(&name).ok_or(LoadError::Undeclared { line, name })?;
            self.ops[op] = Op::Call { target: *target, locals: locals.clone() };
        }
        let unit = |op: &Op| {
            let (space, bytes) = match op {
                Op::Load(access) | Op::Store(access) => (access.space, access.bytes),
                Op::Atomic(atomic) => (atomic.space, atomic.bytes),
                _ => return None,
            };
            matches!(space, Space::Shared | Space::Generic).then_some(bytes)
        };
        // Who looks at what others write sees more or less of it; a plain load that races with them is the kernel's fault.
        let looks_at_others = self.looks_at_others;
        let ordered = |op: &Op| match op {
            Op::Atomic(atomic) => {
                is_global(atomic.space) && (atomic.d != NONE || !atomic.commutes || looks_at_others)
            }
            Op::Store(access) => is_global(access.space) && looks_at_others,
            Op::Clock { .. } => true,
            _ => false,
        };
        let mut initial32: Vec<_> =
            self.constants32.into_iter().map(|(initial, register)| (register, initial)).collect();
        let mut initial64: Vec<_> =
            self.constants64.into_iter().map(|(value, register)| (register, value)).collect();
        let initial = initial32.iter_mut().map(|(register, _)| (Class::W32, register));
        let mut initial: Vec<_> =
            initial.chain(initial64.iter_mut().map(|(register, _)| (Class::W64, register))).collect();
        let [num_w32, num_w64, num_pred] =
            registers::allocate(&mut self.ops, &mut self.guards, self.counts, &mut initial)
                .map(|count| count as u16);
        Ok(Kernel {
            name: entry.name.clone(),
            params: self.params,
            param_bytes: self.param_bytes,
            shared_cell: self.ops.iter().filter_map(unit).fold(4, u32::min).trailing_zeros(),
            order_matters: self.ops.iter().any(ordered),
            reads_clock: self.ops.iter().any(|op| matches!(op, Op::Clock { .. })),
            ops: self.ops,
            guards: self.guards,
            places: self.places,
            num_w32,
            num_w64,
            num_pred,
            initial32,
            initial64,
            shared_bytes: self.shared_bytes,
            dynamic_align: self.dynamic_align,
            max_shared,
            max_threads: entry.max_threads,
            block: entry.block,
            // So that what is aligned for the first thread is for all.
            local_bytes: self.local_bytes.next_multiple_of(16),
        })
    }

    fn emit(&mut self, guard: Guard, op: Op) {
        self.ops.push(op);
        self.guards.push(guard);
        self.places.push(self.place);
    }

    fn register(&mut self, class: Class) -> Result<R, LoadError> {
        let count = &mut self.counts[class as usize];
        if *count >= u32::from(NONE) {
            return Err(LoadError::syntax(self.place.ptx_line, "more than 65534 registers"));
        }
        *count += 1;
        Ok((*count - 1) as R)
    }

    /// A register that is declared.
    fn register_of(&mut self, class: Class, kind: &str) -> Result<R, LoadError> {
        let register = self.register(class)?;
        if class == Class::W32 && type_bytes(kind) != Some(4) {
            self.halves.insert(register);
        }
        Ok(register)
    }

    /// Refuses a register that is narrower than the value that it holds.
    fn holds(
        &self,
        instruction: &Instruction,
        class: Class,
        register: R,
        bytes: u64,
    ) -> Result<(), LoadError> {
        let has = match class {
            Class::W64 => 8,
            Class::W32 if self.halves.contains(&register) => 2,
            Class::W32 => 4,
            Class::Pred => return Err(self.wrong(instruction, "a predicate as a value")),
        };
        if bytes <= has {
            return Ok(());
        }
        let reason = format!("a register of {} bits for a value of {} bits", 8 * has, 8 * bytes);
        Err(self.wrong(instruction, reason))
    }

    fn constant32(&mut self, value: Initial32) -> Result<R, LoadError> {
        if let Some(register) = self.constants32.get(&value) {
            return Ok(*register);
        }
        let register = self.register(Class::W32)?;
        self.constants32.insert(value, register);
        Ok(register)
    }

    fn constant64(&mut self, value: u64) -> Result<R, LoadError> {
        if let Some(register) = self.constants64.get(&value) {
            return Ok(*register);
        }
        let register = self.register(Class::W64)?;
        self.constants64.insert(value, register);
        Ok(register)
    }

    fn shared(&mut self, variable: &Variable, scope: Option<usize>) -> Result<(), LoadError> {
        if variable.count.is_none() {
            // Dynamic shared memory begins behind the static.
            let symbol = Symbol::Shared(DYNAMIC_SHARED);
            self.shared_symbols.insert(variable.name.clone(), symbol);
            self.dynamic_align = self.dynamic_align.max(variable.align);
            return Ok(());
        }
        self.shared_bytes = self.shared_bytes.next_multiple_of(variable.align.max(1));
        let symbol = Symbol::Shared(self.shared_bytes);
        self.shared_bytes += variable.bytes();
        if self.shared_bytes > MAX_STATIC_SHARED {
            let reason = format!("more than {MAX_STATIC_SHARED} bytes of static shared memory");
            return Err(LoadError::syntax(variable.line, reason));
        }
        match scope {
            Some(scope) => self.scopes[scope].symbols.insert(variable.name.clone(), symbol),
            None => self.shared_symbols.insert(variable.name.clone(), symbol),
        };
        Ok(())
    }

    fn local(&mut self, variable: &Variable) -> Result<u64, LoadError> {
        let at = self.local_bytes.next_multiple_of(variable.align.max(1));
        self.local_bytes = at + variable.bytes();
        if self.local_bytes > 1 << 19 {
            return Err(LoadError::syntax(variable.line, "more than 512 KiB of local memory a thread"));
        }
        Ok(at)
    }

    fn declare(&mut self, function: &Function) -> Result<(), LoadError> {
        if function.is_entry {
            return Ok(());
        }
        let mut place = |variable: &Variable| Ok((self.local(variable)?, variable.bytes()));
        let signature = Signature {
            returns: function.returns.iter().map(&mut place).collect::<Result<_, LoadError>>()?,
            params: function.params.iter().map(&mut place).collect::<Result<_, LoadError>>()?,
        };
        self.signatures.insert(function.name.clone(), signature);
        Ok(())
    }

    fn function(&mut self, function: &Function) -> Result<(), LoadError> {
        let (start, local) = (self.ops.len() as u32, self.local_bytes);
        self.scopes = vec![Scope::default()];
        self.in_entry = function.is_entry;
        self.place = Place { ptx_line: function.line, ..Place::default() };
        if function.is_entry {
            for param in &function.params {
                self.param_bytes = self.param_bytes.next_multiple_of(param.align.max(1));
                self.scopes[0].symbols.insert(param.name.clone(), Symbol::Param(self.param_bytes));
                self.params.push(Param { offset: self.param_bytes, bytes: param.bytes() });
                self.param_bytes += param.bytes();
                if self.param_bytes > MAX_PARAM_BYTES {
                    let reason = format!("more than {MAX_PARAM_BYTES} bytes of parameters");
                    return Err(LoadError::syntax(param.line, reason));
                }
            }
        } else {
            let signature = self.signatures[&function.name].clone();
            let formals = function.returns.iter().zip(&signature.returns);
            for (variable, (at, _)) in formals.chain(function.params.iter().zip(&signature.params)) {
                if variable.space == "reg" {
                    let reason = "parameters in registers".to_owned();
                    let instruction = ".func".into();
                    return Err(LoadError::Unsupported { line: variable.line, instruction, reason });
                }
                self.scopes[0].symbols.insert(variable.name.clone(), Symbol::Local(*at));
            }
        }
        for statement in &function.body {
            self.statement(statement)?;
        }
        // Falling off the end returns.
        self.emit(Guard::ALWAYS, if self.in_entry { Op::Exit } else { Op::Return });
        self.entries.insert(function.name.clone(), (start, local..self.local_bytes));
        self.close()
    }

    fn statement(&mut self, statement: &Statement) -> Result<(), LoadError> {
        match statement {
            Statement::Registers { kind, name, count, line } => {
                self.place.ptx_line = *line;
                let class = match kind.as_str() {
                    ".pred" => Class::Pred,
                    kind => match type_bytes(kind) {
                        Some(1 | 2 | 4) => Class::W32,
                        Some(8) => Class::W64,
                        _ => return Err(self.unsupported_place(".reg", format!("registers of type {kind}"))),
                    },
                };
                match count {
                    None => {
                        let register = self.register_of(class, kind)?;
                        self.insert(name.clone(), Symbol::Register(class, register));
                    }
                    Some(count) => {
                        for index in 0..*count {
                            let register = self.register_of(class, kind)?;
                            self.insert(format!("{name}{index}"), Symbol::Register(class, register));
                        }
                    }
                }
            }
            Statement::Variable(variable) => match variable.space.as_str() {
                "shared" => self.shared(variable, Some(self.scopes.len() - 1))?,
                "local" | "param" => {
                    let at = self.local(variable)?;
                    self.insert(variable.name.clone(), Symbol::Local(at));
                }
                other => {
                    return Err(
                        self.unsupported_place(other, "a variable of this space in a function".into())
                    );
                }
            },
            Statement::Label { name, line } => {
                let at = self.ops.len() as u32;
                if self.scope().labels.insert(name.clone(), at).is_some() {
                    let reason = format!("the label `{name}` stands twice in its scope");
                    return Err(LoadError::syntax(*line, reason));
                }
            }
            Statement::Location { file, line } => {
                // Line 0 marks code that no line stands for; the last real one says more.
                if *line > 0 {
                    self.place.file = *file;
                    self.place.line = *line;
                }
            }
            Statement::Open => self.scopes.push(Scope::default()),
            Statement::Close => self.close()?,
            Statement::Targets { name, labels } => {
                self.scope().tables.insert(name.clone(), labels.clone());
            }
            Statement::Instruction(instruction) => {
                self.place.ptx_line = instruction.line;
                self.instruction(instruction)?;
            }
        }
        Ok(())
    }

    fn insert(&mut self, name: String, symbol: Symbol) {
        self.scope().symbols.insert(name, symbol);
    }

    fn scope(&mut self) -> &mut Scope {
        self.scopes.last_mut().expect("a function has a scope")
    }

    /// Ends a scope: its branches go to its own labels, or to those around it.
    fn close(&mut self) -> Result<(), LoadError> {
        let mut scope = self.scopes.pop().expect("a function has a scope");
        for mut branch in scope.open.drain(..) {
            if let Some(labels) = branch.table.as_ref().and_then(|table| scope.tables.get(table)) {
                branch.targets = labels.iter().cloned().map(Err).collect();
                branch.table = None;
            }
            for target in &mut branch.targets {
                if let Some(at) = target.as_ref().err().and_then(|name| scope.labels.get(name)) {
                    *target = Ok(*at);
                }
            }
            let OpenBranch { ops, line, table, targets } = &branch;
            let missing = table.as_ref().or(targets.iter().find_map(|target| target.as_ref().err()));
            if let Some(name) = missing {
                let (line, name) = (*line, name.clone());
                let around = self.scopes.last_mut().ok_or(LoadError::Undeclared { line, name })?;
                around.open(branch);
                continue;
            }
            let found: Arc<[u32]> = targets.iter().flatten().copied().collect();
            for op in ops {
                match &mut self.ops[*op] {
                    Op::BranchIndex { targets, .. } => *targets = Arc::clone(&found),
                    op => *op = Op::Branch { target: found[0] },
                }
            }
        }
        Ok(())
    }

    fn unsupported_place(&self, what: &str, reason: String) -> LoadError {
        LoadError::Unsupported { line: self.place.ptx_line, instruction: what.to_owned(), reason }
    }

    fn lookup(&self, name: &str) -> Result<Symbol, LoadError> {
        for scope in self.scopes.iter().rev() {
            if let Some(symbol) = scope.symbols.get(name) {
                return Ok(*symbol);
            }
        }
        if let Some(symbol) = self.shared_symbols.get(name) {
            return Ok(*symbol);
        }
        if let Some(address) = self.globals.get(name) {
            return Ok(Symbol::Module(*address));
        }
        Err(LoadError::Undeclared { line: self.place.ptx_line, name: name.to_owned() })
    }

    fn wrong(&self, instruction: &Instruction, reason: impl Into<String>) -> LoadError {
        LoadError::Unsupported {
            line: instruction.line,
            instruction: instruction.opcode.clone(),
            reason: reason.into(),
        }
    }

    fn operand<'i>(&self, instruction: &'i Instruction, index: usize) -> Result<&'i Operand, LoadError> {
        let missing =
            || LoadError::syntax(instruction.line, format!("`{}` lacks an operand", instruction.opcode));
        instruction.operands.get(index).ok_or_else(missing)
    }

    /// A constant as an operand's type wants it: floating-point ones of either width fit both types, integers none.
    fn typed<'i>(
        &self,
        instruction: &Instruction,
        operand: &'i Operand,
        kind: &str,
    ) -> Result<Cow<'i, Operand>, LoadError> {
        Ok(match (kind, operand) {
            ("f32" | "f64", Operand::Int(_)) => {
                return Err(self.wrong(instruction, format!("an integer for an operand of type .{kind}")));
            }
            ("f32", Operand::F64(bits)) => Cow::Owned(Operand::F32((f64::from_bits(*bits) as f32).to_bits())),
            ("f64", Operand::F32(bits)) => {
                Cow::Owned(Operand::F64(f64::from(f32::from_bits(*bits)).to_bits()))
            }
            _ => Cow::Borrowed(operand),
        })
    }

    /// The low 32 bits of a source: of a wider register too.
    fn low32(&mut self, guard: Guard, instruction: &Instruction, operand: &Operand) -> Result<R, LoadError> {
        if let Operand::Name(name) = operand
            && let Ok(Symbol::Register(Class::W64, a)) = self.lookup(name)
        {
            let d = self.register(Class::W32)?;
            self.emit(guard, Op::alu(TRUNCATE, d, &[a]));
            return Ok(d);
        }
        self.source32(instruction, operand)
    }

    fn source32(&mut self, instruction: &Instruction, operand: &Operand) -> Result<R, LoadError> {
        match operand {
            Operand::Int(value) => self.constant32(Initial32::Value(*value as u32)),
            Operand::F32(bits) => self.constant32(Initial32::Value(*bits)),
            Operand::F64(_) => Err(self.wrong(instruction, "a 64-bit constant for a 32-bit operand")),
            Operand::Name(name) => {
                if let Some(special) = special(name) {
                    return self.constant32(special);
                }
                match self.lookup(name)? {
                    Symbol::Register(Class::W32, register) => Ok(register),
                    Symbol::Register(Class::W64, _) => {
                        let reason = format!("`{name}`, which has 64 bits, for a 32-bit operand");
                        Err(self.wrong(instruction, reason))
                    }
                    Symbol::Shared(DYNAMIC_SHARED) => self.constant32(Initial32::DynamicShared),
                    Symbol::Shared(at) | Symbol::Local(at) | Symbol::Param(at) => {
                        self.constant32(Initial32::Value(at as u32))
                    }
                    _ => Err(self.wrong(instruction, format!("`{name}` has no 32-bit value"))),
                }
            }
            other => Err(self.wrong(instruction, format!("an operand of the form {other:?}"))),
        }
    }

    fn source64(
        &mut self,
        guard: Guard,
        instruction: &Instruction,
        operand: &Operand,
    ) -> Result<R, LoadError> {
        match operand {
            Operand::Int(value) => self.constant64(*value),
            Operand::F64(bits) => self.constant64(*bits),
            Operand::F32(_) => Err(self.wrong(instruction, "a 32-bit constant for a 64-bit operand")),
            Operand::Name(name) if name == "%gridid" => self.constant64(0),
            Operand::Name(name) => match self.lookup(name)? {
                Symbol::Register(Class::W64, register) => Ok(register),
                Symbol::Register(Class::W32, _) => {
                    let reason = format!("`{name}`, which has 32 bits, for a 64-bit operand");
                    Err(self.wrong(instruction, reason))
                }
                Symbol::Shared(DYNAMIC_SHARED) => {
                    let a = self.constant32(Initial32::DynamicShared)?;
                    let d = self.register(Class::W64)?;
                    self.emit(guard, Op::alu(EXTEND, d, &[a]));
                    Ok(d)
                }
                Symbol::Module(address) => self.constant64(address),
                Symbol::Shared(at) | Symbol::Local(at) | Symbol::Param(at) => self.constant64(at),
                Symbol::Register(Class::Pred, _) => {
                    Err(self.wrong(instruction, format!("`{name}` is a predicate")))
                }
            },
            other => Err(self.wrong(instruction, format!("an operand of the form {other:?}"))),
        }
    }

    fn predicate(&mut self, instruction: &Instruction, operand: &Operand) -> Result<PredSource, LoadError> {
        let (name, negated) = match operand {
            Operand::Name(name) => (name, false),
            Operand::Not(name) => (name, true),
            Operand::Int(value) => return Ok(PredSource::constant(*value != 0)),
            other => return Err(self.wrong(instruction, format!("a predicate of the form {other:?}"))),
        };
        match self.lookup(name)? {
            Symbol::Register(Class::Pred, register) => Ok(PredSource { register, negated }),
            _ => Err(self.wrong(instruction, format!("`{name}` is no predicate"))),
        }
    }

    fn target_register(
        &mut self,
        instruction: &Instruction,
        operand: &Operand,
    ) -> Result<(Class, R), LoadError> {
        match operand {
            Operand::Name(name) => match self.lookup(name)? {
                Symbol::Register(class, register) => Ok((class, register)),
                _ => Err(self.wrong(instruction, format!("`{name}` is no register"))),
            },
            // Results that nobody wants go to a register that nobody reads.
            Operand::Sink => Ok((Class::W32, self.register(Class::W32)?)),
            other => Err(self.wrong(instruction, format!("a result of the form {other:?}"))),
        }
    }

    fn target(&mut self, instruction: &Instruction, operand: &Operand, class: Class) -> Result<R, LoadError> {
        if *operand == Operand::Sink {
            return self.register(class);
        }
        let (found, register) = self.target_register(instruction, operand)?;
        if found == class {
            return Ok(register);
        }
        Err(self.wrong(instruction, "a result register of another width"))
    }

    /// The registers of `d|p`, of which either may be `_`; the second is [`NONE`] where nobody wants it.
    fn two_targets(&mut self, instruction: &Instruction, class: Class) -> Result<(R, R), LoadError> {
        let named = |name: &String| if name == "_" { Operand::Sink } else { Operand::Name(name.clone()) };
        let (first, second) = match self.operand(instruction, 0)? {
            Operand::Pair(first, second) => (named(first), named(second)),
            operand => (operand.clone(), Operand::Sink),
        };
        let first = self.target(instruction, &first, class)?;
        let second = match second {
            Operand::Sink => NONE,
            second => self.target(instruction, &second, Class::Pred)?,
        };
        Ok((first, second))
    }

    fn instruction(&mut self, instruction: &Instruction) -> Result<(), LoadError> {
        let guard = match &instruction.guard {
            None => Guard::ALWAYS,
            Some((name, negated)) => match self.lookup(name)? {
                Symbol::Register(Class::Pred, register) => Guard { register, negated: *negated },
                _ => return Err(self.wrong(instruction, format!("`{name}` is no predicate"))),
            },
        };
        let opcode = instruction.opcode.as_str();
        let mut parts = opcode.split('.');
        let base = parts.next().unwrap_or_default();
        let modifiers: Vec<&str> = parts.collect();
        let last = *modifiers.last().unwrap_or(&"");
        match (base, last) {
            ("mov", "pred") if modifiers.len() == 1 => {
                let d = self.target(instruction, self.operand(instruction, 0)?, Class::Pred)?;
                let a = self.predicate(instruction, self.operand(instruction, 1)?)?;
                self.emit(guard, Op::Pred { f: PredOp::Or, d, a, b: a });
                Ok(())
            }
            ("and" | "or" | "xor" | "not", "pred") => {
                let d = self.target(instruction, self.operand(instruction, 0)?, Class::Pred)?;
                let mut a = self.predicate(instruction, self.operand(instruction, 1)?)?;
                let (f, b) = match base {
                    "not" => {
                        a.negated = !a.negated;
                        (PredOp::Or, a)
                    }
                    _ => {
                        let b = self.predicate(instruction, self.operand(instruction, 2)?)?;
                        let f = match base {
                            "and" => PredOp::And,
                            "or" => PredOp::Or,
                            _ => PredOp::Xor,
                        };
                        (f, b)
                    }
                };
                self.emit(guard, Op::Pred { f, d, a, b });
                Ok(())
            }
            (
                "mov",
                "b16" | "u16" | "s16" | "b32" | "u32" | "s32" | "f32" | "b64" | "u64" | "s64" | "f64",
            ) if modifiers.len() == 1 => self.mov(guard, instruction, last),
            ("cvta", _) => self.cvta(guard, instruction, &modifiers),
            ("addc" | "subc" | "madc", _) => self.carry(guard, instruction, base, &modifiers),
            ("add" | "sub" | "mad", _) if modifiers.contains(&"cc") => {
                self.carry(guard, instruction, base, &modifiers)
            }
            ("isspacep", _) => self.isspacep(guard, instruction, last),
            ("selp", _) => {
                let p = self.predicate(instruction, self.operand(instruction, 3)?)?;
                let a = self.typed(instruction, self.operand(instruction, 1)?, last)?;
                let b = self.typed(instruction, self.operand(instruction, 2)?, last)?;
                let op = if wide(last) {
                    let d = self.target(instruction, self.operand(instruction, 0)?, Class::W64)?;
                    let a = self.source64(guard, instruction, &a)?;
                    let b = self.source64(guard, instruction, &b)?;
                    Op::Select64 { d, a, b, p }
                } else {
                    let d = self.target(instruction, self.operand(instruction, 0)?, Class::W32)?;
                    let a = self.source32(instruction, &a)?;
                    let b = self.source32(instruction, &b)?;
                    Op::Select32 { d, a, b, p }
                };
                self.emit(guard, op);
                Ok(())
            }
            ("setp", _) => self.setp(guard, instruction, &modifiers),
            ("ld" | "ldu", _) => self.load_or_store(guard, instruction, &modifiers, true),
            ("st", _) => self.load_or_store(guard, instruction, &modifiers, false),
            ("atom" | "red", _) => self.atomic(guard, instruction, base == "atom", &modifiers),
            ("shfl", _) => self.shfl(guard, instruction, &modifiers),
            ("vote", _) => self.vote(guard, instruction, &modifiers),
            ("match", _) => self.match_sync(guard, instruction, &modifiers),
            ("redux", _) => self.redux(guard, instruction, &modifiers),
            ("mma", _) => self.mma(guard, instruction, &modifiers),
            ("activemask", _) => {
                let d = self.target(instruction, self.operand(instruction, 0)?, Class::W32)?;
                self.emit(guard, Op::ActiveMask { d });
                Ok(())
            }
            ("bar" | "barrier", _) => self.barrier(guard, instruction, &modifiers),
            // One block at a time sees memory in order, so fences order nothing more; a launch begins when the one before is
            // over, so there is nothing to wait for; hints have no effect.
            (
                "membar" | "fence" | "prefetch" | "prefetchu" | "nanosleep" | "discard" | "applypriority"
                | "griddepcontrol",
                _,
            ) => {
                self.emit(guard, Op::Nop);
                Ok(())
            }
            ("createpolicy", _) => {
                let d = self.target(instruction, self.operand(instruction, 0)?, Class::W64)?;
                let a = self.constant64(0)?;
                self.emit(guard, Op::Copy64 { d, a });
                Ok(())
            }
            ("mbarrier", _) => self.memory_barrier(guard, instruction, &modifiers),
            ("cp", _) => self.cp_async(guard, instruction, &modifiers),
            ("bra", _) => {
                let Operand::Name(label) = self.operand(instruction, 0)? else {
                    return Err(self.wrong(instruction, "a target that is no label"));
                };
                let (ops, line) = (vec![self.ops.len()], instruction.line);
                let targets = vec![Err(label.clone())];
                self.scope().open(OpenBranch { ops, line, table: None, targets });
                self.emit(guard, Op::Branch { target: 0 });
                Ok(())
            }
            ("brx", _) => {
                let index = self.source32(instruction, self.operand(instruction, 0)?)?;
                let Operand::Name(table) = self.operand(instruction, 1)? else {
                    return Err(self.wrong(instruction, "a table that is no name"));
                };
                let (ops, line) = (vec![self.ops.len()], instruction.line);
                let table = Some(table.clone());
                self.scope().open(OpenBranch { ops, line, table, targets: Vec::new() });
                self.emit(guard, Op::BranchIndex { index, targets: Arc::new([]) });
                Ok(())
            }
            ("call", _) => self.call(guard, instruction),
            ("ret", _) => {
                let op = if self.in_entry { Op::Exit } else { Op::Return };
                self.emit(guard, op);
                Ok(())
            }
            ("exit", _) => {
                self.emit(guard, Op::Exit);
                Ok(())
            }
            ("trap", _) => {
                self.emit(guard, Op::Trap);
                Ok(())
            }
            ("brkpt" | "pmevent", _) => {
                self.emit(guard, Op::Nop);
                Ok(())
            }
            _ => self.alu(guard, instruction, opcode),
        }
    }

    /// Instructions that compute registers from registers.
    fn alu(&mut self, guard: Guard, instruction: &Instruction, opcode: &str) -> Result<(), LoadError> {
        use Class::{W32, W64};
        let f = alu::find(opcode).ok_or_else(|| self.wrong(instruction, ""))?;
        let (sources, d) = f.classes();
        if instruction.operands.len() != sources.len() + 1 {
            return Err(self.wrong(instruction, format!("{} operands", instruction.operands.len())));
        }
        let is_conversion = opcode.starts_with("cvt.");
        let mut kinds = opcode.rsplit('.');
        let last = kinds.next().unwrap_or_default();
        // `slct` chooses between two values of one type by the sign of another.
        let first = if opcode.starts_with("slct.") { kinds.next().unwrap_or_default() } else { last };
        let mut registers = [0; 4];
        for (index, class) in sources.iter().enumerate() {
            let kind = if index < 2 { first } else { last };
            let operand = self.typed(instruction, self.operand(instruction, index + 1)?, kind)?;
            registers[index] = match class {
                W32 if is_conversion => self.low32(guard, instruction, &operand)?,
                W32 => self.source32(instruction, &operand)?,
                _ => self.source64(guard, instruction, &operand)?,
            };
        }
        let target = self.operand(instruction, 0)?;
        // A conversion may leave a narrow result in a wider register, extended as its own type is.
        if d == W32 && is_conversion && *target != Operand::Sink {
            let (class, register) = self.target_register(instruction, target)?;
            let half = class == W32 && self.halves.contains(&register);
            let extend = match (opcode.split('.').nth_back(1), class) {
                (Some("s8" | "s16"), W64) => Some(SIGN_EXTEND_HALF),
                (Some("s8" | "s16"), W32) if !half => {
                    Some(Alu::A1(|a, d| (0..32).for_each(|lane| d[lane] = a[lane] as i16 as u32)))
                }
                (Some("s32"), W64) => Some(SIGN_EXTEND),
                (_, W64) => Some(EXTEND),
                _ => None,
            };
            if let Some(extend) = extend {
                let narrow = self.register(W32)?;
                self.emit(guard, Op::alu(f, narrow, &registers[..sources.len()]));
                self.emit(guard, Op::alu(extend, register, &[narrow]));
                return Ok(());
            }
        }
        let d = self.target(instruction, target, d)?;
        self.emit(guard, Op::alu(f, d, &registers[..sources.len()]));
        Ok(())
    }

    /// Sums, differences and products that hand a carry on. One predicate register holds it.
    fn carry(
        &mut self,
        guard: Guard,
        instruction: &Instruction,
        base: &str,
        modifiers: &[&str],
    ) -> Result<(), LoadError> {
        let takes = base.ends_with('c');
        let (half, rest) = match modifiers {
            ["lo", rest @ ..] => (Some(CarryKind::LowProduct), rest),
            ["hi", rest @ ..] => (Some(CarryKind::HighProduct), rest),
            rest => (None, rest),
        };
        let kind = match (base.trim_end_matches('c'), half) {
            ("add", None) => CarryKind::Sum,
            ("sub", None) => CarryKind::Difference,
            ("mad", Some(half)) => half,
            _ => return Err(self.wrong(instruction, "")),
        };
        let (gives, ty) = match rest {
            ["cc", ty] => (true, *ty),
            [ty] => (false, *ty),
            _ => return Err(self.wrong(instruction, "")),
        };
        if !["u32", "s32", "u64", "s64"].contains(&ty) {
            return Err(self.wrong(instruction, ""));
        }
        let wide = wide(ty);
        let sources = if half.is_some() { 3 } else { 2 };
        if instruction.operands.len() != sources + 1 {
            return Err(self.wrong(instruction, format!("{} operands", instruction.operands.len())));
        }
        let mut registers = [0; 3];
        for (index, register) in registers.iter_mut().enumerate().take(sources) {
            let operand = self.operand(instruction, index + 1)?.clone();
            *register = match wide {
                true => self.source64(guard, instruction, &operand)?,
                false => self.source32(instruction, &operand)?,
            };
        }
        let target = self.operand(instruction, 0)?.clone();
        let d = self.target(instruction, &target, if wide { Class::W64 } else { Class::W32 })?;
        let flag = match self.carry_flag {
            Some(flag) => flag,
            None => self.register(Class::Pred)?,
        };
        self.carry_flag = Some(flag);
        let [a, b, c] = registers;
        let signed = ty.starts_with('s');
        self.emit(guard, Op::Carry(Carry { kind, wide, signed, takes, gives, d, a, b, c, flag }));
        Ok(())
    }

    fn mov(&mut self, guard: Guard, instruction: &Instruction, kind: &str) -> Result<(), LoadError> {
        let target = self.operand(instruction, 0)?.clone();
        let source = self.typed(instruction, self.operand(instruction, 1)?, kind)?.into_owned();
        match (&target, &source) {
            (Operand::Vector(parts), _) => self.unpack(guard, instruction, kind, parts, &source),
            (_, Operand::Vector(parts)) => self.pack(guard, instruction, kind, &target, parts),
            (_, Operand::Name(name)) if clock(name).is_some() => {
                let class = if wide(kind) { Class::W64 } else { Class::W32 };
                let d = self.target(instruction, &target, class)?;
                let part = clock(name).unwrap_or(Clock::Low);
                self.emit(guard, Op::Clock { d, wide: wide(kind), part });
                Ok(())
            }
            (_, Operand::Sum(name, offset)) if !matches!(self.lookup(name)?, Symbol::Register(..)) => {
                let a = self.source64(guard, instruction, &Operand::Name(name.clone()))?;
                let b = self.constant64(*offset)?;
                if wide(kind) {
                    let d = self.target(instruction, &target, Class::W64)?;
                    self.emit(guard, Op::alu(ADD, d, &[a, b]));
                } else {
                    let d = self.target(instruction, &target, Class::W32)?;
                    let sum = self.register(Class::W64)?;
                    self.emit(guard, Op::alu(ADD, sum, &[a, b]));
                    self.emit(guard, Op::alu(TRUNCATE, d, &[sum]));
                }
                Ok(())
            }
            // A variable's address in its own space, or a plain copy.
            _ if wide(kind) => {
                let d = self.target(instruction, &target, Class::W64)?;
                let a = self.source64(guard, instruction, &source)?;
                self.emit(guard, Op::Copy64 { d, a });
                Ok(())
            }
            _ => {
                let d = self.target(instruction, &target, Class::W32)?;
                let a = self.source32(instruction, &source)?;
                self.emit(guard, Op::Copy32 { d, a });
                Ok(())
            }
        }
    }

    /// `mov.b64 {a, b}, c`
    fn unpack(
        &mut self,
        guard: Guard,
        instruction: &Instruction,
        kind: &str,
        parts: &[Operand],
        source: &Operand,
    ) -> Result<(), LoadError> {
        macro_rules! part {
            ($variant:ident, $shift:literal, $mask:literal) => {
                Alu::$variant(|a, d| (0..32).for_each(|lane| d[lane] = (a[lane] >> $shift) as u32 & $mask))
            };
        }
        let (a, functions): (R, Vec<Alu>) = match (kind, parts.len()) {
            ("b64", 2) => (
                self.source64(guard, instruction, source)?,
                vec![part!(N1, 0, 0xffff_ffff), part!(N1, 32, 0xffff_ffff)],
            ),
            ("b64", 4) => (
                self.source64(guard, instruction, source)?,
                vec![
                    part!(N1, 0, 0xffff),
                    part!(N1, 16, 0xffff),
                    part!(N1, 32, 0xffff),
                    part!(N1, 48, 0xffff),
                ],
            ),
            ("b32", 2) => {
                (self.source32(instruction, source)?, vec![part!(A1, 0, 0xffff), part!(A1, 16, 0xffff)])
            }
            ("b32", 4) => (
                self.source32(instruction, source)?,
                vec![part!(A1, 0, 0xff), part!(A1, 8, 0xff), part!(A1, 16, 0xff), part!(A1, 24, 0xff)],
            ),
            _ => return Err(self.wrong(instruction, format!("{} parts", parts.len()))),
        };
        // The source may be one of the targets.
        let copy = match kind {
            "b64" => {
                let copy = self.register(Class::W64)?;
                self.emit(guard, Op::Copy64 { d: copy, a });
                copy
            }
            _ => {
                let copy = self.register(Class::W32)?;
                self.emit(guard, Op::Copy32 { d: copy, a });
                copy
            }
        };
        for (part, f) in parts.iter().zip(functions) {
            if *part != Operand::Sink {
                let d = self.target(instruction, part, Class::W32)?;
                self.emit(guard, Op::alu(f, d, &[copy]));
            }
        }
        Ok(())
    }

    /// `mov.b64 c, {a, b}`
    fn pack(
        &mut self,
        guard: Guard,
        instruction: &Instruction,
        kind: &str,
        target: &Operand,
        parts: &[Operand],
    ) -> Result<(), LoadError> {
        let mut sources = Vec::new();
        for part in parts {
            sources.push(self.source32(instruction, part)?);
        }
        let halves =
            Alu::A2(|a, b, d| (0..32).for_each(|lane| d[lane] = (a[lane] & 0xffff) | (b[lane] << 16)));
        let words = Alu::W2(|a, b, d| {
            (0..32).for_each(|lane| d[lane] = u64::from(a[lane]) | (u64::from(b[lane]) << 32));
        });
        match (kind, sources.as_slice()) {
            ("b64", [a, b]) => {
                let d = self.target(instruction, target, Class::W64)?;
                self.emit(guard, Op::alu(words, d, &[*a, *b]));
            }
            ("b64", [a, b, c, e]) => {
                let d = self.target(instruction, target, Class::W64)?;
                let (low, high) = (self.register(Class::W32)?, self.register(Class::W32)?);
                self.emit(guard, Op::alu(halves, low, &[*a, *b]));
                self.emit(guard, Op::alu(halves, high, &[*c, *e]));
                self.emit(guard, Op::alu(words, d, &[low, high]));
            }
            ("b32", [a, b]) => {
                let d = self.target(instruction, target, Class::W32)?;
                self.emit(guard, Op::alu(halves, d, &[*a, *b]));
            }
            ("b32", [a, b, c, e]) => {
                let d = self.target(instruction, target, Class::W32)?;
                let bytes = Alu::A4(|a, b, c, e, d| {
                    for lane in 0..32 {
                        d[lane] = (a[lane] & 0xff)
                            | ((b[lane] & 0xff) << 8)
                            | ((c[lane] & 0xff) << 16)
                            | (e[lane] << 24);
                    }
                });
                self.emit(guard, Op::alu(bytes, d, &[*a, *b, *c, *e]));
            }
            _ => return Err(self.wrong(instruction, format!("{} parts", parts.len()))),
        }
        Ok(())
    }

    /// Between generic addresses and those of a space. Global and constant addresses are the same in both.
    fn cvta(&mut self, guard: Guard, instruction: &Instruction, modifiers: &[&str]) -> Result<(), LoadError> {
        let to = modifiers.first() == Some(&"to");
        let space = modifiers.get(usize::from(to)).copied().unwrap_or_default();
        let base = match space {
            "global" | "const" => 0,
            "shared" | "shared::cta" => SHARED_BASE,
            "local" => LOCAL_BASE,
            _ => return Err(self.wrong(instruction, "")),
        };
        let d = self.target(instruction, self.operand(instruction, 0)?, Class::W64)?;
        let a = self.source64(guard, instruction, self.operand(instruction, 1)?)?;
        if base == 0 {
            self.emit(guard, Op::Copy64 { d, a });
            return Ok(());
        }
        let b = self.constant64(if to { base.wrapping_neg() } else { base })?;
        self.emit(guard, Op::alu(ADD, d, &[a, b]));
        Ok(())
    }

    fn isspacep(&mut self, guard: Guard, instruction: &Instruction, space: &str) -> Result<(), LoadError> {
        let base = match space {
            "global" => crate::memory::GLOBAL_BASE,
            "const" => MODULE_BASE,
            "shared" | "shared::cta" => SHARED_BASE,
            "local" => LOCAL_BASE,
            _ => return Err(self.wrong(instruction, "")),
        };
        let p = self.target(instruction, self.operand(instruction, 0)?, Class::Pred)?;
        let a = self.source64(guard, instruction, self.operand(instruction, 1)?)?;
        let b = self.constant64(base)?;
        let c = PredSource::constant(true);
        let inside = Alu::T64(|a, b| {
            (0..32).fold(0, |mask, lane| {
                mask | u32::from(a[lane].wrapping_sub(b[lane]) < crate::memory::WINDOW) << lane
            })
        });
        self.emit(guard, Op::Compare { f: inside, p, q: NONE, a, b, combine: PredOp::And, c });
        if space == "global" {
            // Variables of the module lie in global memory too.
            let b = self.constant64(MODULE_BASE)?;
            let c = PredSource { register: p, negated: false };
            self.emit(guard, Op::Compare { f: inside, p, q: NONE, a, b, combine: PredOp::Or, c });
        }
        Ok(())
    }

    fn setp(&mut self, guard: Guard, instruction: &Instruction, modifiers: &[&str]) -> Result<(), LoadError> {
        let mut combine = None;
        let mut plain = String::from("setp");
        for modifier in modifiers {
            match *modifier {
                "and" => combine = Some(PredOp::And),
                "or" => combine = Some(PredOp::Or),
                "xor" => combine = Some(PredOp::Xor),
                other => {
                    plain.push('.');
                    plain.push_str(other);
                }
            }
        }
        let f = alu::find(&plain).ok_or_else(|| self.wrong(instruction, ""))?;
        let (p, q) = self.two_targets(instruction, Class::Pred)?;
        let kind = modifiers.last().copied().unwrap_or_default();
        let a = self.typed(instruction, self.operand(instruction, 1)?, kind)?;
        let b = self.typed(instruction, self.operand(instruction, 2)?, kind)?;
        let (a, b) = match f {
            Alu::T32(_) => (self.source32(instruction, &a)?, self.source32(instruction, &b)?),
            Alu::T64(_) => (self.source64(guard, instruction, &a)?, self.source64(guard, instruction, &b)?),
            _ => return Err(self.wrong(instruction, "")),
        };
        let c = match combine {
            Some(_) => self.predicate(instruction, self.operand(instruction, 3)?)?,
            None => PredSource::constant(true),
        };
        self.emit(guard, Op::Compare { f, p, q, a, b, combine: combine.unwrap_or(PredOp::And), c });
        Ok(())
    }

    /// Base and offset of an address operand, and the space where its variable decides it.
    fn address(
        &mut self,
        instruction: &Instruction,
        operand: &Operand,
        space: Space,
    ) -> Result<(Address, Space), LoadError> {
        let (base, offset) = match operand {
            Operand::Address { base, offset } => (base.as_deref(), *offset),
            Operand::Name(name) => (Some(name.as_str()), 0),
            other => return Err(self.wrong(instruction, format!("an address of the form {other:?}"))),
        };
        let fixed = |at: u64| Address { base: Base::None, offset: at.wrapping_add(offset as u64) };
        let Some(name) = base else { return Ok((fixed(0), space)) };
        let (address, found) = match self.lookup(name)? {
            Symbol::Register(Class::W64, register) => {
                (Address { base: Base::W64(register), offset: offset as u64 }, space)
            }
            Symbol::Register(Class::W32, register) => {
                (Address { base: Base::W32(register), offset: offset as u64 }, space)
            }
            Symbol::Register(Class::Pred, _) => {
                return Err(self.wrong(instruction, "a predicate as an address"));
            }
            Symbol::Module(at) => (fixed(at), Space::Module),
            Symbol::Shared(DYNAMIC_SHARED) => {
                let register = self.constant32(Initial32::DynamicShared)?;
                (Address { base: Base::W32(register), offset: offset as u64 }, Space::Shared)
            }
            Symbol::Shared(at) => (fixed(at), Space::Shared),
            Symbol::Local(at) => (fixed(at), Space::Local),
            Symbol::Param(at) => (fixed(at), Space::Param),
        };
        let fits = match space {
            Space::Generic => true,
            Space::Global => matches!(found, Space::Global | Space::Module),
            // Parameters of functions lie in local memory.
            Space::Param => matches!(found, Space::Param | Space::Local),
            space => found == space,
        };
        if fits { Ok((address, found)) } else { Err(self.wrong(instruction, "a variable of another space")) }
    }

    fn space(&self, instruction: &Instruction, modifiers: &[&str]) -> Result<Space, LoadError> {
        let mut space = Space::Generic;
        for modifier in modifiers {
            space = match *modifier {
                "global" => Space::Global,
                "shared" | "shared::cta" => Space::Shared,
                "local" => Space::Local,
                "const" => Space::Module,
                "param" | "param::entry" | "param::func" => Space::Param,
                "shared::cluster" => return Err(self.wrong(instruction, "shared memory of a cluster")),
                _ => continue,
            };
        }
        Ok(space)
    }

    fn load_or_store(
        &mut self,
        guard: Guard,
        instruction: &Instruction,
        modifiers: &[&str],
        load: bool,
    ) -> Result<(), LoadError> {
        let kind = modifiers.last().copied().unwrap_or_default();
        let Some(bytes @ (1 | 2 | 4 | 8)) = type_bytes(&format!(".{kind}")) else {
            return Err(self.wrong(instruction, ""));
        };
        for modifier in &modifiers[..modifiers.len() - 1] {
            let known = matches!(
                *modifier,
                "global"
                    | "shared"
                    | "shared::cta"
                    | "local"
                    | "const"
                    | "param"
                    | "param::entry"
                    | "param::func"
                    | "volatile"
                    | "relaxed"
                    | "acquire"
                    | "release"
                    | "weak"
                    | "mmio"
                    | "cta"
                    | "gpu"
                    | "sys"
                    | "cluster"
                    | "ca"
                    | "cg"
                    | "cs"
                    | "lu"
                    | "cv"
                    | "nc"
                    | "wb"
                    | "wt"
                    | "v2"
                    | "v4"
                    | "v8"
                    | "unified"
            ) || modifier.starts_with("L1::")
                || modifier.starts_with("L2::");
            if !known {
                return Err(self.wrong(instruction, format!("the modifier .{modifier}")));
            }
        }
        let lanes: usize = match modifiers {
            m if m.contains(&"v2") => 2,
            m if m.contains(&"v4") => 4,
            m if m.contains(&"v8") => 8,
            _ => 1,
        };
        let space = self.space(instruction, modifiers)?;
        let (address_at, value_at) = if load { (1, 0) } else { (0, 1) };
        let address_operand = self.operand(instruction, address_at)?.clone();
        let (address, space) = self.address(instruction, &address_operand, space)?;
        let value_operand = self.operand(instruction, value_at)?.clone();
        let parts = match &value_operand {
            Operand::Vector(parts) => parts.clone(),
            other => vec![other.clone()],
        };
        if parts.len() != lanes || lanes > 4 {
            return Err(self.wrong(instruction, format!("{} values", parts.len())));
        }
        let mut values = [Value { register: NONE, wide: false }; 4];
        for (part, value) in parts.iter().zip(&mut values) {
            if let (false, Operand::Name(name)) = (load, part)
                && let Ok(Symbol::Register(class, register)) = self.lookup(name)
            {
                self.holds(instruction, class, register, bytes)?;
            }
            *value = if load {
                match part {
                    Operand::Sink => Value { register: NONE, wide: false },
                    part => {
                        let (class, register) = self.target_register(instruction, part)?;
                        self.holds(instruction, class, register, bytes)?;
                        Value { register, wide: class == Class::W64 }
                    }
                }
            } else {
                let part = self.typed(instruction, part, kind)?;
                match bytes {
                    8 => Value { register: self.source64(guard, instruction, &part)?, wide: true },
                    _ => Value { register: self.low32(guard, instruction, &part)?, wide: false },
                }
            };
        }
        let is_strong =
            modifiers.iter().any(|modifier| ["volatile", "relaxed", "acquire"].contains(modifier));
        self.looks_at_others |= load && is_strong && is_global(space);
        let access = Access {
            space,
            bytes: bytes as u32,
            lanes: lanes as u8,
            signed: kind.starts_with('s'),
            address,
            values,
        };
        self.emit(guard, if load { Op::Load(access) } else { Op::Store(access) });
        Ok(())
    }

    fn atomic(
        &mut self,
        guard: Guard,
        instruction: &Instruction,
        returns: bool,
        modifiers: &[&str],
    ) -> Result<(), LoadError> {
        let kind = modifiers.last().copied().unwrap_or_default();
        let Some(bytes @ (2 | 4 | 8)) = type_bytes(&format!(".{kind}")) else {
            return Err(self.wrong(instruction, ""));
        };
        let space = self.space(instruction, modifiers)?;
        let is_operation = |modifier: &&str| {
            ["add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec"].contains(modifier)
        };
        let Some(operation) = modifiers.iter().copied().find(is_operation) else {
            return Err(self.wrong(instruction, ""));
        };
        let is_known = |modifier: &&str| {
            let known = [
                "global",
                "shared",
                "shared::cta",
                "relaxed",
                "acquire",
                "release",
                "acq_rel",
                "cta",
                "cluster",
                "gpu",
                "sys",
                "noftz",
            ];
            *modifier == operation || known.contains(modifier) || modifier.starts_with("L2::")
        };
        if let Some(modifier) = modifiers[..modifiers.len() - 1].iter().find(|modifier| !is_known(modifier)) {
            return Err(self.wrong(instruction, format!("the modifier .{modifier}")));
        }
        let (d, rest) = match returns {
            true => (Some(self.operand(instruction, 0)?.clone()), 1),
            false => (None, 0),
        };
        let address_operand = self.operand(instruction, rest)?.clone();
        let (address, space) = self.address(instruction, &address_operand, space)?;
        let is_wide = bytes == 8;
        let source = |decoder: &mut Self, index: usize| -> Result<R, LoadError> {
            let operand = decoder.typed(instruction, decoder.operand(instruction, index)?, kind)?;
            match is_wide {
                true => decoder.source64(guard, instruction, &operand),
                false => decoder.source32(instruction, &operand),
            }
        };
        let a = source(self, rest + 1)?;
        let (f, on_shared, b) = if operation == "cas" {
            (AtomicOp::CompareAndSwap, AtomicOp::CompareAndSwap, source(self, rest + 2)?)
        } else {
            let update = |f: Option<fn(u64, u64) -> u64>| {
                f.map(AtomicOp::Update).ok_or_else(|| self.wrong(instruction, ""))
            };
            let flushing = update(alu::atomic_flushing(operation, kind))?;
            (flushing, update(alu::atomic(operation, kind))?, NONE)
        };
        let floating = kind.contains('f');
        let d = match d {
            None | Some(Operand::Sink) => NONE,
            Some(operand) => {
                self.target(instruction, &operand, if is_wide { Class::W64 } else { Class::W32 })?
            }
        };
        self.emit(
            guard,
            Op::Atomic(Atomic {
                space,
                bytes: bytes as u32,
                f,
                on_shared,
                d,
                a,
                b,
                address,
                // Integer sums, extrema and bit operations give the same in any order.
                commutes: !floating && !["cas", "exch", "inc", "dec"].contains(&operation),
            }),
        );
        Ok(())
    }

    fn shfl(&mut self, guard: Guard, instruction: &Instruction, modifiers: &[&str]) -> Result<(), LoadError> {
        let mode = match modifiers {
            ["sync", "up", "b32"] => ShuffleMode::Up,
            ["sync", "down", "b32"] => ShuffleMode::Down,
            ["sync", "bfly", "b32"] => ShuffleMode::Butterfly,
            ["sync", "idx", "b32"] => ShuffleMode::Index,
            _ => return Err(self.wrong(instruction, "")),
        };
        let (d, p) = self.two_targets(instruction, Class::W32)?;
        let mut sources = [0; 4];
        for (index, source) in sources.iter_mut().enumerate() {
            let operand = self.operand(instruction, index + 1)?.clone();
            *source = self.source32(instruction, &operand)?;
        }
        let [a, b, c, mask] = sources;
        self.emit(guard, Op::Shuffle { mode, d, p, a, b, c, mask });
        Ok(())
    }

    fn vote(&mut self, guard: Guard, instruction: &Instruction, modifiers: &[&str]) -> Result<(), LoadError> {
        let mode = match modifiers {
            ["sync", "all", "pred"] => VoteMode::All,
            ["sync", "any", "pred"] => VoteMode::Any,
            ["sync", "uni", "pred"] => VoteMode::Uniform,
            ["sync", "ballot", "b32"] => VoteMode::Ballot,
            _ => return Err(self.wrong(instruction, "")),
        };
        let class = if mode == VoteMode::Ballot { Class::W32 } else { Class::Pred };
        let d = self.target(instruction, self.operand(instruction, 0)?, class)?;
        let a = self.predicate(instruction, self.operand(instruction, 1)?)?;
        let operand = self.operand(instruction, 2)?.clone();
        let mask = self.source32(instruction, &operand)?;
        self.emit(guard, Op::Vote { mode, d, a, mask });
        Ok(())
    }

    fn match_sync(
        &mut self,
        guard: Guard,
        instruction: &Instruction,
        modifiers: &[&str],
    ) -> Result<(), LoadError> {
        let (all, wide) = match modifiers {
            ["any", "sync", "b32"] => (false, false),
            ["any", "sync", "b64"] => (false, true),
            ["all", "sync", "b32"] => (true, false),
            ["all", "sync", "b64"] => (true, true),
            _ => return Err(self.wrong(instruction, "")),
        };
        let (d, p) = self.two_targets(instruction, Class::W32)?;
        let value = self.operand(instruction, 1)?.clone();
        let a = match wide {
            true => self.source64(guard, instruction, &value)?,
            false => self.source32(instruction, &value)?,
        };
        let operand = self.operand(instruction, 2)?.clone();
        let mask = self.source32(instruction, &operand)?;
        self.emit(guard, Op::Match { all, wide, d, p, a, mask });
        Ok(())
    }

    fn redux(
        &mut self,
        guard: Guard,
        instruction: &Instruction,
        modifiers: &[&str],
    ) -> Result<(), LoadError> {
        let ["sync", operation, kind] = modifiers else { return Err(self.wrong(instruction, "")) };
        let (("add" | "min" | "max", "u32" | "s32") | ("and" | "or" | "xor", "b32")) = (*operation, *kind)
        else {
            return Err(self.wrong(instruction, ""));
        };
        let Some(f) = alu::atomic(operation, kind) else { return Err(self.wrong(instruction, "")) };
        let d = self.target(instruction, self.operand(instruction, 0)?, Class::W32)?;
        let operand = self.operand(instruction, 1)?.clone();
        let a = self.source32(instruction, &operand)?;
        let operand = self.operand(instruction, 2)?.clone();
        let mask = self.source32(instruction, &operand)?;
        self.emit(guard, Op::Redux { f, d, a, mask });
        Ok(())
    }

    fn mma(&mut self, guard: Guard, instruction: &Instruction, modifiers: &[&str]) -> Result<(), LoadError> {
        let Some(shape) = Shape::find(modifiers) else { return Err(self.wrong(instruction, "")) };
        let counts = shape.counts();
        let mut fragments: [Vec<R>; 4] = Default::default();
        for (index, count) in [counts.d, counts.a, counts.b, counts.c].into_iter().enumerate() {
            let parts = match self.operand(instruction, index)? {
                Operand::Vector(parts) => parts.clone(),
                single => vec![single.clone()],
            };
            if parts.len() != count {
                let reason = format!("{} registers for a matrix that has {count} in a lane", parts.len());
                return Err(self.wrong(instruction, reason));
            }
            for part in &parts {
                let class = if shape.wide() { Class::W64 } else { Class::W32 };
                fragments[index].push(match (index, shape.wide()) {
                    (0, _) => self.target(instruction, part, class)?,
                    (_, true) => self.source64(guard, instruction, part)?,
                    (_, false) => self.source32(instruction, part)?,
                });
            }
        }
        if instruction.operands.len() != 4 {
            return Err(self.wrong(instruction, format!("{} operands", instruction.operands.len())));
        }
        let [d, a, b, c] = fragments;
        self.emit(guard, Op::Mma(Box::new(Mma { shape, a, b, c, d })));
        Ok(())
    }

    fn barrier(
        &mut self,
        guard: Guard,
        instruction: &Instruction,
        modifiers: &[&str],
    ) -> Result<(), LoadError> {
        let aligned = instruction.opcode.starts_with("bar.") || modifiers.contains(&"aligned");
        let modifiers: Vec<&str> =
            modifiers.iter().copied().filter(|modifier| !["cta", "aligned"].contains(modifier)).collect();
        if modifiers == ["warp", "sync"] {
            let operand = self.operand(instruction, 0)?.clone();
            let mask = self.source32(instruction, &operand)?;
            self.emit(guard, Op::WarpBarrier { mask });
            return Ok(());
        }
        let (kind, first) = match modifiers.as_slice() {
            ["sync"] => (BarrierKind::Sync, 0),
            ["arrive"] => (BarrierKind::Arrive, 0),
            ["red", "popc", "u32"] => (BarrierKind::Count, 1),
            ["red", "and", "pred"] => (BarrierKind::And, 1),
            ["red", "or", "pred"] => (BarrierKind::Or, 1),
            _ => return Err(self.wrong(instruction, "")),
        };
        let reduces = first == 1;
        let d = match kind {
            BarrierKind::Count => self.target(instruction, self.operand(instruction, 0)?, Class::W32)?,
            BarrierKind::And | BarrierKind::Or => {
                self.target(instruction, self.operand(instruction, 0)?, Class::Pred)?
            }
            _ => NONE,
        };
        let a = match reduces {
            true => {
                let last = instruction.operands.len() - 1;
                self.predicate(instruction, self.operand(instruction, last)?)?
            }
            false => PredSource::constant(true),
        };
        let id = self.operand(instruction, first)?.clone();
        let id = self.source32(instruction, &id)?;
        let counted = instruction.operands.len() > first + 1 + usize::from(reduces);
        let threads = match counted {
            true => {
                let operand = self.operand(instruction, first + 1)?.clone();
                self.source32(instruction, &operand)?
            }
            false if kind == BarrierKind::Arrive => {
                return Err(self.wrong(instruction, "an arrival without a number of threads"));
            }
            false => NONE,
        };
        self.emit(guard, Op::Barrier(BlockBarrier { kind, aligned, d, id, threads, a }));
        Ok(())
    }

    /// `mbarrier`: initialisation, arrivals whose state nobody keeps, and waits for a parity.
    fn memory_barrier(
        &mut self,
        guard: Guard,
        instruction: &Instruction,
        modifiers: &[&str],
    ) -> Result<(), LoadError> {
        let [modifiers @ .., "shared" | "shared::cta", "b64"] = modifiers else {
            return Err(self.wrong(instruction, "a barrier in other than shared memory"));
        };
        // The kind, where its address stands, and how many operands there are.
        let (kind, at, count) = match modifiers {
            ["init"] => (MemoryBarrierKind::Init, 0, 2),
            ["arrive"] | ["arrive", "release", "cta"] => (MemoryBarrierKind::Arrive, 1, 2),
            ["arrive", "expect_tx"] | ["arrive", "expect_tx", "release", "cta"] => {
                (MemoryBarrierKind::Arrive, 1, 3)
            }
            ["try_wait" | "test_wait", "parity"] | ["try_wait" | "test_wait", "parity", "acquire", "cta"] => {
                (MemoryBarrierKind::Wait, 1, 3)
            }
            _ => return Err(self.wrong(instruction, "")),
        };
        if instruction.operands.len() != count {
            return Err(self.wrong(instruction, format!("{} operands", instruction.operands.len())));
        }
        if kind == MemoryBarrierKind::Arrive && instruction.operands[0] != Operand::Sink {
            return Err(self.wrong(instruction, "a state of a barrier that is kept"));
        }
        let d = match kind {
            MemoryBarrierKind::Wait => self.target(instruction, &instruction.operands[0], Class::Pred)?,
            _ => NONE,
        };
        let (address, _) = self.address(instruction, &instruction.operands[at], Space::Shared)?;
        let a = match instruction.operands.get(at + 1) {
            Some(operand) => self.source32(instruction, operand)?,
            None => NONE,
        };
        self.emit(guard, Op::MemoryBarrier(MemoryBarrier { kind, address, a, d }));
        Ok(())
    }

    fn cp_async(
        &mut self,
        guard: Guard,
        instruction: &Instruction,
        modifiers: &[&str],
    ) -> Result<(), LoadError> {
        match modifiers {
            ["async", "commit_group"] => {
                self.emit(guard, Op::CommitCopies);
                Ok(())
            }
            ["async", "wait_all"] => {
                self.emit(guard, Op::WaitForCopies { but: None });
                Ok(())
            }
            ["async", "wait_group"] => {
                let Operand::Int(but) = *self.operand(instruction, 0)? else {
                    return Err(self.wrong(instruction, "a number of groups that is no constant"));
                };
                self.emit(guard, Op::WaitForCopies { but: Some(u32::try_from(but).unwrap_or(u32::MAX)) });
                Ok(())
            }
            ["async", "ca" | "cg", "shared" | "shared::cta", "global", rest @ ..]
                if rest.iter().all(|modifier| modifier.starts_with("L2::")) =>
            {
                let Operand::Int(bytes @ (4 | 8 | 16)) = *self.operand(instruction, 2)? else {
                    return Err(self.wrong(instruction, "a size other than 4, 8 and 16"));
                };
                if modifiers[1] == "cg" && bytes != 16 {
                    return Err(self.wrong(instruction, "a size other than 16"));
                }
                // A cache policy comes last.
                let operands = instruction.operands.len() - usize::from(rest.contains(&"L2::cache_hint"));
                let source_bytes = match operands {
                    3 => NONE,
                    4 => self.source32(instruction, self.operand(instruction, 3)?)?,
                    other => return Err(self.wrong(instruction, format!("{other} operands"))),
                };
                let (to, _) = self.address(instruction, self.operand(instruction, 0)?, Space::Shared)?;
                let (from, from_space) =
                    self.address(instruction, self.operand(instruction, 1)?, Space::Global)?;
                let copy = AsyncCopy { to, from, from_space, bytes: bytes as u32, source_bytes };
                self.emit(guard, Op::AsyncCopy(copy));
                Ok(())
            }
            [
                "async",
                "bulk",
                "shared::cluster" | "shared::cta",
                "global",
                "mbarrier::complete_tx::bytes",
            ] => {
                let [to, from, bytes, barrier] = instruction.operands.as_slice() else {
                    return Err(self.wrong(instruction, format!("{} operands", instruction.operands.len())));
                };
                let (to, _) = self.address(instruction, to, Space::Shared)?;
                let (from, from_space) = self.address(instruction, from, Space::Global)?;
                let bytes = self.source32(instruction, bytes)?;
                let (barrier, _) = self.address(instruction, barrier, Space::Shared)?;
                self.emit(guard, Op::BulkCopy(BulkCopy { to, from, from_space, bytes, barrier }));
                Ok(())
            }
            _ => Err(self.wrong(instruction, "")),
        }
    }

    /// `call (result), function, (a, b);` Arguments and results are variables in the caller's local memory and
    /// are copied to and from the callee's.
    fn call(&mut self, guard: Guard, instruction: &Instruction) -> Result<(), LoadError> {
        let mut lists: Vec<&[Operand]> = Vec::new();
        let mut name = None;
        let mut results: &[Operand] = &[];
        for operand in &instruction.operands {
            match operand {
                Operand::List(list) if name.is_none() => results = list,
                Operand::List(list) => lists.push(list),
                Operand::Name(function) if name.is_none() => name = Some(function),
                _ => return Err(self.wrong(instruction, "an indirect call")),
            }
        }
        let Some(name) = name else { return Err(self.wrong(instruction, "a call of nothing")) };
        let Some(signature) = self.signatures.get(name).cloned() else {
            return Err(LoadError::Undeclared { line: instruction.line, name: name.clone() });
        };
        let arguments = lists.first().copied().unwrap_or_default();
        if arguments.len() != signature.params.len() || results.len() != signature.returns.len() {
            return Err(self.wrong(instruction, format!("arguments that do not fit `{name}`")));
        }
        for (argument, (at, bytes)) in arguments.iter().zip(&signature.params) {
            let from = self.local_variable(instruction, argument)?;
            self.emit(guard, Op::CopyLocal { from, to: *at, bytes: *bytes });
        }
        self.open_calls.push((self.ops.len(), name.clone(), instruction.line));
        self.emit(guard, Op::Call { target: 0, locals: 0..0 });
        for (result, (at, bytes)) in results.iter().zip(&signature.returns) {
            let to = self.local_variable(instruction, result)?;
            self.emit(guard, Op::CopyLocal { from: *at, to, bytes: *bytes });
        }
        Ok(())
    }

    fn local_variable(&self, instruction: &Instruction, operand: &Operand) -> Result<u64, LoadError> {
        let Operand::Name(name) = operand else {
            return Err(self.wrong(instruction, "an argument of this form"));
        };
        match self.lookup(name)? {
            Symbol::Local(at) => Ok(at),
            _ => Err(self.wrong(instruction, format!("`{name}` is no parameter"))),
        }
    }
}

const ADD: Alu = Alu::B2(|a, b, d| (0..32).for_each(|lane| d[lane] = a[lane].wrapping_add(b[lane])));
const TRUNCATE: Alu = Alu::N1(|a, d| (0..32).for_each(|lane| d[lane] = a[lane] as u32));
const EXTEND: Alu = Alu::W1(|a, d| (0..32).for_each(|lane| d[lane] = u64::from(a[lane])));
const SIGN_EXTEND_HALF: Alu =
    Alu::W1(|a, d| (0..32).for_each(|lane| d[lane] = i64::from(a[lane] as i16) as u64));
const SIGN_EXTEND: Alu = Alu::W1(|a, d| (0..32).for_each(|lane| d[lane] = i64::from(a[lane] as i32) as u64));

/// Whether other blocks have the memory too.
fn is_global(space: Space) -> bool {
    matches!(space, Space::Global | Space::Generic | Space::Module)
}

fn wide(kind: &str) -> bool {
    matches!(kind, "b64" | "u64" | "s64" | "f64")
}

fn clock(name: &str) -> Option<Clock> {
    Some(match name {
        "%clock" | "%clock64" | "%globaltimer" | "%globaltimer_lo" => Clock::Low,
        "%clock_hi" | "%globaltimer_hi" => Clock::High,
        _ => return None,
    })
}

fn special(name: &str) -> Option<Initial32> {
    use Initial32::*;
    Some(match name {
        "%tid.x" => Tid(0),
        "%tid.y" => Tid(1),
        "%tid.z" => Tid(2),
        "%ntid.x" => Ntid(0),
        "%ntid.y" => Ntid(1),
        "%ntid.z" => Ntid(2),
        "%ctaid.x" => Ctaid(0),
        "%ctaid.y" => Ctaid(1),
        "%ctaid.z" => Ctaid(2),
        "%nctaid.x" => Nctaid(0),
        "%nctaid.y" => Nctaid(1),
        "%nctaid.z" => Nctaid(2),
        "%laneid" => LaneId,
        "%warpid" => WarpId,
        "%nwarpid" => NumWarps,
        "%lanemask_eq" => LaneMask(std::cmp::Ordering::Equal, true),
        "%lanemask_lt" => LaneMask(std::cmp::Ordering::Less, false),
        "%lanemask_le" => LaneMask(std::cmp::Ordering::Less, true),
        "%lanemask_gt" => LaneMask(std::cmp::Ordering::Greater, false),
        "%lanemask_ge" => LaneMask(std::cmp::Ordering::Greater, true),
        "%dynamic_smem_size" => DynamicSharedBytes,
        "%total_smem_size" => TotalSharedBytes,
        "%smid" | "%gridid" => Value(0),
        "%nsmid" => Value(1),
        "WARP_SZ" => Value(32),
        _ => return None,
    })
}

/// Names of kernels that two entries would share are refused by ptxas; here the first one counts.
pub(crate) fn entries(unit: &Unit) -> Vec<&Function> {
    let mut seen = HashSet::new();
    unit.functions.iter().filter(|f| f.is_entry && f.has_body && seen.insert(f.name.as_str())).collect()
}
