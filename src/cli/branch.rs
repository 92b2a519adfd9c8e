//! `teddy branch`: starts a session at an earlier turn.

use super::app::App;
use super::begin::report_files;
use super::complete;
use crate::project::Project;
use crate::query::history::changed;
use crate::session::name::SessionName;
use crate::workflow::lifecycle::{branch_session, rename_session};

/// Start a new session at an earlier turn, or rename one
///
/// The new session shares all turns up to that one. Your files stay as they are; `teddy restore @`
/// updates them.
#[derive(clap::Args)]
#[command(
    allow_missing_positional = true,
    after_help = "Examples:\n  teddy branch other-way            at the newest turn\n  teddy branch 2 other-way          at turn 2\n  teddy branch origin/s:3 mine      at turn 3 of a session that was fetched\n  teddy branch -m better-name       rename the session in use\n  teddy branch -m old new"
)]
pub(super) struct Args {
    /// The turn: a number, `<session>:<turn>`, or anything that `git rev-parse` accepts
    #[arg(default_value = "@", add = complete::with(complete::turns))]
    turn: String,
    /// The new session's name
    #[arg(required = true)]
    name: String,
    /// Rename a session, the one in use if only the new name is given; its turns stay as they are
    #[arg(short = 'm', long = "move")]
    is_move: bool,
}

pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<()> {
    let name = SessionName::from_words(&args.name)?;
    let mut project = app.project()?;
    if args.is_move {
        return rename(&args.turn, &name, app, &mut project);
    }

    let mut user = app.user(&project, false);
    let commit = branch_session(&mut project, &args.turn, &name, user.as_mut())?;
    let (tip, files) = changed(&project)?;

    if app.global.json {
        app.print_json(&serde_json::json!({
            "session": name,
            "ref": name.reference(),
            "commit": commit,
            "workspace": files,
        }))?;
    } else {
        app.print(format!("{}\n", name.reference()))?;
        app.note(&format!("Session {name} is in use now."));
        report_files(app, &project, &files, tip.number())?;
    }

    app.warn_of_other_session(name.as_str());
    Ok(())
}

/// `old` is `@` for the session in use.
fn rename(old: &str, new: &SessionName, app: &App, project: &mut Project) -> anyhow::Result<()> {
    let old = match old {
        "@" => project.session()?,
        old => SessionName::own_from_address(old)?,
    };
    let mut user = app.user(project, false);
    let renamed = rename_session(project, &old, new, user.as_mut())?;

    if app.global.json {
        return app.print_json(&serde_json::json!({
            "session": new,
            "ref": new.reference(),
            "before": old,
            "was_signed": renamed.was_signed,
        }));
    }
    app.print(format!("{}\n", new.reference()))?;
    app.note(&format!("Session {old} is now {new}."));
    if renamed.was_signed {
        app.warn(&format!(
            "its signature was made for `{old}` and is gone; `teddy verify --sign {new}` signs it again"
        ));
    }
    Ok(())
}
