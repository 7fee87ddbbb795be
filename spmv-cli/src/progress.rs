//! A bar on what takes longer than a second, where a person watches.

use std::io::{self, IsTerminal};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Work shorter than this shows nothing.
const PATIENCE: Duration = Duration::from_secs(1);

const REDRAW: Duration = Duration::from_millis(100);

/// Shows that something is being done, until it is dropped.
pub struct Progress {
    bar: ProgressBar,
    waiting: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Progress {
    /// Starts; the text says what is being done.
    pub fn start(what: impl Into<String>) -> Progress {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden()).with_message(what.into());
        bar.set_style(style("{spinner} {msg} ({elapsed})"));
        let waiting = io::stderr().is_terminal().then(|| {
            let (done, wait) = mpsc::channel();
            let bar = bar.clone();
            let show = thread::spawn(move || {
                if wait.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                    bar.set_draw_target(ProgressDrawTarget::stderr());
                    bar.enable_steady_tick(REDRAW);
                }
            });
            (done, show)
        });
        Progress { bar, waiting }
    }

    /// How many bytes of how many are done.
    pub fn bytes(&self, done: u64, total: Option<u64>) {
        if let (Some(total), None) = (total, self.bar.length()) {
            self.bar.set_length(total);
            self.bar.set_style(style("{msg} [{bar:30}] {bytes} of {total_bytes}, {eta} left"));
        }
        self.bar.set_position(done);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((done, show)) = self.waiting.take() {
            drop(done);
            // The thread cannot panic, and if it did there would be no bar to remove.
            let _ = show.join();
        }
        self.bar.finish_and_clear();
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("the templates are fixed and right")
}
