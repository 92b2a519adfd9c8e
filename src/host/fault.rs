//! Fault points, at which tests kill or interrupt the program, make it fail, or run a script.
//!
//! They exist only with the feature `failpoints` and debug assertions, so not in a release.
//! `FAILPOINTS='after-ref=return(kill)'` arms a point, and `2*off->return(kill)` skips the first
//! two passes.

/// Every point, in the order in which a turn passes them.
pub const POINTS: [&str; 43] = [
    "after-answer",
    "before-draft-ref",
    "after-lock",
    "recover-start",
    "recover-healed",
    "recover-landed",
    "recover-before-publish",
    "recover-published",
    "recover-swept",
    "before-record",
    "before-snapshot-ref",
    "after-snapshot-ref",
    "before-worktree",
    "before-part",
    "after-part",
    "after-whole",
    "after-layer",
    "after-mount",
    "after-worktree",
    "before-action",
    "before-write",
    "after-write",
    "before-memos",
    "after-run",
    "after-run-snapshot",
    "before-branch",
    "after-branch",
    "after-index",
    "before-objects-sync",
    "before-intent",
    "after-intent",
    "before-ref",
    "after-ref-before-sync",
    "after-ref",
    "publish-prepared",
    "publish-before-delete",
    "publish-after-delete",
    "publish-before-exchange",
    "publish-after-exchange",
    "after-publish",
    "before-draft",
    "before-clear",
    "after-clear",
];

/// Passes a fault point. Fails if a test arms it with an error.
pub fn point(name: &str) -> anyhow::Result<()> {
    debug_assert!(POINTS.contains(&name), "`{name}` is in the list");
    #[cfg(all(feature = "failpoints", debug_assertions))]
    if let Some(action) = armed::value(name) {
        return act(name, &action);
    }
    Ok(())
}

/// Returns a limitation of the machine to emulate, such as a missing kernel feature.
pub fn emulated(name: &'static str) -> Option<String> {
    #[cfg(all(feature = "failpoints", debug_assertions))]
    let value = armed::value(name);
    #[cfg(not(all(feature = "failpoints", debug_assertions)))]
    let value = {
        let _ = name;
        None
    };
    value
}

/// Whether tests have switched flushes off, with git's own variable for that. Only a power cut can
/// show the difference, and a flush waits for the writes of all processes of the machine.
pub fn skips_flushes() -> bool {
    cfg!(all(feature = "failpoints", debug_assertions))
        && super::env::var("GIT_TEST_FSYNC").as_deref() == Some("0")
}

/// Actions: `kill`, `interrupt`, `sh:<script>`, `errno:<number>`. Any other is `EIO`.
#[cfg(all(feature = "failpoints", debug_assertions))]
fn act(name: &str, action: &str) -> anyhow::Result<()> {
    use rustix::process::{Signal, getpid, kill_process};

    match action {
        "kill" => {
            kill_process(getpid(), Signal::KILL)?;
            anyhow::bail!("the process outlived its own end at `{name}`")
        }
        "interrupt" => {
            kill_process(getpid(), Signal::INT)?;
            let sent = std::time::Instant::now();
            while !super::interrupt::requested() {
                let is_taken = sent.elapsed().as_secs() < 10;
                anyhow::ensure!(is_taken, "the parent process of the tests ignores SIGINT");
                std::thread::yield_now();
            }
            Ok(())
        }
        action if action.starts_with("sh:") => {
            let status = super::process::command("sh").arg(&action[3..]).status()?;
            anyhow::ensure!(status.success(), "the script of `{name}` failed");
            Ok(())
        }
        action => {
            let number = action.strip_prefix("errno:");
            let errno = number.and_then(|number| number.parse().ok()).unwrap_or(5);
            let error = anyhow::Error::from(std::io::Error::from_raw_os_error(errno));
            Err(error.context(format!("fault at `{name}`")))
        }
    }
}

#[cfg(all(feature = "failpoints", debug_assertions))]
mod armed {
    use std::collections::BTreeMap;
    use std::sync::{LazyLock, Mutex, PoisonError};
    use std::time::Duration;

    /// What a point does for a number of passes.
    #[derive(Debug, PartialEq, Eq)]
    pub(super) struct ArmedStep {
        /// The passes left. `None`: all.
        passes: Option<u32>,
        action: FaultAction,
    }

    #[derive(Clone, Debug, PartialEq, Eq)]
    enum FaultAction {
        Off,
        Panic,
        Sleep(Duration),
        Return(String),
    }

    static ARMED: LazyLock<Mutex<BTreeMap<String, Vec<ArmedStep>>>> = LazyLock::new(|| {
        let armed = crate::host::env::var("FAILPOINTS").unwrap_or_default();
        let points = armed.split(';').filter(|point| !point.is_empty());
        Mutex::new(points.map(parse_point).collect())
    });

    /// Returns the value with which an armed point returns.
    pub(super) fn value(name: &str) -> Option<String> {
        let mut points = ARMED.lock().unwrap_or_else(PoisonError::into_inner);
        let action = next(points.get_mut(name)?);
        drop(points);
        match action {
            FaultAction::Off => None,
            FaultAction::Panic => panic!("fault at `{name}`"),
            FaultAction::Sleep(time) => {
                std::thread::sleep(time);
                None
            }
            FaultAction::Return(value) => Some(value),
        }
    }

    fn next(steps: &mut [ArmedStep]) -> FaultAction {
        let step = steps.iter_mut().find(|step| step.passes != Some(0));
        let Some(step) = step else {
            return FaultAction::Off;
        };
        step.passes = step.passes.map(|passes| passes - 1);
        step.action.clone()
    }

    /// Parses `name=step->step`. A step is `off`, `panic`, `sleep(milliseconds)`, `return` or
    /// `return(value)`; `3*` before it is the number of its passes.
    fn parse_point(point: &str) -> (String, Vec<ArmedStep>) {
        let (name, steps) = point.split_once('=').unwrap_or((point, ""));
        let steps = steps.split("->").map(|step| {
            parse_step(step).unwrap_or_else(|| panic!("FAILPOINTS: `{step}` in `{point}`"))
        });
        (name.to_owned(), steps.collect())
    }

    fn parse_step(step: &str) -> Option<ArmedStep> {
        let counted = step.split_once('*').and_then(|(passes, action)| {
            let passes = passes.parse().ok()?;
            Some((Some(passes), action))
        });
        let (passes, action) = counted.unwrap_or((None, step));
        let action = match action {
            "off" => FaultAction::Off,
            "panic" => FaultAction::Panic,
            "return" => FaultAction::Return(String::new()),
            action => {
                let (name, value) = action.strip_suffix(')')?.split_once('(')?;
                match name {
                    "sleep" => FaultAction::Sleep(Duration::from_millis(value.parse().ok()?)),
                    "return" => FaultAction::Return(value.to_owned()),
                    _ => return None,
                }
            }
        };
        Some(ArmedStep { passes, action })
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn each_step_applies_for_its_number_of_passes() {
            let (name, mut steps) =
                parse_point("after-ref=2*off->1*return(sh:a > b*(c))->sleep(9)");

            let passes: Vec<FaultAction> = (0..5).map(|_| next(&mut steps)).collect();

            assert_eq!(name, "after-ref");
            assert_eq!(
                passes,
                [
                    FaultAction::Off,
                    FaultAction::Off,
                    FaultAction::Return("sh:a > b*(c)".to_owned()),
                    FaultAction::Sleep(Duration::from_millis(9)),
                    FaultAction::Sleep(Duration::from_millis(9)),
                ]
            );
        }

        #[test]
        fn a_point_is_off_after_its_last_pass() {
            let (_, mut steps) = parse_point("no-kill=1*return");

            let passes: Vec<FaultAction> = (0..3).map(|_| next(&mut steps)).collect();

            assert_eq!(
                passes,
                [
                    FaultAction::Return(String::new()),
                    FaultAction::Off,
                    FaultAction::Off
                ]
            );
        }
    }
}
