//! What libraries tell through `tracing`, on standard error.

use std::io::{self, IsTerminal};

use tracing_subscriber::filter::LevelFilter;

/// Warnings always; more with each `-v`.
pub fn start(verbose: u8, json: bool) {
    let level = match verbose {
        0 => LevelFilter::WARN,
        1 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    };
    let log = tracing_subscriber::fmt().with_max_level(level).with_writer(io::stderr).without_time();
    let colours = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    // Nobody else sets a subscriber; if one were there, it would do.
    let _ = match json {
        true => log.json().flatten_event(true).try_init(),
        false => log.compact().with_target(verbose > 0).with_ansi(colours).try_init(),
    };
}
