//! Wraps a few hand-written instructions into a kernel and runs it, in every schedule and on several host threads.

use ptx_sim::{Arg, Error, Fault, Launch, Module, Report, Schedule, Simulator};

/// Registers and parameters that every kernel here has:
/// `%in` and `%out` (addresses), `%tid`, `%lane`, `%gid` (thread over all blocks, x only), `%slot` (16 bytes of
/// `%out` for each thread), and `%p0…`, `%h0…` (16 bits), `%r0…`, `%f0…`, `%rd0…`, `%d0…`.
#[derive(Clone)]
#[allow(dead_code, reason = "each test uses a part of it")]
pub struct Kernel {
    pub module: String,
    pub params: String,
    pub body: String,
    pub args: Vec<Arg>,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub shared_bytes: u32,
    pub input: Vec<u8>,
    pub instruction_limit: u64,
}

/// What a kernel left in memory.
#[derive(Debug, PartialEq)]
pub struct Outcome {
    /// Four words a thread.
    pub out: Vec<[u32; 4]>,
    pub input: Vec<u8>,
    pub report: Report,
}

#[allow(dead_code, reason = "each test uses a part of it")]
impl Outcome {
    /// The first word of every thread.
    pub fn words(&self) -> Vec<u32> {
        self.out.iter().map(|slot| slot[0]).collect()
    }

    /// The first two words of every thread as one.
    pub fn longs(&self) -> Vec<u64> {
        self.out.iter().map(|slot| u64::from(slot[1]) << 32 | u64::from(slot[0])).collect()
    }

    pub fn input_words(&self) -> Vec<u32> {
        self.input.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
    }
}

pub const SCHEDULES: [Schedule; 4] =
    [Schedule::Natural, Schedule::Adversarial(1), Schedule::Adversarial(2), Schedule::Adversarial(77)];

#[allow(dead_code, reason = "each test uses a part of it")]
impl Kernel {
    pub fn new(body: impl Into<String>) -> Kernel {
        Kernel {
            module: String::new(),
            params: String::new(),
            body: body.into(),
            args: Vec::new(),
            grid: [1; 3],
            block: [32, 1, 1],
            shared_bytes: 0,
            input: Vec::new(),
            instruction_limit: 1 << 32,
        }
    }

    /// Text in front of the kernel: variables and functions.
    pub fn module(mut self, text: impl Into<String>) -> Kernel {
        self.module = text.into();
        self
    }

    /// One more parameter.
    pub fn param(mut self, declaration: &str, arg: Arg) -> Kernel {
        self.params.push_str(&format!(", {declaration}"));
        self.args.push(arg);
        self
    }

    pub fn grid(mut self, x: u32) -> Kernel {
        self.grid = [x, 1, 1];
        self
    }

    pub fn block(mut self, x: u32) -> Kernel {
        self.block = [x, 1, 1];
        self
    }

    pub fn shared_bytes(mut self, bytes: u32) -> Kernel {
        self.shared_bytes = bytes;
        self
    }

    pub fn input(mut self, bytes: impl Into<Vec<u8>>) -> Kernel {
        self.input = bytes.into();
        self
    }

    pub fn words(self, words: &[u32]) -> Kernel {
        self.input(words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>())
    }

    /// The PTX; the body begins at line [`FIRST_LINE`] where the module's text has one line.
    pub fn ptx(&self) -> String {
        let Kernel { module, params, body, .. } = self;
        format!(
            ".version 8.0 .target sm_90 .address_size 64 {module}
.visible .entry kernel(.param .u64 in, .param .u64 out{params}) {{
 .reg .pred %p<16>; .reg .b16 %h<16>; .reg .b32 %r<64>; .reg .f32 %f<16>; .reg .b64 %rd<32>; .reg .f64 %d<16>;
 .reg .b64 %in, %out, %slot; .reg .b32 %tid, %lane, %gid; .reg .b32 %bid, %bdim;
 ld.param.u64 %in, [in]; ld.param.u64 %out, [out];
 mov.u32 %tid, %tid.x; mov.u32 %lane, %laneid; mov.u32 %bid, %ctaid.x; mov.u32 %bdim, %ntid.x;
 mad.lo.s32 %gid, %bid, %bdim, %tid; mad.wide.u32 %slot, %gid, 16, %out;
{body}
}}
"
        )
    }

    fn threads(&self) -> u32 {
        self.grid.iter().product::<u32>() * self.block.iter().product::<u32>()
    }

    pub fn run_with(&self, schedule: Schedule, host_threads: usize) -> Result<Outcome, Error> {
        let module = match Module::load(&self.ptx()) {
            Ok(module) => module,
            Err(error) => panic!("{error}\n{}", self.ptx()),
        };
        let mut simulator = Simulator::new().threads(host_threads).instruction_limit(self.instruction_limit);
        let input = simulator.allocate(self.input.len() as u64)?;
        simulator.write(input, &self.input)?;
        let out_bytes = u64::from(self.threads()) * 16;
        let out = simulator.allocate(out_bytes)?;
        let mut args = vec![Arg::U64(input), Arg::U64(out)];
        args.extend(self.args.iter().cloned());
        let launch =
            Launch { grid: self.grid, block: self.block, shared_bytes: self.shared_bytes, args, schedule };
        let report = simulator.launch(&module, "kernel", &launch)?;
        let mut bytes = vec![0; out_bytes as usize];
        simulator.read(out, &mut bytes)?;
        let word = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().unwrap());
        let out = bytes
            .chunks_exact(16)
            .map(|slot| [word(&slot[..4]), word(&slot[4..8]), word(&slot[8..12]), word(&slot[12..])])
            .collect();
        let mut left = vec![0; self.input.len()];
        simulator.read(input, &mut left)?;
        Ok(Outcome { out, input: left, report })
    }

    /// Runs in the natural schedule.
    #[track_caller]
    pub fn run_natural(&self) -> Outcome {
        match self.run_with(Schedule::Natural, 1) {
            Ok(outcome) => outcome,
            Err(error) => panic!("{error}\n{}", self.ptx()),
        }
    }

    /// Runs in every schedule and on 1, 2 and 8 host threads; memory must be the same after each.
    #[track_caller]
    pub fn run(&self) -> Outcome {
        let outcome = self.run_natural();
        for host_threads in [2, 8] {
            let other = self.run_with(Schedule::Natural, host_threads);
            assert_eq!(other.as_ref().ok(), Some(&outcome), "{host_threads} host threads: {other:?}");
        }
        for schedule in &SCHEDULES[1..] {
            match self.run_with(*schedule, 2) {
                Ok(other) => {
                    assert_eq!(other.out, outcome.out, "{schedule:?}");
                    assert_eq!(other.input, outcome.input, "{schedule:?}");
                }
                Err(error) => panic!("{schedule:?}: {error}\n{}", self.ptx()),
            }
        }
        outcome
    }

    /// The fault of a run in a schedule; the same on 1, 2 and 8 host threads.
    #[track_caller]
    pub fn fault(&self, schedule: Schedule) -> Fault {
        let fault = |host_threads| match self.run_with(schedule, host_threads) {
            Err(Error::Fault(fault)) => *fault,
            other => {
                panic!("{schedule:?}, {host_threads} host threads: no fault but {other:?}\n{}", self.ptx())
            }
        };
        let first = fault(1);
        assert_eq!(fault(2), first, "2 host threads");
        assert_eq!(fault(8), first, "8 host threads");
        first
    }
}
