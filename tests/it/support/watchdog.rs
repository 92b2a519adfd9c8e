//! Ends the run if a test hangs in the test's own process, and names the test.
//!
//! A test that loops is ended after [`LIMIT`] of CPU time of its own thread, to which the load of the
//! machine adds nothing. A test that waits uses none, so it is ended after ten times as long by the
//! clock. Processes have a limit of their own: [`super::Output::wait`].

use std::collections::HashMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, Once};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

/// Sets the limit in milliseconds, for tests of the watchdog.
pub const VARIABLE: &str = "TEDDY_TEST_LIMIT";

/// CPU time that a test can use.
#[expect(clippy::disallowed_methods, reason = "tests pin the environment")]
static LIMIT: LazyLock<Duration> = LazyLock::new(|| match std::env::var(VARIABLE) {
    Ok(limit) => Duration::from_millis(limit.parse().unwrap()),
    Err(_) => Duration::from_secs(120),
});
static TESTS: LazyLock<Mutex<HashMap<ThreadId, Test>>> = LazyLock::new(Mutex::default);

thread_local! {
    /// Dropped at the end of the thread.
    static END: Unwatch = const { Unwatch };
}

/// A test that is watched.
struct Test {
    /// The name of the thread, too.
    name: String,
    /// Has the CPU time of the thread in nanoseconds, and two more numbers.
    statistics: PathBuf,
    begun: Instant,
    cpu_before: Duration,
}

impl Test {
    fn new(name: &str) -> Test {
        let thread = std::fs::read_link("/proc/thread-self").unwrap_or_default();
        let statistics = Path::new("/proc").join(thread).join("schedstat");
        Test {
            name: name.to_owned(),
            cpu_before: cpu(&statistics),
            statistics,
            begun: Instant::now(),
        }
    }

    /// Returns the limit that the test exceeds.
    fn exceeded(&self) -> Option<String> {
        let used = cpu(&self.statistics).saturating_sub(self.cpu_before);
        if used > *LIMIT {
            return Some(format!("{:?} of CPU time", *LIMIT));
        }
        let clock = *LIMIT * 10;
        (self.begun.elapsed() > clock).then(|| format!("{clock:?}"))
    }
}

/// Returns the CPU time of a thread. Zero on systems that don't count it.
fn cpu(statistics: &Path) -> Duration {
    let text = std::fs::read_to_string(statistics).unwrap_or_default();
    let time = text.split(' ').next().and_then(|time| time.parse().ok());
    Duration::from_nanos(time.unwrap_or(0))
}

struct Unwatch;

impl Drop for Unwatch {
    fn drop(&mut self) {
        TESTS.lock().unwrap().remove(&thread::current().id());
    }
}

/// Watches the test of this thread, from its first repository to the end of the thread.
pub fn watch() {
    static WATCHDOG: Once = Once::new();
    let thread = thread::current();
    // Long runs take as long as their variables say. Threads that a test starts have no name.
    let Some(name) = thread.name().filter(|_| !crate::WORLDS) else {
        return;
    };
    WATCHDOG.call_once(|| drop(thread::spawn(end_hanging_tests)));
    let mut tests = TESTS.lock().unwrap();
    tests.entry(thread.id()).or_insert_with(|| {
        END.with(|_| ());
        Test::new(name)
    });
}

fn end_hanging_tests() {
    loop {
        thread::sleep(*LIMIT / 10);
        for test in TESTS.lock().unwrap().values() {
            if let Some(limit) = test.exceeded() {
                // `eprintln!` would write into the output of a test, which libtest keeps.
                let _ = writeln!(
                    std::io::stderr(),
                    "test {} hangs: more than {limit}",
                    test.name
                );
                std::process::abort();
            }
        }
    }
}
