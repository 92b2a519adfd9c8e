//! `teddy browse`: browses sessions and turns in a full-screen view.

mod actions;

use std::io;
use std::process::ExitCode;
use std::sync::Arc;

use super::app::App;
use super::complete;
use super::exit;
use super::sessions::no_sessions;
use crate::host::screen;
use crate::session::name::SessionName;
use crate::ui::browse::linear::{LinearBrowser, LinearInput};
use crate::ui::browse::screen::{BrowseFrame, browse};
use crate::ui::browse::source::{BrowseSource, Opener};
use crate::workflow::project::Project;
use crate::workflow::user::NobodyToAsk;
use crate::workflow::view::timeline::timeline;
use actions::Actions;

/// Look at sessions and turns on a full screen
///
/// To the left is the tree of sessions, branches and turns, to the right the turn: request and
/// answer, differences, outputs, input and facts. Turns that are made elsewhere appear. From here
/// you can search, compare, branch, undo, restore and land; whatever changes something shows it
/// first and asks. `?` lists the keys.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  teddy browse\n  teddy browse add-auth             only this session, and work on it\n  teddy browse origin/add-auth      a session that was fetched\n  teddy browse --linear             line by line, for screen readers and simple terminals\n  teddy browse --json               all sessions with their turns"
)]
pub(super) struct Args {
    /// Show only this session, and work on it
    #[arg(value_name = "SESSION", add = complete::with(complete::sessions))]
    of: Option<String>,
    /// Read line by line, without a full screen; `help` lists the commands
    #[arg(long, conflicts_with = "json")]
    linear: bool,
}

pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<ExitCode> {
    let of = args.of.as_deref().map(SessionName::from_address);
    let only = of.transpose()?;
    if let Some(own) = only.as_ref().filter(|only| only.remote().is_none()) {
        app.global.session = Some(own.to_string());
    }
    let project = app.record()?;
    if let Some(only) = &only {
        project.store().tip_id(only)?;
    }

    if app.global.json {
        app.print_json(&timeline(&project, only.as_ref())?)?;
        return Ok(exit::SUCCESS.into());
    }
    if project.store().sessions()?.is_empty() && only.is_none() {
        app.note(no_sessions(&project));
        return Ok(exit::SUCCESS.into());
    }
    match args.linear {
        true => read(app, &project, only)?,
        false => show(app, &project, only)?,
    }

    Ok(exit::SUCCESS.into())
}

/// Opens the full-screen browser.
fn show(app: &App, project: &Project, only: Option<SessionName>) -> anyhow::Result<()> {
    if !screen::can_prompt() {
        let hint = "`teddy browse --linear` reads line by line; `teddy log --all` lists the turns";
        return Err(NobodyToAsk::new("a full screen needs a terminal", hint).into());
    }

    let (dir, user_dirs, options) = (app.dir()?, app.user_dirs()?, app.project_options()?);
    let open: Opener =
        Arc::new(move || Project::open_record(&dir, user_dirs.clone(), options.clone()));
    let source = BrowseSource::start(&open, only)?;
    let frame = BrowseFrame {
        title: &title(project),
        paint: app.paint(screen::is_screen()),
    };
    let mut actions = Actions::new(app, project);
    actions.is_hidden = true;
    browse(&source, &mut actions, &frame)?;
    Ok(())
}

/// Runs the line-by-line browser.
fn read(app: &App, project: &Project, only: Option<SessionName>) -> anyhow::Result<()> {
    use std::io::IsTerminal as _;

    let mut actions = Actions::new(app, project);
    let mut out = io::stdout();
    let out = (&mut out as &mut dyn io::Write, app.paint_results());
    let input = LinearInput {
        is_typed: io::stdin().is_terminal(),
        lines: &mut io::BufReader::new(io::stdin()),
    };
    let read = LinearBrowser::new(project, only, &mut actions, out).run(input);
    // The reader closed the pipe.
    let has_left = |error: &anyhow::Error| {
        let why = error.downcast_ref::<io::Error>().map(io::Error::kind);
        why == Some(io::ErrorKind::BrokenPipe)
    };
    match read {
        Err(error) if has_left(&error) => Ok(()),
        read => read,
    }
}

fn title(project: &Project) -> String {
    let dir = project.repository.workdir();
    let name = dir.file_name().unwrap_or(dir.as_os_str());
    format!("Sessions of {}", name.to_string_lossy())
}
