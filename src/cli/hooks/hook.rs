//! `teddy hook`: called by an agent's settings. Hidden from the help.

use std::ffi::OsString;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::cli::app::App;
use crate::cli::exit;
use crate::git::repository::Repository;
use crate::host::{env, process};
use crate::workflow::hooks;
use crate::workflow::hooks::event::{self, HookEvent};
use crate::workflow::hooks::take::take;
use crate::workflow::hooks::{HookedAgent, hooks_dir};
use crate::workflow::project::{Project, ProjectOptions};

/// Largest event, in bytes.
const MAX_INPUT: u64 = 16 << 20;
/// Argument with which a hook starts the recording process.
const TAKE: &str = "take-events";

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

/// Queues the event and starts the process that records it. Never fails and prints nothing, so that
/// the agent is not disturbed.
pub(in crate::cli) fn run(args: Args, app: &mut App) -> anyhow::Result<ExitCode> {
    // An agent in one of our worktrees works for us; that is recorded as a turn already.
    if !env::is_set("TEDDY_RUN") {
        let mut values = args.words.iter().map(|word| word.to_string_lossy());
        let result = match values.next().as_deref() {
            Some(TAKE) => take_events(app),
            Some(name) => queue_event(app, name, values.next().as_deref()),
            None => Ok(()),
        };
        if let Err(error) = result {
            note(app, &error);
        }
    }

    Ok(exit::SUCCESS.into())
}

/// Queues an event.
fn queue_event(app: &App, name: &str, payload: Option<&str>) -> anyhow::Result<()> {
    let Some(agent) = HookedAgent::from_name(name) else {
        anyhow::bail!("there is no hook for `{name}`");
    };
    let text = match payload {
        Some(payload) => payload.to_owned(),
        None => stdin()?,
    };
    let Some(event) = event::parse_event(agent, &text)? else {
        return Ok(());
    };

    let here = event.folder.clone().map_or_else(|| app.dir(), Ok)?;
    let Some(hooks) = hooks(app, &here) else {
        return Ok(());
    };
    let event = HookEvent {
        folder: Some(here.clone()),
        ..event
    };
    event::enqueue(&hooks, &event)?;

    let mut command = process::command(env::current_exe()?);
    command.args(["hook", TAKE]).current_dir(here);
    Ok(process::spawn_detached(&mut command)?)
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
    let mut take_one = |event: &HookEvent| {
        let dir = event.folder.clone().unwrap_or_default();
        let mut project = Project::open(&dir, app.user_dirs()?, ProjectOptions::default())?;
        if project
            .repository
            .workdir()
            .starts_with(project.worktrees())
        {
            return Ok(());
        }
        let mut user = app.user(&project, true);
        take(&mut project, event, user.as_mut())
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
