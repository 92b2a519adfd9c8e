//! `teddy hook`: called by an agent's settings. Hidden from the help.

use std::ffi::OsString;
use std::io::{self, Read as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Component, Path, PathBuf};

use crate::cli::app::App;
use crate::git::repository::Repository;
use crate::host::file::{make_dirs, read_regular, write_atomic};
use crate::host::{env, process};
use crate::project::{Project, ProjectOptions};
use crate::workflow::hooks;
use crate::workflow::hooks::event::{self, HookEvent, HookTrigger};
use crate::workflow::hooks::hook_file::THEN;
use crate::workflow::hooks::take::take;
use crate::workflow::hooks::{HookedAgent, hooks_dir};

/// Largest event, in bytes.
const MAX_INPUT: u64 = 16 << 20;
/// Argument with which a hook starts the recording process.
const TAKE: &str = "take-events";
/// This many events of tools wait for the end of their prompt.
const MANY_TOOLS: usize = 100;
const MAX_PATH: u64 = 8 << 10;

/// Take an event from an agent (its settings call this)
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  teddy hook claude < event.json")]
pub(in crate::cli) struct Args {
    /// The agent, and what it tells; nothing here is ever refused
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "AGENT"
    )]
    words: Vec<OsString>,
}

/// Queues the event and starts the process that records it. Never fails and prints nothing.
pub(in crate::cli) fn run(args: Args, app: &mut App) -> anyhow::Result<()> {
    let words: Vec<_> = args
        .words
        .iter()
        .map(|word| word.to_string_lossy())
        .collect();
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    // An agent in one of our worktrees works for us; that is recorded as a turn already.
    if !env::is_set("TEDDY_RUN") {
        let result = match *words {
            [] => Ok(()),
            [TAKE] => take_events(app),
            [name] => stdin().and_then(|payload| queue_event(app, name, &payload)),
            [name, .., payload] => queue_event(app, name, payload),
        };
        if let Err(error) = result {
            // An exit code or a message would disturb the agent.
            note(app, &error);
        }
    }

    if let [_, THEN, program, arguments @ ..] = &*words {
        // The user's own `notify`, which ours replaced. It gets what the agent gave to us.
        let mut command = process::command(program);
        let _ = command.args(arguments).exec();
    }
    Ok(())
}

/// Reads the directory in which the open prompt of a conversation was given.
fn read_home(open_prompt: &Path) -> Option<PathBuf> {
    let bytes = read_regular(open_prompt, MAX_PATH).ok()?;
    let dir = PathBuf::from(OsString::from_vec(bytes));
    split_existing(&dir).map(|(dir, _)| dir)
}

/// Returns the real path of what exists of a path, and the rest.
fn split_existing(path: &Path) -> Option<(PathBuf, &Path)> {
    let mut above = path.ancestors();
    above.find_map(|dir| Some((dir.canonicalize().ok()?, path.strip_prefix(dir).ok()?)))
}

fn real_path(path: &Path) -> PathBuf {
    let Some((mut real, rest)) = split_existing(path) else {
        return path.to_owned();
    };
    for component in rest.components() {
        match component {
            Component::ParentDir => drop(real.pop()),
            component => real.push(component),
        }
    }
    real
}

fn queue_event(app: &App, name: &str, payload: &str) -> anyhow::Result<()> {
    let Some(agent) = HookedAgent::from_name(name) else {
        anyhow::bail!("there is no hook for `{name}`");
    };
    let Some(event) = event::parse_event(agent, payload)? else {
        return Ok(());
    };

    let here = event.folder.clone().map_or_else(|| app.dir(), Ok)?;
    // The agent can have removed its directory.
    let here = split_existing(&here).map_or(here.clone(), |(dir, _)| dir);
    let event = HookEvent {
        folder: Some(here.clone()),
        touched: event.touched.iter().map(|path| real_path(path)).collect(),
        ..event
    };
    let open_prompts = app.user_dirs()?.cache.join("hooks");
    let open_prompt = open_prompts.join(event.conversation_file());
    let home = read_home(&open_prompt).filter(|dir| hooks(app, dir).is_some());

    match event.moment {
        HookTrigger::Prompt => {
            let is_left = |home: &PathBuf| hooks(app, home) != hooks(app, &here);
            if let Some(home) = home.filter(is_left) {
                let interrupted = HookEvent {
                    moment: HookTrigger::Stop,
                    interrupted: true,
                    home: Some(home.clone()),
                    ..event.clone()
                };
                enqueue(app, &home, &interrupted)?;
            }
            if hooks(app, &here).is_some() {
                make_dirs(&open_prompts)?;
                write_atomic(&open_prompt, here.as_os_str().as_bytes())?;
            }
            enqueue(app, &here, &event)
        }
        HookTrigger::Stop | HookTrigger::Tool => {
            let is_end = event.moment == HookTrigger::Stop;
            let dir = home.clone().unwrap_or(here);
            enqueue(app, &dir, &HookEvent { home, ..event })?;
            if is_end {
                // It does not exist if the prompt was given outside of a repository.
                let _ = std::fs::remove_file(&open_prompt);
            }
            Ok(())
        }
        HookTrigger::Whole => enqueue(app, &here, &event),
    }
}

/// Queues an event in the repository of a directory, if it is in one.
fn enqueue(app: &App, dir: &Path, event: &HookEvent) -> anyhow::Result<()> {
    let Some(hooks) = hooks(app, dir) else {
        return Ok(());
    };
    let waiting = event::enqueue(&hooks, event)?;

    // What a tool changed is needed only at the end.
    if event.moment == HookTrigger::Tool && waiting < MANY_TOOLS {
        return Ok(());
    }
    let mut command = process::command(env::current_exe()?);
    command.args(["hook", TAKE]).current_dir(dir);
    process::spawn_detached(&mut command)?;
    Ok(())
}

fn stdin() -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    io::stdin().lock().take(MAX_INPUT).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn take_events(app: &App) -> anyhow::Result<()> {
    let Some(hooks) = hooks(app, &app.dir()?) else {
        return Ok(());
    };
    let open = |dir: &Path| {
        let project = Project::open(dir, app.user_dirs()?, ProjectOptions::default())?;
        let is_ours = project
            .repository
            .workdir()
            .starts_with(project.worktrees());
        Ok((!is_ours).then_some(project))
    };
    let mut take_one = |event: &HookEvent| {
        let dir = event.checkout().unwrap_or(Path::new(""));
        let Some(project) = open(dir)? else {
            return Ok(());
        };
        let mut user = app.user(&project, true);
        take(event, &mut { open }, user.as_mut())
    };

    event::drain_queue(&hooks, &mut take_one)
}

/// Records a failure for `teddy status`, if there is a repository.
fn note(app: &App, error: &anyhow::Error) {
    let hooks = app.dir().ok().and_then(|here| hooks(app, &here));
    if let Some(hooks) = hooks {
        hooks::note_error(&hooks, &format!("{error:#}"));
    }
}

/// Returns the event queue of a directory's repository; `None` outside a repository.
fn hooks(app: &App, here: &Path) -> Option<PathBuf> {
    let home = app.user_dirs().ok()?.home;
    let repository = Repository::discover(here, home.as_deref()).ok()?;
    Some(hooks_dir(&repository.teddy_dir()))
}
