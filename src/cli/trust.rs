//! `teddy trust`: shows the repository's settings and trusts them.

use super::app::App;
use super::exit::{self, ExitStatus};
use super::failure::Unfinished;
use super::in_use::forbidden_settings;
use crate::project::Project;
use crate::workflow::trust::{TrustProposal, remember_trust, trust_proposal};

/// Show and trust the settings of this repository
///
/// Trust applies to the exact content: any change revokes it, and the next `teddy trust` shows the
/// difference.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  teddy trust                       look, then decide\n  teddy trust -y\n  teddy trust --revoke"
)]
pub(super) struct Args {
    /// Trust without asking
    #[arg(short, long)]
    yes: bool,
    /// Revoke the trust
    #[arg(long, conflicts_with = "yes")]
    revoke: bool,
}

pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<ExitStatus> {
    // Untrusted settings are the subject of this command, so don't warn about them.
    let project = app.open()?;
    if let Some(warning) = forbidden_settings(&project) {
        app.warn(&warning);
    }

    if args.revoke {
        let was_trusted = project.trusted;
        remember_trust(&project, false)?;
        print_state(app, &project, "")?;
        app.note(match was_trusted {
            true => "This repository is not trusted any more.",
            false => "This repository was not trusted.",
        });
        return Ok(exit::SUCCESS);
    }

    let TrustProposal {
        text,
        is_trusted,
        is_empty,
    } = trust_proposal(&project)?;
    let is_settled = is_trusted || is_empty;
    if !app.global.json {
        app.print(&text)?;
    } else if is_settled {
        print_state(app, &project, &text)?;
    }

    if is_settled {
        app.note(if is_empty {
            "This repository asks for nothing that takes trust."
        } else {
            "This repository is trusted as it is."
        });
        return Ok(exit::SUCCESS);
    }

    let mut user = app.user(&project, args.yes);
    let undecided = |error| Unfinished {
        partial: state(false, &text),
        error,
    };
    let is_trusted = user.confirm("Trust exactly this?", "-y");
    if !is_trusted.map_err(undecided)? {
        app.note("Nothing was trusted.");
        return Ok(exit::FAILED);
    }

    remember_trust(&project, true)?;
    if args.yes {
        print_state(app, &project, &text)?;
    }

    app.note("Trusted, until any of it changes.");
    Ok(exit::SUCCESS)
}

/// With `--json`, prints the current state and the shown settings.
fn print_state(app: &App, project: &Project, text: &str) -> anyhow::Result<()> {
    if !app.global.json {
        return Ok(());
    }
    app.print_json(&state(trust_proposal(project)?.is_trusted, text))
}

fn state(is_trusted: bool, text: &str) -> serde_json::Value {
    serde_json::json!({ "trusted": is_trusted, "shown": text })
}
