//! `teddy verify`: checks the integrity of sessions, signs them, and runs a recorded plan again.

use super::app::App;
use super::complete;
use super::exit::{self, ExitStatus};
use crate::git::sign::Passphrase;
use crate::project::Project;
use crate::session::name::SessionName;
use crate::text::counted;
use crate::text::sanitize::sanitize_line;
use crate::ui::style::{StyledLine, Tone};
use crate::workflow::rerun::{Unseen, rerun};
use crate::workflow::verify::{Verified, sign_session, verify_sessions};

/// Check sessions for tampering, missing objects, signatures
///
/// Checks every turn against the rules of the format: numbers, ids, parents, the commits before and
/// after it, what was approved against what ran; and that every object is there and has the bytes
/// that its id says. Reports who signed a session, if git accepts the signature. Exits with 1 if
/// anything is wrong.
///
/// With `--sign`, git first signs the newest turn, and with it every turn before it, as a tag: with
/// your identity and your key, of gpg or ssh, as for `git tag -s`. Without a terminal nothing asks
/// for a passphrase. Otherwise nothing is changed.
///
/// With `--rerun`, the plan of a turn runs again, offline in a temporary worktree, on the files that
/// the turn started with. Exit code 0: the same files and exit codes; 1: different ones.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  teddy verify                    all sessions\n  teddy verify add-auth --json\n  teddy verify origin/add-auth    a session that was fetched\n  teddy verify --sign             sign the session in use, then check it\n  teddy verify --rerun 3          does turn 3 lead to the same files again?\n  git verify-tag teddy/signed/add-auth"
)]
pub(super) struct Args {
    /// Sessions to check; all of them if omitted
    #[arg(value_name = "SESSION", conflicts_with = "rerun", add = complete::with(complete::all_sessions))]
    sessions: Vec<String>,
    /// First sign the sessions with your key; the one in use if none is named
    #[arg(long, conflicts_with = "rerun")]
    sign: bool,
    /// Run the recorded plan of this turn again and compare the result
    #[arg(long, value_name = "TURN", add = complete::with(complete::turns))]
    rerun: Option<String>,
    /// Run its commands even if they cannot be sandboxed
    #[arg(short, long, requires = "rerun")]
    yes: bool,
}

pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<ExitStatus> {
    if let Some(turn) = &args.rerun {
        return run_again(turn, args.yes, app);
    }

    let project = match args.sign {
        true => app.project()?,
        false => app.record()?,
    };
    let names = args.sessions.iter().map(|name| match args.sign {
        true => SessionName::own_from_address(name),
        false => Ok(SessionName::from_address(name)?),
    });
    let mut sessions = names.collect::<anyhow::Result<Vec<_>>>()?;
    if args.sign {
        sign_all(app, &project, &mut sessions)?;
    } else if sessions.is_empty() {
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
    Ok(exit::success_if(is_sound))
}

/// Signs sessions with the user's key: the one in use if none is given, which is added to them.
pub(super) fn sign_all(
    app: &App,
    project: &Project,
    sessions: &mut Vec<SessionName>,
) -> anyhow::Result<()> {
    let passphrase = match app.is_attended() {
        true => Passphrase::Ask,
        false => Passphrase::Never,
    };
    if sessions.is_empty() {
        sessions.push(project.session()?);
    }

    let mut user = app.user(project, false);
    for session in sessions.iter() {
        let result = sign_session(project, session, passphrase, user.as_mut())?;
        let turns = match result.turn {
            0 => "no turn yet".to_owned(),
            1 => "turn 1".to_owned(),
            last => format!("turns 1-{last}"),
        };
        let reference = result.reference;
        app.note(&format!("Signed `{session}`, {turns}: {reference}"));
    }
    Ok(())
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
            None => format!("{:.8}", fault.commit),
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

fn exit_code(code: Option<i32>) -> String {
    code.map_or_else(|| "none".to_owned(), |code| code.to_string())
}

/// Runs the plan and says whether the tree is the same.
fn run_again(turn: &str, is_approved: bool, app: &App) -> anyhow::Result<ExitStatus> {
    let project = app.project()?;
    let mut user = app.user(&project, is_approved);
    let result = rerun(&project, turn, user.as_mut())?;
    drop(user);
    let same = result.is_same();

    if app.global.json {
        app.print_json(&serde_json::json!({
            "turn": result.turn,
            "same": same,
            "expected": result.expected,
            "tree": result.tree,
            "differences": result.differences,
            "exit_codes": result.exit_codes,
            "unseen": result.unseen,
        }))?;
    } else {
        let word = if same { "same" } else { "different" };
        app.print(format!("turn {} {word} {}\n", result.turn, result.tree))?;
        result
            .differences
            .iter()
            .for_each(|path| app.note(&format!("  {}", sanitize_line(path))));
        for code in &result.exit_codes {
            app.note(&format!(
                "  action {}: exit code {}, in the turn {}",
                code.action,
                exit_code(code.found),
                exit_code(code.expected)
            ));
        }
        for unseen in &result.unseen {
            app.note(match unseen {
                Unseen::FilesInNoSnapshot => {
                    "The rerun cannot see files that are in no snapshot, such as ignored ones; the turn could."
                }
                Unseen::PresentFiles => {
                    "The rerun saw your present files where no snapshot has them, such as ignored ones; the turn saw those of its time."
                }
                Unseen::Network => "The rerun has no network; the turn could have had it.",
            });
        }
    }

    Ok(exit::success_if(same))
}
