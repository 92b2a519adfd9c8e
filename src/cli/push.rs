//! `teddy push`: sends sessions to a remote.

use std::collections::BTreeSet;

use clap::ArgGroup;
use serde_json::json;

use super::app::App;
use super::exit::{self, ExitStatus};
use super::failure::{InvalidArgument, Unfinished};
use super::{complete, verify};
use crate::config::settings::PushMode;
use crate::git::remote::FetchProgress;
use crate::project::Project;
use crate::session::name::SessionName;
use crate::text::{counted, sized};
use crate::ui::style::{self, StyledLine, Tone};
use crate::workflow::push::findings::LeakFinding;
use crate::workflow::push::preview::{PushOptions, PushState, SessionPreview};
use crate::workflow::push::{
    DeletedSession, PreparedPush, PushResult, chosen_remote, delete_sessions, prepare_push,
    sessions_to_delete,
};

/// Findings listed at a terminal.
const MOST_FINDINGS: usize = 20;

/// Send sessions to a git remote
///
/// Sends the turns without the code (`--no-code`), so others can read them, or the session itself
/// (`--code`), so they can restore and continue it. git does the transfer, never by force. Before it
/// sends anything, it shows the size, the files that are in no branch of the remote, and what looks
/// like a key or a personal path: such findings must be allowed or redacted first.
#[derive(clap::Args)]
#[command(
    group(ArgGroup::new("manner").args(["code", "no_code"])),
    after_help = "Examples:\n  teddy push                          the turns of the session in use, without the code\n  teddy push -n                       show what would be sent\n  teddy push add-auth --code          with the files, so others can continue it\n  teddy push --redact                 without keys and personal paths\n  teddy push --code --sign            with your signature\n  teddy push --allow add-auth:3       let the findings in turn 3 go\n  teddy push --delete old-session     delete it on the remote, not here"
)]
pub(super) struct Args {
    /// Sessions to send; the one in use if omitted
    #[arg(value_name = "SESSION", add = complete::with(complete::sessions))]
    sessions: Vec<String>,
    /// The remote; `push.remote` or git's own choice if omitted
    #[arg(long, value_name = "NAME")]
    remote: Option<String>,
    /// Send the session itself, with the files before and after each turn
    #[arg(long)]
    code: bool,
    /// Send the turns without the files
    #[arg(long)]
    no_code: bool,
    /// Show what would be sent without sending it
    #[arg(short = 'n', long)]
    dry_run: bool,
    /// Don't ask before sending; findings stop it all the same
    #[arg(short, long)]
    yes: bool,
    /// Let findings go: a name, the front of one such as `add-auth:3`, or a kind (`keys`, `paths`)
    #[arg(long, value_name = "NAME")]
    allow: Vec<String>,
    /// Take findings out of what is sent, except out of the files of commits
    #[arg(long)]
    redact: bool,
    /// First sign the sessions with your key, as `teddy verify --sign` does
    #[arg(long, conflicts_with_all = ["no_code", "dry_run"])]
    sign: bool,
    /// Send it under another name
    #[arg(long = "as", value_name = "NAME")]
    target: Option<String>,
    /// Delete sessions on the remote
    #[arg(long, requires = "sessions", conflicts_with_all = ["manner", "allow", "redact", "target", "sign"])]
    delete: bool,
}

pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<ExitStatus> {
    let project = match args.sign {
        true => app.project()?,
        false => app.record()?,
    };
    if args.delete {
        return remove(&args, app, &project);
    }

    let mut options = options(&args)?;
    if args.sign {
        verify::sign_all(app, &project, &mut options.sessions)?;
    }
    let prepared = prepare_push(&project, &options)?;
    let mut preview = prepared.preview();
    if args.sign {
        note_unsent_signatures(&mut preview);
    }
    if !app.global.json {
        app.print(style::text(&lines(&preview), app.paint_results()))?;
        unused(app, &options, &preview);
    }

    let partial = serde_json::to_value(&preview)?;
    let unfinished = |error: anyhow::Error| Unfinished {
        partial: partial.clone(),
        error,
    };
    prepared.check().map_err(|error| unfinished(error.into()))?;
    if args.dry_run || prepared.is_empty() {
        if app.global.json {
            app.print_json(&preview)?;
        } else if prepared.is_empty() {
            app.note(&format!("`{}` has all of it.", prepared.remote));
        }
        return Ok(exit::SUCCESS);
    }

    let question = question(&prepared, &preview);
    let mut user = app.user(&project, args.yes);
    if !user.confirm(&question, "-y").map_err(&unfinished)? {
        app.note("Nothing was sent.");
        return Ok(exit::FAILED);
    }

    let sent = prepared.send(&project, progress(app));
    sent.map_err(unfinished)?;
    preview.sent = true;
    if app.global.json {
        app.print_json(&preview)?;
    } else {
        let sent = preview.sessions.iter().filter(|one| one.is_sent());
        let count = counted(sent.count(), "session");
        app.note(&format!("Sent {count} to `{}`.", preview.remote));
    }
    Ok(exit::SUCCESS)
}

fn options(args: &Args) -> anyhow::Result<PushOptions> {
    let names = args.sessions.iter();
    let sessions = each_once(names.map(|name| SessionName::own_from_address(name)))?;
    if args.target.is_some() && sessions.len() > 1 {
        return Err(InvalidArgument::error(
            "`--as` gives one session another name, and several are named",
            "send them one by one",
        ));
    }

    let target = args.target.as_deref().map(SessionName::parse).transpose()?;
    Ok(PushOptions {
        sessions,
        remote: args.remote.clone(),
        mode: match (args.code, args.no_code) {
            (true, _) => Some(PushMode::Code),
            (_, true) => Some(PushMode::NoCode),
            _ => None,
        },
        allow: args.allow.clone(),
        redact: args.redact,
        target,
    })
}

// git refuses two updates of one ref.
fn each_once(
    names: impl Iterator<Item = anyhow::Result<SessionName>>,
) -> anyhow::Result<Vec<SessionName>> {
    let names = names.collect::<anyhow::Result<BTreeSet<_>>>()?;
    Ok(names.into_iter().collect())
}

/// A signature covers the files, too, so it is sent only with them.
fn note_unsent_signatures(preview: &mut PushResult) {
    let without_code = |one: &&mut SessionPreview| one.mode == PushMode::NoCode;
    for one in preview.sessions.iter_mut().filter(without_code) {
        let note = "the signature covers the files, so it is not sent without them (`--code`)";
        one.notes.push(note.to_owned());
    }
}

/// Returns whether to show git's progress.
fn progress(app: &App) -> FetchProgress {
    match app.is_attended() && !app.global.quiet {
        true => FetchProgress::Visible,
        false => FetchProgress::Hidden,
    }
}

/// Returns the question before sending.
fn question(prepared: &PreparedPush<'_>, preview: &PushResult) -> String {
    let sent = preview.sessions.iter().filter(|one| one.is_sent());
    let names: Vec<String> = sent.map(|one| format!("`{}`", one.session)).collect();
    format!("Send {} to `{}`?", names.join(", "), prepared.remote)
}

/// Warns about `--allow` values that match nothing.
fn unused(app: &App, options: &PushOptions, preview: &PushResult) {
    let is_used = |name: &&String| {
        ["keys", "paths", "unread"].contains(&name.as_str())
            || preview
                .findings
                .iter()
                .any(|finding| finding.is_named(name))
    };
    for name in options.allow.iter().filter(|name| !is_used(name)) {
        app.warn(&format!("`--allow {name}` names no finding"));
    }
}

fn lines(preview: &PushResult) -> Vec<StyledLine> {
    let remote = preview.remote.as_str();
    let sessions = preview.sessions.iter();
    let mut lines: Vec<StyledLine> = sessions.flat_map(|one| session(one, remote)).collect();
    if preview.findings.is_empty() {
        return lines;
    }

    lines.push(StyledLine::plain("May be private:"));
    lines.extend(preview.findings.iter().take(MOST_FINDINGS).map(finding));
    let more = preview.findings.len().saturating_sub(MOST_FINDINGS);
    if more > 0 {
        lines.push(StyledLine::of(
            Tone::Faint,
            &format!("  and {more} more (`--json` lists all)"),
        ));
    }
    lines
}

fn session(one: &SessionPreview, remote: &str) -> Vec<StyledLine> {
    let signature = match one.signed {
        true => ", with the signature",
        false => "",
    };
    let text = format!(": {}{signature}", what_is_sent(one, remote));
    let head = StyledLine::of(Tone::Strong, one.session.as_str());
    let mut lines = vec![head.with(Tone::Plain, &text)];
    let mut note = |text: &str| lines.push(StyledLine::plain(&format!("  {text}")));
    if let Some(bare) = &one.replaces {
        note(&format!("takes the place of {bare}"));
    }
    if !one.redacted.is_empty() {
        let kinds: Vec<&str> = one.redacted.iter().map(|kind| kind.name()).collect();
        let findings = counted(one.redactions, "finding");
        note(&format!(
            "without {}: {findings} in the new turns",
            kinds.join(" and ")
        ));
    }
    one.notes.iter().for_each(|text| note(text));
    if !one.files.is_empty() {
        let count = one.files.len() + one.more_files;
        note(&format!(
            "{} in no branch of {remote}:",
            counted(count, "file")
        ));
        one.files.iter().for_each(|path| note(&format!("  {path}")));
    }
    if one.more_files > 0 {
        note(&format!("  and {} more", one.more_files));
    }
    lines
}

fn what_is_sent(one: &SessionPreview, remote: &str) -> String {
    match one.state {
        PushState::Current => format!("{remote} has all of it"),
        // An address is not a name under which sessions are fetched.
        PushState::Behind if one.mode == PushMode::NoCode || remote.contains('/') => {
            format!("{remote} has all of it, and more turns")
        }
        PushState::Behind => format!(
            "{remote} has all of it, and more turns; `teddy fetch` and `teddy switch {remote}/{}` get them",
            one.target
        ),
        PushState::New | PushState::Ahead => {
            let turns = match one.new_turns == one.turns {
                true => counted(one.turns, "turn"),
                false => format!("{} of {}", one.new_turns, counted(one.turns, "turn")),
            };
            let objects = counted(one.lacking.objects, "object");
            let bytes = sized(one.lacking.bytes);
            let scope = match one.mode {
                PushMode::NoCode => "without the code",
                PushMode::Code => "with the code",
            };
            format!(
                "{turns} {scope}, {objects}, {bytes}, to {} of {remote}",
                one.reference
            )
        }
    }
}

fn finding(finding: &LeakFinding) -> StyledLine {
    let tone = if finding.allowed {
        Tone::Faint
    } else {
        Tone::Warning
    };
    let mut text = format!(" {}", finding.what);
    if finding.places > 1 {
        text.push_str(&format!(", {} places", finding.places));
    }
    if finding.allowed {
        text.push_str(", allowed");
    }
    if !finding.line.is_empty() {
        text.push_str(&format!(": {}", finding.line));
    }
    StyledLine::plain("  ")
        .with(tone, &finding.name)
        .with(Tone::Plain, &format!(" ({}){text}", finding.kind.name()))
}

/// Parses the name of a session to delete on the remote; a name of the local copy is not accepted.
fn name_there(text: &str) -> anyhow::Result<SessionName> {
    let name = SessionName::from_address(text)?;
    match name.remote() {
        None => Ok(name),
        Some(remote) => Err(InvalidArgument::error(
            format!("`{name}` is what was fetched of a session of `{remote}`"),
            format!(
                "`teddy push --delete {} --remote {remote}` deletes it there",
                name.own()
            ),
        )),
    }
}

fn remove(args: &Args, app: &App, project: &Project) -> anyhow::Result<ExitStatus> {
    let remote = chosen_remote(project, args.remote.as_deref())?;
    let names = args.sessions.iter().map(|name| name_there(name));
    let sessions = each_once(names)?;
    let targets = sessions_to_delete(project, &remote, &sessions)?;
    let report =
        |deleted: bool| json!({ "remote": remote, "deleted": deleted, "sessions": targets });
    if !app.global.json {
        let lines: Vec<StyledLine> = targets.iter().map(deleted).collect();
        app.print(style::text(&lines, app.paint_results()))?;
    }

    if args.dry_run {
        if app.global.json {
            app.print_json(&report(false))?;
        }
        return Ok(exit::SUCCESS);
    }

    let question = format!(
        "Delete {} on `{remote}`?",
        counted(targets.len(), "session")
    );
    let unfinished = |error| Unfinished {
        partial: report(false),
        error,
    };
    let mut user = app.user(project, args.yes);
    if !user.confirm(&question, "-y").map_err(unfinished)? {
        app.note("Nothing was deleted.");
        return Ok(exit::FAILED);
    }

    delete_sessions(project, &remote, &targets, progress(app)).map_err(unfinished)?;
    if app.global.json {
        app.print_json(&report(true))?;
    } else {
        let count = counted(targets.len(), "session");
        app.note(&format!("Deleted {count} on `{remote}`; your copy stays."));
    }
    Ok(exit::SUCCESS)
}

/// Describes a session deleted on the remote.
fn deleted(one: &DeletedSession) -> StyledLine {
    let turns = match one.turns {
        Some(turns) => counted(turns, "turn"),
        None => "turns that you don't have".to_owned(),
    };
    let here = match one.is_here {
        true => "the session here stays",
        false => "there is no session of this name here",
    };
    let refs = one.refs.join(", ");
    StyledLine::of(Tone::Strong, one.session.as_str())
        .with(Tone::Plain, &format!(": {turns}, {refs}; {here}"))
}
