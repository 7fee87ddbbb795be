//! Runs a kernel of a PTX file and prints what it counted and the words it left:
//! `cargo run --example run_ptx -- FILE KERNEL BLOCKS THREADS [ARGUMENT…]`, where an argument is `7` (32 bits),
//! `7l` (64 bits), `1.5` (single precision), `1.5d` (double precision) or `@100` (an address of 100 words, 0, 1, 2 …).

use ptx_sim::{Arg, Launch, Module, Simulator};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [file, kernel, blocks, threads, rest @ ..] = args.as_slice() else {
        println!("usage: run_ptx FILE KERNEL BLOCKS THREADS [7 | 7l | 1.5 | 1.5d | @WORDS]…");
        return Ok(());
    };
    let module = Module::load(&std::fs::read_to_string(file)?)?;
    let mut simulator = Simulator::new();
    let mut buffers = Vec::new();
    let mut launch = Launch::new(blocks.parse()?, threads.parse()?);
    for text in rest {
        launch = launch.arg(if let Some(words) = text.strip_prefix('@') {
            let words: u32 = words.parse()?;
            let address = simulator.allocate(u64::from(words) * 4)?;
            simulator.write(address, &(0..words).flat_map(u32::to_le_bytes).collect::<Vec<u8>>())?;
            buffers.push((text, address, words as usize * 4));
            Arg::U64(address)
        } else if let Some(number) = text.strip_suffix('l') {
            Arg::U64(number.parse()?)
        } else if let Some(number) = text.strip_suffix('d') {
            Arg::F64(number.parse()?)
        } else if text.contains('.') {
            Arg::F32(text.parse()?)
        } else {
            Arg::U32(text.parse()?)
        });
    }
    let report = simulator.launch(&module, kernel, &launch)?;
    println!("{:#?}", report.counters);
    for (text, address, bytes) in buffers {
        let mut left = vec![0; bytes];
        simulator.read(address, &mut left)?;
        let words = left
            .chunks_exact(4)
            .take(16)
            .map(|word| u32::from_le_bytes(word.try_into().expect("four bytes")));
        println!("{text}: {:?}", words.collect::<Vec<_>>());
    }
    Ok(())
}
