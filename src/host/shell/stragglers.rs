//! Processes that left their script's group (`setsid`, a daemon): found by a variable that every
//! descendant inherits. Linux only; elsewhere the group is all that is ended.

use rustix::process::{Pid, Signal};

/// The variable's name.
pub(super) const VARIABLE: &str = "TEDDY_RUN";
/// How often it is looked again for what was born meanwhile.
const ROUNDS: usize = 8;

/// The mark of one script's processes.
pub(super) struct Marker {
    /// The variable's value; no other script has it.
    value: String,
}

impl Marker {
    /// Returns a new mark.
    pub(super) fn new() -> Marker {
        Marker { value: uuid::Uuid::now_v7().to_string() }
    }

    /// Returns the variable's value.
    pub(super) fn value(&self) -> &str {
        &self.value
    }

    /// Kills every process that has the mark.
    pub(super) fn kill_all(&self) {
        for _ in 0..ROUNDS {
            let found = self.processes();
            if found.is_empty() {
                return;
            }
            for pid in found {
                let _ = rustix::process::kill_process(pid, Signal::KILL);
            }
        }
    }

    /// Returns the living processes that have the mark.
    fn processes(&self) -> Vec<Pid> {
        let entry = format!("{VARIABLE}={}", self.value);
        let marked = |pid: &Pid| {
            let environ = std::fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero())).unwrap_or_default();
            environ.split(|&byte| byte == 0).any(|variable| variable == entry.as_bytes())
        };
        let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
        let numbers = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        numbers.filter_map(Pid::from_raw).filter(marked).collect()
    }
}
