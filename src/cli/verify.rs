//! `teddy verify`: checks the integrity of sessions.

use std::process::ExitCode;

use super::app::App;
use super::{complete, exit};
use crate::session::name::SessionName;
use crate::text::counted;
use crate::text::sanitize::sanitize_line;
use crate::ui::style::{StyledLine, Tone};
use crate::workflow::verify::{Verified, verify_sessions};

/// Check that sessions tell the truth
///
/// Checks every turn against the rules of the format: numbers, ids, parents, the commits before and
/// after it, what was approved against what ran; and that every object is there and has the bytes
/// that its id says. Reports who signed a session, if git accepts the
/// signature. Nothing is changed. Exits with 1 if anything is wrong.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  teddy verify                    all sessions\n  teddy verify add-auth --json\n  teddy verify origin/add-auth    a session that was fetched\n  git fsck                        checks the objects of the whole repository"
)]
pub(super) struct Args {
    /// Sessions to check; all of them if omitted
    #[arg(value_name = "SESSION", add = complete::with(complete::all_sessions))]
    sessions: Vec<String>,
}

pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<ExitCode> {
    let project = app.record()?;
    let names = args
        .sessions
        .iter()
        .map(|name| SessionName::from_address(name));
    let mut sessions = names.collect::<Result<Vec<_>, _>>()?;
    if sessions.is_empty() {
        sessions.extend(project.named_session());
    }

    let verified = verify_sessions(&project, &sessions)?;
    if app.global.json {
        app.print_json(&verified)?;
    } else {
        let lines: Vec<StyledLine> = verified.iter().flat_map(lines).collect();
        app.page(&project, &lines)?;
        if verified.is_empty() {
            app.note("There are no sessions.");
        }
    }

    let is_sound = verified.iter().all(|one| one.faults.is_empty());
    Ok(if is_sound {
        exit::SUCCESS
    } else {
        exit::FAILED
    }
    .into())
}

/// Describes the signature of a valid session: signer, date, extent.
fn signed(verified: &Verified) -> String {
    let Some(signature) = &verified.signature else {
        return "not signed".to_owned();
    };
    let covered = match signature.turn {
        Some(turn) if !signature.is_whole => format!(" up to turn {turn}"),
        _ => String::new(),
    };
    let signer = signature.signer.as_deref().unwrap_or(&signature.tagger);
    let time = signature.signed.as_deref().unwrap_or("an unknown time");

    format!("signed{covered} by {} at {time}", sanitize_line(signer))
}

fn lines(verified: &Verified) -> Vec<StyledLine> {
    let name = verified.session.to_string();
    let head = StyledLine::of(Tone::Strong, &name).with(
        Tone::Plain,
        &format!(": {}, ", counted(verified.turns.saturating_sub(1), "turn")),
    );
    if verified.faults.is_empty() {
        let head = head.with(Tone::Added, "sound");
        return vec![head.with(Tone::Plain, &format!(", {}", signed(verified)))];
    }

    let count = counted(verified.faults.len(), "fault");
    let mut lines = vec![head.with(Tone::Removed, &count)];
    for fault in &verified.faults {
        let location = match fault.turn {
            Some(turn) => format!("turn {turn}"),
            None => fault.commit.to_string()[..8].to_owned(),
        };
        lines.push(
            StyledLine::of(Tone::Plain, "  ")
                .with(Tone::Accent, &location)
                .with(Tone::Plain, &format!(": {} ", fault.what))
                .with(Tone::Faint, &format!("({})", fault.rule)),
        );
    }

    lines
}
