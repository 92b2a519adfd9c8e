//! Handles a hook event: a prompt starts, a tool changes files, or a prompt ends and becomes a turn
//! in the session of its conversation.
//!
//! A turn belongs to the checkout in which its prompt was given. If the agent also changed another
//! checkout of the repository, that is a second turn of the same session.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context as _, bail};
use serde::{Deserialize, Serialize};

use super::event::{HookEvent, HookTrigger, is_lock_busy};
use super::{HookedAgent, hooks_dir, note_error};
use crate::git::snapshot::limits::SnapshotLimits;
use crate::git::worktree::linked_checkouts;
use crate::host::file::{Root, make_dirs, read_end, read_regular, write_atomic};
use crate::host::{clock, env};
use crate::project::Project;
use crate::session::meta::Recorded;
use crate::session::name::SessionName;
use crate::text::path::lossy;
use crate::text::secret::redact;
use crate::workflow::lifecycle;
use crate::workflow::record::transcript::{MAX_TRANSCRIPT, Transcript, last_time, transcript};
use crate::workflow::record::{
    Attribution, NothingToRecord, RecordOptions, RecordResult, RecordStart, begin,
    begin_without_session, record, record_since, uncertain_note,
};
use crate::workflow::user::User;

/// Opens the project of a directory. `None` for a worktree of ours.
pub type OpenCheckout<'a> = dyn FnMut(&Path) -> anyhow::Result<Option<Project>> + 'a;

/// At most this many other checkouts are recorded when a prompt starts.
const MAX_CHECKOUTS: usize = 16;

/// Handles an event in the project of its prompt.
pub fn take(
    event: &HookEvent,
    open: &mut OpenCheckout<'_>,
    user: &mut dyn User,
) -> anyhow::Result<()> {
    let Some(mut project) = open(event.checkout().unwrap_or(Path::new("")))? else {
        return Ok(());
    };
    let hooks = hooks_dir(&project.repository.teddy_dir());
    let Some(mut conversation) = open_conversation(&project, &hooks, event, user)? else {
        return Ok(());
    };
    project.work_on(&SessionName::from_ref(&conversation.session)?);

    match event.moment {
        HookTrigger::Tool => {
            let touched = event.touched.iter().cloned();
            conversation
                .touched
                .extend(touched.map(|path| (path, event.at)));
            write_conversation(&hooks, event, &conversation)
        }
        HookTrigger::Whole if conversation.is_hooked => Ok(()),
        HookTrigger::Whole => take_whole(&mut project, &hooks, event, user),
        HookTrigger::Prompt | HookTrigger::Stop => {
            // The agent does not report the end of an interrupted prompt, so the next one ends it.
            let prompt = conversation.prompt.take();
            let finished = match &prompt {
                Some(prompt) => finish(event, &conversation, prompt, open, user),
                None => record_rest(&mut project, event, &conversation, user),
            };
            if let Err(error) = finished {
                // The event is taken again.
                if !is_lock_busy(&error) {
                    conversation.touched.clear();
                    write_conversation(&hooks, event, &conversation)?;
                }
                return Err(error);
            }
            conversation.touched.clear();
            write_conversation(&hooks, event, &conversation)?;

            if event.moment == HookTrigger::Prompt {
                conversation.is_hooked = true;
                conversation.prompt = Some(start_prompt(&project, event, open, user)?);
                write_conversation(&hooks, event, &conversation)?;
            }
            Ok(())
        }
    }
}

/// The first prompt of a conversation creates a session. `None` if a prompt ends whose start was
/// not seen.
fn open_conversation(
    project: &Project,
    hooks: &Path,
    event: &HookEvent,
    user: &mut dyn User,
) -> anyhow::Result<Option<Conversation>> {
    let conversation = read_conversation(hooks, event);
    if let Some(mut conversation) = conversation.clone()
        && let Ok(name) = SessionName::from_ref(&conversation.session)
    {
        if project.store().has(&name)? {
            return Ok(Some(conversation));
        }
        if let Some(name) = lifecycle::renamed_to(project, &name, None)? {
            conversation.session = name.to_string();
            return Ok(Some(conversation));
        }
    }
    if matches!(event.moment, HookTrigger::Stop | HookTrigger::Tool) {
        let open = conversation.filter(|conversation| conversation.prompt.is_some());
        if let Some(Conversation { session, .. }) = open {
            let name = event.agent.name();
            bail!("session `{session}` is gone, so no turn has what {name} did in it");
        }
        return Ok(None);
    }

    let (name, _) = lifecycle::create_titled(project, &event.session(), "hook", user)?;
    let conversation = Conversation {
        session: name.to_string(),
        ..Conversation::default()
    };
    write_conversation(hooks, event, &conversation)?;
    Ok(Some(conversation))
}

/// Records the user's files in every checkout in which the agent might work.
fn start_prompt(
    project: &Project,
    event: &HookEvent,
    open: &mut OpenCheckout<'_>,
    user: &mut dyn User,
) -> anyhow::Result<OpenPrompt> {
    let start = begin(project, user)?;
    let own = project.repository.workdir();
    let ours = project.worktrees();
    let mut others = linked_checkouts(&project.repository)?;
    others.retain(|dir| dir != own && !dir.starts_with(&ours));
    let is_cut = others.len() > MAX_CHECKOUTS;

    let mut elsewhere = BTreeMap::new();
    for dir in others.into_iter().take(MAX_CHECKOUTS) {
        // A checkout that cannot be recorded must not prevent the turn.
        let started = open(&dir).and_then(|other| {
            let Some(mut other) = other else {
                return Ok(None);
            };
            other.work_on(&project.session()?);
            begin(&other, user).map(Some)
        });
        match started {
            Ok(start) => elsewhere.extend(start.map(|start| (dir, start))),
            Err(error) => note_error(
                &hooks_dir(&project.repository.teddy_dir()),
                &format!("`{}`: {error:#}", dir.display()),
            ),
        }
    }

    Ok(OpenPrompt {
        words: event.words.clone(),
        start,
        folder: own.to_owned(),
        elsewhere,
        is_cut,
        started: event.at,
        transcript_from: transcript_size(project, event),
        notes: Vec::new(),
    })
}

/// Records what the agent did since a prompt, one turn for each checkout.
fn finish(
    event: &HookEvent,
    conversation: &Conversation,
    prompt: &OpenPrompt,
    open: &mut OpenCheckout<'_>,
    user: &mut dyn User,
) -> anyhow::Result<()> {
    let session = SessionName::from_ref(&conversation.session)?;
    let home = open(&prompt.folder).with_context(|| {
        let dir = prompt.folder.display();
        format!("the prompt was given in `{dir}`, which cannot be opened")
    })?;
    let Some(mut home) = home else {
        return Ok(());
    };
    home.work_on(&session);
    let options = describe_turn(&home, event, conversation, prompt)?;
    let turn = recorded(record_since(&home, prompt.start, &options, user))?;
    note_for_others(&home, event, conversation, prompt, turn.as_ref())?;
    let mut is_recorded = turn.is_some();

    let folder = event.folder.as_deref().unwrap_or(&prompt.folder);
    for dir in visited(&home, folder, conversation, prompt)? {
        let Some(mut other) = open(&dir)? else {
            continue;
        };
        other.work_on(&session);
        let start = prompt.start_in(&dir, &other)?;
        let mut options = describe_turn(&other, event, conversation, prompt)?;
        let (there, home) = (dir.display(), prompt.folder.display());
        let note = format!("done in `{there}`; the prompt was given in `{home}`");
        options.work.notes.insert(0, note);
        let turn = recorded(record_since(&other, start, &options, user))?;
        note_for_others(&other, event, conversation, prompt, turn.as_ref())?;
        is_recorded |= turn.is_some();
    }

    if !is_recorded {
        let options = RecordOptions {
            allow_empty: true,
            ..options
        };
        recorded(record_since(&home, prompt.start, &options, user))?;
    }
    Ok(())
}

/// Other checkouts of the repository in which the agent ended or changed files.
fn visited(
    home: &Project,
    folder: &Path,
    conversation: &Conversation,
    prompt: &OpenPrompt,
) -> anyhow::Result<Vec<PathBuf>> {
    let ours = home.worktrees();
    let mut others = linked_checkouts(&home.repository)?;
    others.retain(|dir| *dir != prompt.folder && !dir.starts_with(&ours));
    // A checkout can be inside another one.
    others.sort_by_key(|dir| std::cmp::Reverse(dir.components().count()));
    let own = || [&prompt.folder].into_iter();
    let innermost = |path: &Path| {
        let inside = others.iter().chain(own());
        let inside = inside.filter(|dir| path.starts_with(dir));
        inside.max_by_key(|dir| dir.components().count()).cloned()
    };

    let touched = conversation.touched.keys().map(PathBuf::as_path);
    let dirs = touched.chain([folder]).filter_map(innermost);
    let dirs: BTreeSet<PathBuf> = dirs.filter(|dir| *dir != prompt.folder).collect();
    Ok(dirs.into_iter().collect())
}

/// What to record for a prompt in one of its checkouts.
fn describe_turn(
    project: &Project,
    event: &HookEvent,
    conversation: &Conversation,
    prompt: &OpenPrompt,
) -> anyhow::Result<RecordOptions> {
    let hooks = hooks_dir(&project.repository.teddy_dir());
    let own = touched_in(project, conversation, 0);
    let mut others = BTreeSet::new();
    let mut notes = prompt.notes.clone();
    let mut is_alone = true;
    for (_, other) in &other_conversations(&hooks, event) {
        is_alone &= !other.is_active(event.at);
        for path in touched_in(project, other, prompt.started) {
            if own.contains(&path) {
                add_note(&mut notes, shared_note(&path, &other.session));
            } else {
                others.insert(path);
            }
        }
    }

    let is_interrupted = event.moment == HookTrigger::Prompt || event.interrupted;
    let ended = is_interrupted
        .then(|| end_of_work(project, event, conversation, prompt))
        .flatten();
    if is_interrupted {
        notes.push(
            match ended.and_then(|nanoseconds| clock::of_seconds(nanoseconds / SECOND)) {
                Some(time) => format!("interrupted at {time}: later changes are not in this turn"),
                None => "interrupted at an unknown time: changes that you made before your next \
                     prompt can be in this turn"
                    .to_owned(),
            },
        );
    }

    let dir = event.folder.as_deref().unwrap_or(&prompt.folder);
    if !linked_checkouts(&project.repository)?
        .iter()
        .any(|checkout| dir.starts_with(checkout))
    {
        notes.push(format!(
            "the agent ended in `{}`, outside this repository; what it changed there is not in \
             this turn",
            dir.display()
        ));
    }

    Ok(RecordOptions {
        message: prompt.words.clone(),
        work: Recorded {
            notes,
            ..work_of(event)
        },
        transcript: written(project, event, prompt.transcript_from),
        allow_empty: false,
        attribution: Attribution {
            named: (!is_alone).then_some(own),
            others,
            only: None,
            ended,
        },
    })
}

/// Most notes that a turn has about other agents.
const MAX_NOTES: usize = 100;

fn add_note(notes: &mut Vec<String>, note: String) {
    if notes.len() < MAX_NOTES && !notes.contains(&note) {
        notes.push(note);
    }
}

fn shared_note(path: &[u8], session: &str) -> String {
    format!("`{}` was changed by `{session}` as well", lossy(path))
}

/// Adds to the open prompts of other agents which files this one changed, too, or could have changed:
/// such a file is in the turn that ends first.
fn note_for_others(
    project: &Project,
    event: &HookEvent,
    conversation: &Conversation,
    prompt: &OpenPrompt,
    turn: Option<&RecordResult>,
) -> anyhow::Result<()> {
    let hooks = hooks_dir(&project.repository.teddy_dir());
    let session = &conversation.session;
    let own = touched_in(project, conversation, 0);
    let uncertain = turn.map_or(&[][..], |turn| &turn.uncertain);
    let uncertain = uncertain_note(uncertain, &format!("the turn of `{session}` has"));
    for (file, mut other) in other_conversations(&hooks, event) {
        let shared = touched_in(project, &other, prompt.started);
        let shared = own.intersection(&shared);
        let notes = shared.map(|path| shared_note(path, session));
        let notes: Vec<String> = notes.chain(uncertain.clone()).collect();
        if let Some(open) = other.prompt.as_mut().filter(|_| !notes.is_empty()) {
            notes
                .into_iter()
                .for_each(|note| add_note(&mut open.notes, note));
            write_json(&file, &serde_json::to_string(&other)?)?;
        }
    }
    Ok(())
}

const SECOND: i64 = 1_000_000_000;

fn work_of(event: &HookEvent) -> Recorded {
    Recorded {
        by: Some(event.agent.name().to_owned()),
        conversation: Some(event.conversation.clone()),
        ..Recorded::default()
    }
}

/// Files in a checkout that a conversation touched since a time, relative to the checkout.
fn touched_in(project: &Project, conversation: &Conversation, since: i64) -> BTreeSet<Vec<u8>> {
    let root = project.repository.workdir();
    let real = root.canonicalize().unwrap_or(root.to_owned());
    let touched = conversation.touched.iter();
    let recent = touched.filter(|(_, time)| **time >= since);
    recent
        .filter_map(|(path, _)| path.strip_prefix(root).or(path.strip_prefix(&real)).ok())
        .map(|path| path.as_os_str().as_bytes().to_vec())
        .collect()
}

/// When an interrupted agent did its last work, in nanoseconds since 1970.
fn end_of_work(
    project: &Project,
    event: &HookEvent,
    conversation: &Conversation,
    prompt: &OpenPrompt,
) -> Option<i64> {
    let last_tool = conversation.touched.values().copied().max();
    let transcript = event.transcript.as_deref().and_then(|path| {
        let (root, rel_path) = beneath(project, event.agent, path)?;
        let end = read_end(&root, &rel_path, prompt.transcript_from, MAX_TRANSCRIPT).ok()?;
        last_time(
            &String::from_utf8_lossy(&end.bytes),
            &prompt.words,
            &event.words,
        )
    });
    last_tool.max(transcript)
}

/// Records what the agent changed after the end of its prompt, as far as its tools say so.
fn record_rest(
    project: &mut Project,
    event: &HookEvent,
    conversation: &Conversation,
    user: &mut dyn User,
) -> anyhow::Result<()> {
    let touched = touched_in(project, conversation, 0);
    if event.moment == HookTrigger::Prompt || touched.is_empty() {
        return Ok(());
    }

    let options = RecordOptions {
        work: work_of(event),
        transcript: written(project, event, 0),
        attribution: Attribution {
            only: Some(touched),
            ..Attribution::default()
        },
        ..RecordOptions::default()
    };
    recorded(record(project, &options, user)).map(drop)
}

/// Records a prompt whose start the agent does not report: the changes since the last one.
fn take_whole(
    project: &mut Project,
    hooks: &Path,
    event: &HookEvent,
    user: &mut dyn User,
) -> anyhow::Result<()> {
    let known = read_notify_start(hooks, project);
    let start = match known {
        Some(start) => start,
        None => begin(project, user)?,
    };
    let note = match known {
        Some(_) => {
            "Codex reports only the end of a prompt: changes that you made since the one \
                    before can be in this turn"
        }
        None => {
            "the first prompt that Codex reported here: TeDDy did not know your files before \
                 it, so its changes are not in this turn"
        }
    };
    let options = RecordOptions {
        message: event.words.clone(),
        work: Recorded {
            notes: vec![note.to_owned()],
            ..work_of(event)
        },
        transcript: written(project, event, 0),
        allow_empty: true,
        ..RecordOptions::default()
    };
    recorded(record_since(project, start, &options, user))?;
    write_notify_start(hooks, project, begin(project, user)?)
}

/// Records the files of a checkout, to separate the first prompt of a Codex without hooks from earlier
/// changes.
pub fn begin_notify(project: &Project, user: &mut dyn User) -> anyhow::Result<()> {
    let hooks = hooks_dir(&project.repository.teddy_dir());
    let start = begin_without_session(project, user)?;
    write_notify_start(&hooks, project, start)
}

fn read_notify_start(hooks: &Path, project: &Project) -> Option<RecordStart> {
    let bytes = read_regular(&notify_file(hooks, project), MAX_CONVERSATION).ok()?;
    serde_json::from_slice(&bytes).ok()
}

fn write_notify_start(hooks: &Path, project: &Project, start: RecordStart) -> anyhow::Result<()> {
    write_json(
        &notify_file(hooks, project),
        &serde_json::to_string(&start)?,
    )
}

fn notify_file(hooks: &Path, project: &Project) -> PathBuf {
    let name = format!("{}.json", project.repository.worktree_name());
    hooks.join("notify").join(name)
}

/// Returns the new turn, if there is one.
fn recorded(result: anyhow::Result<RecordResult>) -> anyhow::Result<Option<RecordResult>> {
    match result {
        Err(error) if error.is::<NothingToRecord>() => Ok(None),
        result => result.map(Some),
    }
}

/// The part of the transcript for this prompt, or else the agent's last message.
fn written(project: &Project, event: &HookEvent, from: u64) -> Option<Transcript> {
    let excerpt = event.transcript.as_deref().and_then(|path| {
        let (root, rel_path) = beneath(project, event.agent, path)?;
        let end = read_end(&root, &rel_path, from, MAX_TRANSCRIPT).ok()?;
        let parsed = transcript(&rel_path.to_string_lossy(), end);
        (!parsed.text.trim().is_empty()).then_some(parsed)
    });
    let reply = (!event.said.trim().is_empty()).then(|| Transcript {
        name: "transcript.md",
        text: format!("{}\n", redact(event.said.trim_end())),
    });
    excerpt.or(reply)
}

/// In bytes.
fn transcript_size(project: &Project, event: &HookEvent) -> u64 {
    let size = event.transcript.as_deref().and_then(|path| {
        let (root, rel_path) = beneath(project, event.agent, path)?;
        // Only JSON lines are appended to. Other formats are rewritten as a whole, so the old
        // length means nothing.
        let is_added_to = rel_path.extension().is_some_and(|ending| ending == "jsonl");
        is_added_to.then_some(root.entry(&rel_path).ok()??.size)
    });
    size.unwrap_or_default()
}

/// The directory of the agent's transcripts, and the rest. `None` for every other file.
fn beneath(project: &Project, agent: HookedAgent, path: &Path) -> Option<(Root, PathBuf)> {
    // The path comes from the event and is untrusted. The agent's own directory also has its login
    // and settings, so only its transcripts can be read.
    let own = agent.dir_variable().and_then(env::dir_var);
    let home = project.user_dirs.home.as_ref();
    let dirs = [own, home.map(|home| home.join(agent.config_dir()))];
    let dirs = dirs.into_iter().flatten();
    let dirs: Vec<PathBuf> = dirs.map(|dir| dir.join(agent.transcripts())).collect();
    let (dir, below) = dirs.iter().find_map(|dir| {
        // Agents name the directory by its real path if the home directory is a symlink.
        let literal = path.strip_prefix(dir).ok();
        let real = || path.strip_prefix(dir.canonicalize().ok()?).ok();
        Some((
            dir,
            literal
                .map(Path::to_owned)
                .or_else(|| real().map(Path::to_owned))?,
        ))
    })?;

    let is_plain = |part: Component<'_>| matches!(part, Component::Normal(_));
    let is_secret = SnapshotLimits::default().is_secret(below.as_os_str().as_bytes());
    let is_allowed = below.components().all(is_plain) && agent.is_transcript(&below) && !is_secret;
    // `Root` follows no symlink below the directory.
    is_allowed.then_some((Root::open(dir).ok()?, below))
}

const MAX_CONVERSATION: u64 = 4 << 20;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Conversation {
    session: String,
    /// The agent reports starts of prompts.
    #[serde(default)]
    is_hooked: bool,
    #[serde(default)]
    prompt: Option<OpenPrompt>,
    /// Files that the agent's tools changed since the prompt started or ended, each with the time
    /// of the last change.
    #[serde(default)]
    touched: BTreeMap<PathBuf, i64>,
}

/// In nanoseconds. An agent that reports nothing for longer has probably been interrupted and closed.
const MAX_SILENCE: i64 = 3600 * SECOND;

impl Conversation {
    /// The agent might work on a prompt at this time.
    fn is_active(&self, now: i64) -> bool {
        let start = self.prompt.as_ref().map(|prompt| prompt.started);
        let last = self.touched.values().copied().chain(start).max();
        last.is_some_and(|last| last.saturating_add(MAX_SILENCE) >= now)
    }
}

/// A prompt on which the agent works.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct OpenPrompt {
    words: String,
    /// The files when the prompt arrived.
    start: RecordStart,
    /// The checkout in which it was given.
    folder: PathBuf,
    /// The files in other checkouts at that time.
    elsewhere: BTreeMap<PathBuf, RecordStart>,
    /// There were more checkouts.
    is_cut: bool,
    /// When it started, in nanoseconds since 1970.
    started: i64,
    /// Length of the transcript at that time.
    transcript_from: u64,
    /// What the turn has to say about agents that ended before.
    #[serde(default)]
    notes: Vec<String>,
}

impl OpenPrompt {
    /// The files of another checkout when the prompt arrived.
    fn start_in(&self, dir: &Path, checkout: &Project) -> anyhow::Result<RecordStart> {
        match self.elsewhere.get(dir) {
            Some(start) => Ok(*start),
            // The agent created it.
            None if !self.is_cut => RecordStart::at_head(checkout),
            None => anyhow::bail!("the files in `{}` were not recorded before", dir.display()),
        }
    }
}

/// Other conversations in which a prompt is open, with their files.
fn other_conversations(hooks: &Path, event: &HookEvent) -> Vec<(PathBuf, Conversation)> {
    let own = conversation_file(hooks, event);
    let dir = hooks.join(CONVERSATIONS);
    let Ok(root) = Root::open(&dir) else {
        return Vec::new();
    };
    let names = root
        .names()
        .unwrap_or_default()
        .into_iter()
        .map(PathBuf::from);
    let names = names.filter(|name| own.file_name() != Some(name.as_os_str()));
    let read = |name: PathBuf| {
        let bytes = root.read(&name, MAX_CONVERSATION).ok()?;
        let conversation = serde_json::from_slice::<Conversation>(&bytes).ok()?;
        Some((dir.join(name), conversation))
    };
    let others = names.filter_map(read);
    others.filter(|(_, other)| other.prompt.is_some()).collect()
}

/// `None` for a new conversation.
fn read_conversation(hooks: &Path, event: &HookEvent) -> Option<Conversation> {
    let bytes = read_regular(&conversation_file(hooks, event), MAX_CONVERSATION).ok()?;
    serde_json::from_slice(&bytes).ok()
}

fn write_conversation(
    hooks: &Path,
    event: &HookEvent,
    conversation: &Conversation,
) -> anyhow::Result<()> {
    let text = serde_json::to_string(conversation)?;
    write_json(&conversation_file(hooks, event), &text)
}

fn write_json(path: &Path, text: &str) -> anyhow::Result<()> {
    let dir = path
        .parent()
        .expect("the file is in a directory of the hooks");
    make_dirs(dir)
        .and_then(|()| write_atomic(path, text.as_bytes()))
        .with_context(|| format!("writing `{}`", path.display()))
}

const CONVERSATIONS: &str = "conversations";

fn conversation_file(hooks: &Path, event: &HookEvent) -> PathBuf {
    hooks.join(CONVERSATIONS).join(event.conversation_file())
}
