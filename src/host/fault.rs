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
    fail::fail_point!(name, |action| act(name, action.as_deref()));
    Ok(())
}

/// Returns a limitation of the machine to emulate, such as a missing kernel feature.
pub fn emulated(name: &'static str) -> Option<String> {
    #[cfg(all(feature = "failpoints", debug_assertions))]
    fail::fail_point!(name, |value| Some(value.unwrap_or_default()));
    let _ = name;
    None
}

/// Whether tests have switched flushes off, with git's own variable for that. Only a power cut can
/// show the difference, and a flush waits for the writes of all processes of the machine.
pub fn skips_flushes() -> bool {
    cfg!(all(feature = "failpoints", debug_assertions))
        && super::env::var("GIT_TEST_FSYNC").as_deref() == Some("0")
}

/// Arms the points in `FAILPOINTS` until the result is dropped.
#[cfg(all(feature = "failpoints", debug_assertions))]
pub fn arm() -> fail::FailScenario<'static> {
    fail::FailScenario::setup()
}

/// Actions: `kill`, `interrupt`, `sh:<script>`, `errno:<number>`. Any other is `EIO`.
#[cfg(all(feature = "failpoints", debug_assertions))]
fn act(name: &str, action: Option<&str>) -> anyhow::Result<()> {
    use rustix::process::{Signal, getpid, kill_process};

    match action {
        Some("kill") => {
            kill_process(getpid(), Signal::KILL)?;
            anyhow::bail!("the process outlived its own end at `{name}`")
        }
        Some("interrupt") => {
            kill_process(getpid(), Signal::INT)?;
            let sent = std::time::Instant::now();
            while !super::interrupt::requested() {
                let is_taken = sent.elapsed().as_secs() < 10;
                anyhow::ensure!(is_taken, "the parent process of the tests ignores SIGINT");
                std::thread::yield_now();
            }
            Ok(())
        }
        Some(action) if action.starts_with("sh:") => {
            let status = super::process::command("sh").arg(&action[3..]).status()?;
            anyhow::ensure!(status.success(), "the script of `{name}` failed");
            Ok(())
        }
        action => {
            let number = action.and_then(|action| action.strip_prefix("errno:"));
            let errno = number.and_then(|number| number.parse().ok()).unwrap_or(5);
            let error = anyhow::Error::from(std::io::Error::from_raw_os_error(errno));
            Err(error.context(format!("fault at `{name}`")))
        }
    }
}
