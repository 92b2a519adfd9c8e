//! Runs work in parallel. If the system cannot start a thread, the work runs on the current one.

use std::sync::{Mutex, OnceLock};
use std::thread::{Builder, ScopedJoinHandle, scope};

/// Returns the number of cores available to this process.
pub fn cores() -> usize {
    // Cached: the answer is computed from several files.
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// Runs `work` on all parts in parallel and returns the results in order. The last part runs on
/// this thread.
pub fn parallel_map<P: Send, R: Send>(
    parts: impl IntoIterator<Item = P>,
    work: impl Fn(P) -> R + Sync,
) -> Vec<R> {
    in_threads(Builder::new, parts, work)
}

/// Runs `other` in a thread and `here` on this one. If no thread can be started, runs `other`
/// first.
pub fn join_both<O: Send, H>(other: impl FnOnce() -> O + Send, here: impl FnOnce() -> H) -> (O, H) {
    in_thread(Builder::new(), other, here)
}

fn in_threads<P: Send, R: Send>(
    kind: impl Fn() -> Builder,
    parts: impl IntoIterator<Item = P>,
    work: impl Fn(P) -> R + Sync,
) -> Vec<R> {
    let mut parts: Vec<Mutex<Option<P>>> = parts.into_iter().map(Some).map(Mutex::new).collect();
    let Some(last) = parts.pop() else {
        return Vec::new();
    };

    let run = &|part: &Mutex<Option<P>>| work(take_slot(part));
    scope(|scope| {
        let start = |part| {
            let started = kind().spawn_scoped(scope, move || run(part));
            started.map_err(|_| part)
        };
        let started: Vec<_> = parts.iter().map(start).collect();
        let last_result = run(&last);
        let results = started.into_iter().map(|thread| match thread {
            Ok(thread) => join_thread(thread),
            Err(part) => run(part),
        });
        let mut results: Vec<R> = results.collect();
        results.push(last_result);
        results
    })
}

fn in_thread<O: Send, H>(
    kind: Builder,
    other: impl FnOnce() -> O + Send,
    here: impl FnOnce() -> H,
) -> (O, H) {
    let other = Mutex::new(Some(other));
    let run = || take_slot(&other)();
    scope(|scope| match kind.spawn_scoped(scope, run) {
        Ok(thread) => {
            let here = here();
            (join_thread(thread), here)
        }
        Err(_) => (run(), here()),
    })
}

fn take_slot<T>(slot: &Mutex<Option<T>>) -> T {
    let mut slot = slot.lock().expect("nothing panics with the lock");
    slot.take().expect("it is taken once")
}

fn join_thread<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    let result = thread.join();
    result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stack that no system can allocate.
    fn too_large() -> Builder {
        Builder::new().stack_size(usize::MAX >> 8)
    }

    #[track_caller]
    fn check(count: usize, kind: fn() -> Builder) {
        let parts: Vec<String> = (0..count).map(|n| n.to_string()).collect();
        let expected: Vec<String> = parts.iter().map(|part| format!("{part}!")).collect();
        assert_eq!(in_threads(kind, parts, |part| part + "!"), expected);
    }

    #[test]
    fn every_part_is_worked_on_once() {
        for count in 0..6 {
            check(count, Builder::new);
            check(count, too_large);
        }
    }

    #[test]
    fn two_things_are_done_with_a_thread_and_without() {
        let text = String::from("other");
        for kind in [Builder::new, too_large] {
            let (other, here) = in_thread(kind(), || text.clone(), || "here");
            assert_eq!((other.as_str(), here), ("other", "here"));
        }
        let is_refused = scope(|scope| too_large().spawn_scoped(scope, || ()).is_err());
        assert!(is_refused, "the other half of these tests needs it");
    }
}
