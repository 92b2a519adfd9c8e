//! Handles a hook event: a prompt starts, or it ends and becomes a turn in the session of its
//! conversation.
//!
//! Events are untrusted. Only a transcript of the agent itself is read.

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use super::event::{HookEvent, HookTrigger};
use super::{HookedAgent, hooks_dir};
use crate::git::object::CommitId;
use crate::git::snapshot::limits::SnapshotLimits;
use crate::host::env;
use crate::host::file::{Root, make_dirs, read_end, read_regular, write_atomic};
use crate::session::meta::Recorded;
use crate::session::name::SessionName;
use crate::text::digest;
use crate::text::secret::redact;
use crate::workflow::lifecycle;
use crate::workflow::model::agents;
use crate::workflow::project::Project;
use crate::workflow::record::transcript::{MAX_TRANSCRIPT, Transcript, transcript};
use crate::workflow::record::{
    self, NothingToRecord, RecordOptions, RecordStart, begin, exists, record_since,
};
use crate::workflow::user::User;

/// In the project of its directory.
pub fn take(project: &mut Project, event: &HookEvent, user: &mut dyn User) -> anyhow::Result<()> {
    let hooks = hooks_dir(&project.repository.teddy_dir());
    let Some(mut conversation) = open_conversation(project, &hooks, event, user)? else {
        return Ok(());
    };
    project.work_on(&SessionName::from_ref(&conversation.session)?);

    // The agent does not report the end of an interrupted prompt, so the next event ends it.
    if let Some(prompt) = conversation.prompt.take() {
        let finished = finish(project, event, Some(&prompt), user);
        // Even after a failure: the next event must not record the prompt again.
        write_conversation(&hooks, event, &conversation)?;
        finished?;
    } else if event.moment != HookTrigger::Prompt {
        finish(project, event, None, user)?;
    }

    if event.moment == HookTrigger::Prompt {
        // Some tens of milliseconds late, because the agent does not wait for the snapshot.
        let start = begin(project, user)?;
        conversation.prompt = Some(OpenPrompt {
            words: event.words.clone(),
            files: start.files,
            published: start.published,
            transcript_from: transcript_size(project, event),
        });
        write_conversation(&hooks, event, &conversation)?;
    }

    Ok(())
}

/// The first prompt of a conversation creates a session. `None` if a prompt ends whose start was
/// not seen.
fn open_conversation(
    project: &Project,
    hooks: &Path,
    event: &HookEvent,
    user: &mut dyn User,
) -> anyhow::Result<Option<Conversation>> {
    if let Some(conversation) = read_conversation(hooks, event)
        && let Ok(name) = SessionName::from_ref(&conversation.session)
        && exists(project, &name)?
    {
        return Ok(Some(conversation));
    }
    // Without the start, changes of this prompt cannot be told from earlier ones.
    if event.moment == HookTrigger::Stop {
        return Ok(None);
    }

    let name = project.free_name(SessionName::from_title(&event.session()))?;
    let agent = agents::agent(project, &project.settings.agent)?;
    let transaction = project.enter("hook", user)?;
    lifecycle::create_session(&transaction, project, &name, &agent)?;
    let conversation = Conversation {
        session: name.to_string(),
        prompt: None,
    };
    write_conversation(hooks, event, &conversation)?;
    Ok(Some(conversation))
}

fn finish(
    project: &mut Project,
    event: &HookEvent,
    prompt: Option<&OpenPrompt>,
    user: &mut dyn User,
) -> anyhow::Result<()> {
    let message = prompt.map_or(&event.words, |prompt| &prompt.words);
    let is_whole = event.moment == HookTrigger::Whole;
    let options = RecordOptions {
        message: message.clone(),
        work: Recorded {
            by: Some(event.agent.name().to_owned()),
            conversation: Some(event.conversation.clone()),
            exit_code: None,
        },
        transcript: written(project, event, prompt),
        allow_empty: prompt.is_some() || is_whole,
    };

    let recorded = match prompt {
        Some(prompt) => record_since(project, prompt.start(), &options, user),
        None if is_whole => record::record(project, &options, user),
        // The prompt was already recorded. What the agent did since then belongs to the same
        // prompt.
        None => record::record(
            project,
            &RecordOptions {
                message: String::new(),
                ..options
            },
            user,
        ),
    };
    match recorded {
        Err(error) if error.is::<NothingToRecord>() => Ok(()),
        result => result.map(|_| ()),
    }
}

/// The part of the transcript for this prompt, or else the agent's last message.
fn written(
    project: &Project,
    event: &HookEvent,
    prompt: Option<&OpenPrompt>,
) -> Option<Transcript> {
    let from = prompt.map_or(0, |prompt| prompt.transcript_from);
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
pub(super) struct Conversation {
    pub session: String,
    #[serde(default)]
    pub prompt: Option<OpenPrompt>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct OpenPrompt {
    pub words: String,
    /// When the prompt arrived.
    pub files: CommitId,
    /// At that time.
    #[serde(default)]
    pub published: Option<CommitId>,
    /// Length of the transcript at that time.
    #[serde(default)]
    pub transcript_from: u64,
}

impl OpenPrompt {
    pub(super) fn start(&self) -> RecordStart {
        RecordStart {
            files: self.files,
            published: self.published,
        }
    }
}

/// `None` for a new conversation.
pub(super) fn read_conversation(hooks: &Path, event: &HookEvent) -> Option<Conversation> {
    let bytes = read_regular(&conversation_file(hooks, event), MAX_CONVERSATION).ok()?;
    serde_json::from_slice(&bytes).ok()
}

pub(super) fn write_conversation(
    hooks: &Path,
    event: &HookEvent,
    conversation: &Conversation,
) -> anyhow::Result<()> {
    let path = conversation_file(hooks, event);
    let dir = path.parent().expect("the file has a folder");
    let text = serde_json::to_string(conversation)?;
    make_dirs(dir)
        .and_then(|()| write_atomic(&path, text.as_bytes()))
        .with_context(|| format!("writing `{}`", path.display()))
}

fn conversation_file(hooks: &Path, event: &HookEvent) -> PathBuf {
    let name = format!(
        "{}-{}.json",
        event.agent.name(),
        // The id is the agent's and could contain a path.
        digest(&event.conversation)
    );
    hooks.join("conversations").join(name)
}
