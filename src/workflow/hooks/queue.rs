//! Queue of hook events: one file per event, in order of arrival.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::event::HookEvent;
use super::trouble;
use crate::host::file::{FileMode, Root, make_dirs};
use crate::host::lock::{Lock, LockError, patience};

/// If this many events are waiting, nothing has handled the queue for a long time.
const MAX_QUEUED: usize = 1000;
const MAX_EVENT: u64 = 4 << 20;

/// Appends an event.
pub fn enqueue(hooks: &Path, event: &HookEvent) -> anyhow::Result<()> {
    let root = open_queue(hooks)?;
    let text = serde_json::to_string(event)?;
    let waiting = queued_events(&root)?;
    anyhow::ensure!(
        waiting.len() < MAX_QUEUED,
        "{MAX_QUEUED} prompts wait to be recorded"
    );
    let last = waiting.last().map_or(0, |(number, _)| *number);

    // Hooks can run concurrently. `create_new` makes each number unique.
    for number in last + 1.. {
        let name = PathBuf::from(format!("{number:08}.json"));
        match root.create_new(&name, text.as_bytes(), FileMode::Plain) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            written => return Ok(written?),
        }
    }

    Ok(())
}

/// Handles all waiting events, one process at a time. A failing event is noted and skipped.
pub fn drain_queue(
    hooks: &Path,
    take: &mut dyn FnMut(&HookEvent) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let root = open_queue(hooks)?;
    let _lock = Lock::take(hooks, "hook", patience())?;
    while let Some((_, name)) = queued_events(&root)?.into_iter().next() {
        let read = root.read(&name, MAX_EVENT).map_err(anyhow::Error::from);
        let event = read.and_then(|bytes| Ok(serde_json::from_slice::<HookEvent>(&bytes)?));
        match event.and_then(|event| take(&event)) {
            // Another command holds the lock. Keep the event for the next run.
            Err(error) if is_lock_busy(&error) => {
                trouble::note_error(hooks, &format!("{error:#}"));
                return Ok(());
            }
            Err(error) => trouble::note_error(hooks, &format!("{error:#}")),
            Ok(()) => trouble::clear_errors(hooks),
        }

        std::fs::remove_file(hooks.join(QUEUE_DIR).join(&name))?;
    }

    Ok(())
}

const QUEUE_DIR: &str = "queue";

fn open_queue(hooks: &Path) -> anyhow::Result<Root> {
    make_dirs(&hooks.join(QUEUE_DIR))?;
    Ok(Root::open(&hooks.join(QUEUE_DIR))?)
}

fn queued_events(root: &Root) -> anyhow::Result<Vec<(u64, PathBuf)>> {
    let names = root.names()?.into_iter();
    let mut waiting: Vec<(u64, PathBuf)> = names
        .filter_map(|name| {
            let number = name.to_str()?.strip_suffix(".json")?.parse().ok()?;
            Some((number, name.into()))
        })
        .collect();
    waiting.sort();
    Ok(waiting)
}

fn is_lock_busy(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(LockError::Busy { .. }))
}

#[cfg(test)]
mod tests {
    use super::super::HookedAgent;
    use super::super::event::HookTrigger;
    use super::*;

    fn event(prompt: &str) -> HookEvent {
        HookEvent {
            agent: HookedAgent::Claude,
            moment: HookTrigger::Prompt,
            conversation: "c".to_owned(),
            folder: None,
            words: prompt.to_owned(),
            said: String::new(),
            transcript: None,
        }
    }

    #[test]
    fn events_are_taken_in_order_and_a_bad_one_does_not_stop_the_others() {
        let dir = tempfile::tempdir().unwrap();
        for prompt in ["1", "2", "3"] {
            enqueue(dir.path(), &event(prompt)).unwrap();
        }
        std::fs::write(dir.path().join("queue/00000002.json"), "{").unwrap();
        let mut handled = Vec::new();
        drain_queue(dir.path(), &mut |event| {
            handled.push(event.words.clone());
            anyhow::ensure!(event.words != "3", "three is wrong");
            Ok(())
        })
        .unwrap();
        assert_eq!(handled, ["1", "3"]);
        let noted = trouble::read_errors(dir.path());
        assert_eq!(noted.len(), 2, "{noted:?}");
        assert!(noted[1].ends_with("three is wrong"), "{noted:?}");
        assert_eq!(queued_events(&open_queue(dir.path()).unwrap()).unwrap(), []);
    }

    #[test]
    fn an_event_waits_while_another_process_is_at_work() {
        let dir = tempfile::tempdir().unwrap();
        enqueue(dir.path(), &event("1")).unwrap();
        let busy = || LockError::Busy {
            holder: "process 1".to_owned(),
        };
        drain_queue(dir.path(), &mut |_| Err(busy().into())).unwrap();
        let mut handled = 0;
        drain_queue(dir.path(), &mut |_| {
            handled += 1;
            Ok(())
        })
        .unwrap();
        assert_eq!((handled, trouble::read_errors(dir.path()).len()), (1, 0));
    }

    #[test]
    fn every_event_of_many_hooks_is_there() {
        let dir = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..20 {
                        enqueue(dir.path(), &event("x")).unwrap();
                    }
                });
            }
        });
        assert_eq!(
            queued_events(&open_queue(dir.path()).unwrap())
                .unwrap()
                .len(),
            80
        );
    }
}
