//! Reads data for the browser in two threads, so the screen never blocks.
//!
//! One thread reads the timeline and polls every half second for sessions that moved. The other
//! reads turns, searches and compares. Each opens the repository for itself.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use super::turn_view::{self, TurnView};
use crate::git::diff;
use crate::git::object::CommitId;
use crate::project::Project;
use crate::query::find::{LinePattern, Query, TurnPart, find};
use crate::query::view::timeline::{Timeline, TimelineMark, mark, newest, timeline};
use crate::query::view::turn_page::ChangedFile;
use crate::session::name::SessionName;
use crate::text::secret::redact;
use crate::ui::comparison::table;
use crate::ui::style::{StyledLine, Tone, block};
use crate::workflow::compare::sides;

/// Polling interval for turns made by other processes.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// Turns of each session in the first, partial timeline.
const FIRST: usize = 60;
/// Total size of the files compared between two turns.
const MAX_BYTES: usize = 8 << 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BrowseRequest {
    Turn(SessionName, CommitId),
    /// Find the turns that contain a text.
    Find(String),
    /// Compare two turns, by name.
    Compare([String; 2]),
}

/// A result of the reader threads.
#[derive(Debug)]
pub enum BrowseNews {
    /// The sessions, and whether they are complete.
    Timeline(Timeline, bool),
    /// A turn, or why it can't be read.
    Turn(CommitId, Result<Box<TurnView>, String>),
    /// The searched text and the turns that contain it, newest first, each with a matching line.
    Matches(String, Result<Vec<(CommitId, String)>, String>),
    /// The names and differences of two turns.
    Compared([String; 2], Result<Vec<StyledLine>, String>),
    /// Why the sessions can't be read. `None` once they can again.
    Trouble(Option<String>),
}

/// Opens the project. Each thread calls it for its own handle.
pub type Opener = Arc<dyn Fn() -> anyhow::Result<Project> + Send + Sync>;

/// Handle to the reader threads. They end when it is dropped.
pub struct BrowseSource {
    news: Receiver<BrowseNews>,
    requests: Sender<BrowseRequest>,
    /// Wakes the polling thread early.
    wake: Sender<()>,
}

impl BrowseSource {
    /// Starts the threads. `only` restricts them to one session.
    pub fn start(open: &Opener, only: Option<SessionName>) -> std::io::Result<BrowseSource> {
        let (sender, news) = channel();
        let (requests, queued) = channel();
        let (wake, wakeups) = channel();
        let (watching, reading) = (Arc::clone(open), Arc::clone(open));
        let timeline_sender = sender.clone();
        let start = |name: &str| std::thread::Builder::new().name(name.to_owned());

        start("timeline")
            .spawn(move || watch(&watching, only.as_ref(), &timeline_sender, &wakeups))?;
        start("turns").spawn(move || read(&reading, &sender, &queued))?;
        Ok(BrowseSource {
            news,
            requests,
            wake,
        })
    }

    /// Requests a read. A newer request for a turn replaces those still queued.
    pub fn ask(&self, request: BrowseRequest) {
        // The send fails only if the thread has ended.
        let _ = self.requests.send(request);
    }

    /// Polls the sessions immediately.
    pub fn poll_now(&self) {
        let _ = self.wake.send(());
    }

    /// Returns the next result without waiting.
    pub fn news(&self) -> Option<BrowseNews> {
        self.news.try_recv().ok()
    }

    /// Waits up to `patience` for a result.
    pub fn wait(&self, patience: Duration) -> Option<BrowseNews> {
        self.news.recv_timeout(patience).ok()
    }
}

/// Reports the timeline whenever it changes, until the receiver is dropped.
fn watch(
    open: &Opener,
    only: Option<&SessionName>,
    sender: &Sender<BrowseNews>,
    wakeups: &Receiver<()>,
) {
    let pause = || wakeups.recv_timeout(POLL_INTERVAL) != Err(RecvTimeoutError::Disconnected);
    let project = loop {
        let error = match open() {
            Ok(project) => break project,
            Err(error) => error,
        };
        let why = Some(format!("{error:#}"));
        if sender.send(BrowseNews::Trouble(why)).is_err() || !pause() {
            return;
        }
    };

    // Send the newest turns first: reading all of them takes much longer.
    let first = newest(&project, only, FIRST).ok();
    let mut is_told =
        first.is_none_or(|timeline| sender.send(BrowseNews::Timeline(timeline, false)).is_ok());
    let (mut last_mark, mut trouble) = (None, None);
    while is_told {
        is_told = match state(&project, only, &last_mark) {
            Ok(None) if trouble.take().is_none() => true,
            Ok(None) => sender.send(BrowseNews::Trouble(None)).is_ok(),
            Ok(Some((now, timeline))) => {
                (last_mark, trouble) = (Some(now), None);
                sender.send(BrowseNews::Timeline(timeline, true)).is_ok()
            }
            Err(error) => {
                let why = Some(format!("{error:#}"));
                // Report the same error only once, not on every poll.
                let is_new = trouble != why;
                trouble = why.clone();
                !is_new || sender.send(BrowseNews::Trouble(why)).is_ok()
            }
        };
        is_told = is_told && pause();
    }
}

/// Returns `None` if the sessions have not changed since `last_mark`.
fn state(
    project: &Project,
    only: Option<&SessionName>,
    last_mark: &Option<TimelineMark>,
) -> anyhow::Result<Option<(TimelineMark, Timeline)>> {
    let now = mark(project, only)?;
    if last_mark.as_ref() == Some(&now) {
        return Ok(None);
    }
    Ok(Some((now, timeline(project, only)?)))
}

fn read(open: &Opener, sender: &Sender<BrowseNews>, queued: &Receiver<BrowseRequest>) {
    let mut opened = None;
    while let Ok(first) = queued.recv() {
        // A user who moves quickly needs only the last of the requested turns. Searches and
        // comparisons are all answered.
        let requests: Vec<BrowseRequest> = [first].into_iter().chain(queued.try_iter()).collect();
        let is_turn = |request: &BrowseRequest| matches!(request, BrowseRequest::Turn(..));
        let last = requests.iter().rposition(is_turn);
        let requests = requests.into_iter().enumerate();
        for (_, request) in requests.filter(|(at, request)| !is_turn(request) || Some(*at) == last)
        {
            if sender
                .send(answer(opened_once(&mut opened, open), request))
                .is_err()
            {
                return;
            }
        }
    }
}

/// Opens the project on first use. A failure is not cached, so the next request tries again.
fn opened_once<'a>(opened: &'a mut Option<Project>, open: &Opener) -> anyhow::Result<&'a Project> {
    let project = match opened.take() {
        Some(project) => project,
        None => open()?,
    };
    Ok(opened.insert(project))
}

fn answer(project: anyhow::Result<&Project>, request: BrowseRequest) -> BrowseNews {
    let to_message = |error: anyhow::Error| format!("{error:#}");
    match request {
        BrowseRequest::Turn(session, commit) => {
            let turn_view =
                project.and_then(|project| turn_view::read_turn_view(project, &session, commit));
            BrowseNews::Turn(commit, turn_view.map(Box::new).map_err(to_message))
        }
        BrowseRequest::Find(text) => {
            let matches = project.and_then(|project| find_turns(project, &text));
            BrowseNews::Matches(text, matches.map_err(to_message))
        }
        BrowseRequest::Compare(names) => {
            let lines = project.and_then(|project| compared(project, &names));
            let lines = lines.map_err(to_message);
            BrowseNews::Compared(names, lines)
        }
    }
}

/// Searches all sessions with smart case. An invalid pattern is searched literally.
pub fn find_turns(project: &Project, text: &str) -> anyhow::Result<Vec<(CommitId, String)>> {
    let ignore_case = !text.chars().any(char::is_uppercase);
    let pattern = LinePattern::new(text, ignore_case, false)
        .or_else(|_| LinePattern::new(text, ignore_case, true))?;
    let query = Query {
        pattern,
        parts: TurnPart::DEFAULT.to_vec(),
        path: None,
        session: None,
    };

    let mut turns: Vec<(CommitId, String)> = Vec::new();
    for one in find(project, &query)?.matches {
        // Matches are grouped by turn. Keep the first one of each.
        if turns.last().is_none_or(|(commit, _)| *commit != one.commit) {
            let line = one.line.map_or(String::new(), |line| format!(":{line}"));
            let text = one.text.unwrap_or_else(|| "binary".to_owned());
            let location = format!("{}{line}: {}", one.file, redact(text.trim()));
            turns.push((one.commit, location));
        }
    }

    Ok(turns)
}

/// Compares two turns: a table of facts, then the diff between their resulting files.
pub fn compared(project: &Project, names: &[String; 2]) -> anyhow::Result<Vec<StyledLine>> {
    let sides = sides(project, names)?;
    let mut lines = block(Tone::Plain, &table(&sides));
    let trees = (sides[0].tree, sides[1].tree);
    let mut remaining = MAX_BYTES;
    for change in diff::changes(&project.repository, trees.0, trees.1)? {
        let file = ChangedFile::of(change);
        lines.push(StyledLine::default());
        lines.push(StyledLine::of(Tone::Strong, &file.path));
        let rendered = turn_view::difference(&project.repository, &file, &mut remaining);
        lines.extend(rendered.rows.into_iter().map(|(line, _)| line));
        if remaining == 0 {
            lines.push(StyledLine::of(Tone::Faint, "… the rest is too much"));
            break;
        }
    }

    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_opened_is_the_answer_to_every_question() {
        let open: Opener = Arc::new(|| anyhow::bail!("the repository is away"));
        let source = BrowseSource::start(&open, None).unwrap();
        let commit: CommitId = "8bd0eb0e4e1b4e3c9b6a8f9d3d2f1a0c7e6b5d4c".parse().unwrap();
        let session = SessionName::parse("demo").unwrap();
        let turn = BrowseRequest::Turn(session, commit);
        let patience = Duration::from_secs(20);

        for request in [turn.clone(), BrowseRequest::Find("x".to_owned()), turn] {
            source.ask(request);
            let answered = std::iter::from_fn(|| source.wait(patience))
                .find(|news| !matches!(news, BrowseNews::Trouble(_)));
            let why = match answered {
                Some(BrowseNews::Turn(_, Err(why)) | BrowseNews::Matches(_, Err(why))) => why,
                other => panic!("{other:?}"),
            };
            assert_eq!(why, "the repository is away");
        }
        source.poll_now();
        let is_reported = std::iter::from_fn(|| source.wait(patience))
            .any(|news| matches!(news, BrowseNews::Trouble(Some(_))));
        assert!(is_reported);
    }
}
