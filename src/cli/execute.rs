//! `teddy execute`: validates, reviews and runs the plan, and records the turn.

use super::app::App;
use super::exit::{self, ExitStatus};
use super::failure::ANSWER;
use super::plan::{json as plan_json, keep_answer, report_prose, show_answer};
use super::prompt::message;
use super::record::warn_of_damage;
use super::{complete, source};
use crate::host::{interrupt, screen};
use crate::plan::Plan;
use crate::plan::action::Action;
use crate::plan::diagnostic::Diagnostic;
use crate::plan::run::{Ending, Interruption, Outcome};
use crate::project::Project;
use crate::session::artifact;
use crate::session::meta::Status;
use crate::session::name::SessionName;
use crate::text::counted;
use crate::text::hint::error_with_hint;
use crate::text::path::RepoPath;
use crate::text::sanitize::sanitize_line;
use crate::ui::{mistakes, notice};
use crate::workflow::execute::comments::CommentRequest;
use crate::workflow::execute::execute_or_plan;
use crate::workflow::execute::options::{ExecuteOptions, PlanFile};
use crate::workflow::execute::result::{
    AnswerStatus, AppliedFile, ExecuteResult, RecordedTurn, RefusedPlan, ReviewedPlan, TurnEnding,
    UndecidedPlan,
};
use crate::workflow::plan::WaitingPlan;
use crate::workspace::file_move::PathChange;
use crate::workspace::snapshot::RecordedFiles;

/// Review and run the pending plan, and record the turn
///
/// The plan runs in an isolated worktree. Edits that you make in the meantime are kept; if they
/// overlap with the result, your files are not updated, the result stays in the turn, and the exit
/// code is 4.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  teddy execute                 review the draft's plan\n  teddy execute -y              approve all of it\n  teddy execute plan.md -y      run a plan from elsewhere; starts a session if there is none\n  teddy execute --comment 'src/a.rs:3=cache it'   decline the plan with a comment on a line\n\nExit codes: 0 done, 1 an action failed, 3 plan rejected, 4 recorded, but your files were not updated, 5 the model waits for your answer, or the plan for a person"
)]
pub(super) struct Args {
    /// Run the plan in this file (or `-`) instead of the draft
    #[arg(value_name = "PLAN", value_hint = clap::ValueHint::FilePath)]
    plan: Option<String>,
    /// Approve everything
    #[arg(short, long)]
    yes: bool,
    /// Don't ask the model for another plan if this one is rejected
    #[arg(long)]
    no_replan: bool,
    /// The model that corrects a rejected plan
    #[arg(long, value_name = "MODEL", add = complete::with(complete::models))]
    model: Option<String>,
    /// Decline the plan with a comment on a line of a file as it would be after it
    #[arg(long, value_name = "FILE:LINE=TEXT", value_parser = comment, conflicts_with = "yes", allow_hyphen_values = true)]
    comment: Vec<CommentRequest>,
}

/// Parses a comment such as `src/a.rs:3=why?` or `src/a.rs:3-5=why?`.
fn comment(argument: &str) -> Result<CommentRequest, String> {
    let parsed = argument
        .char_indices()
        .filter(|(_, c)| *c == ':')
        .find_map(|(at, _)| {
            let (range, text) = argument[at + 1..].split_once('=')?;
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            Some((
                &argument[..at],
                first.parse().ok()?,
                last.parse().ok()?,
                text,
            ))
        });
    let (path, first, last, text) =
        parsed.ok_or("write it as `file:line=text` or `file:first-last=text`")?;
    if text.trim().is_empty() {
        return Err("it has no text".to_owned());
    }
    Ok(CommentRequest {
        path: RepoPath::parse(path).map_err(|error| error.to_string())?,
        first,
        last,
        text: text.to_owned(),
    })
}

const PLAN_SOURCES: &str =
    "`teddy execute` runs the plan that waits; `-` reads one from standard input";

pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<ExitStatus> {
    let mut project = app.project()?;
    let plan_path = match args.plan.as_deref() {
        Some(word) if is_number(app, word) && waits(&project, word)? => None,
        plan_path => plan_path,
    };
    let plan = plan_path.map(|path| source::read(app, path, PLAN_SOURCES));
    let plan = plan.transpose()?;
    // With `-y` there is no review, and a script must not block on anything else.
    if args.plan.as_deref() == Some(source::STDIN) && !args.yes {
        screen::take_keys_from_terminal();
    }

    let mut user = app.helped_user(&project, args.yes, message::help(app));
    let plan_path = plan_path.filter(|&name| name != source::STDIN);
    let file = plan_path.zip(plan.as_deref()).map(|(name, text)| PlanFile {
        name: name.to_owned(),
        text: text.to_owned(),
    });
    let mut options = ExecuteOptions {
        file,
        // The file is the user's, so no model is asked to correct it.
        replan: !args.no_replan && plan.is_none(),
        model: args.model,
        comments: args.comment,
        ..ExecuteOptions::default()
    };

    let is_asked = app.is_attended() && !args.yes && options.comments.is_empty();
    let mention = |project: &Project, text: &str| message::add_or_warn(app, project, text);
    let mut plan = plan;
    let result = loop {
        let given = plan.take();
        let user = user.as_mut();
        let done = execute_or_plan(&mut project, given.as_deref(), &options, user, &mention)?;
        // The user is there, so the next plan is reviewed at once.
        let Some((recorded, files)) = replaced(&done).filter(|_| is_asked) else {
            break done;
        };
        show(app, recorded, false)?;
        options.recorded = Some(files);
    };
    drop(user);

    match &result {
        ExecuteResult::Refused(refused) => show_refused(app, plan_path, refused)?,
        ExecuteResult::Reviewed(ReviewedPlan::Undecided(undecided)) => {
            show_undecided(app, undecided)?;
        }
        ExecuteResult::Reviewed(ReviewedPlan::Recorded(recorded)) => {
            show(app, recorded, false)?;
            let planned = recorded.replanned().filter(|_| !app.global.json);
            // A prose answer is shown when its turn is recorded.
            if let Some(planned) = planned.filter(|planned| planned.answer.is_none()) {
                note_replanned(app, planned);
            }
            show_next(app, &project, recorded, plan_path.is_some())?;
            report_answer(app, &project, recorded)?;
        }
    }
    Ok(result_code(&result))
}

/// Returns a turn whose plan was declined or rejected, with the snapshot for the plan that the model
/// made instead.
fn replaced(result: &ExecuteResult) -> Option<(&RecordedTurn, RecordedFiles)> {
    let ExecuteResult::Reviewed(ReviewedPlan::Recorded(recorded)) = result else {
        return None;
    };
    let planned = recorded.replanned()?;
    let waits = planned.answer.is_none() && !interrupt::requested();
    waits.then(|| (recorded.as_ref(), planned.recorded.clone()))
}

/// Says how to continue after a turn.
fn show_next(
    app: &App,
    project: &Project,
    recorded: &RecordedTurn,
    is_from_file: bool,
) -> anyhow::Result<()> {
    match recorded.replanned().map(|planned| &planned.answer) {
        Some(Some(answer)) => {
            keep_answer(project, app.user(project, false).as_mut())?;
            show_answer(app, answer)?;
        }
        Some(None) => app.note("Next: `teddy execute`"),
        None => {}
    }
    if recorded.status() == Status::Failed && !app.global.json {
        app.note(match recorded.applied.is_empty() {
            true => "`teddy resume` lets the model continue.",
            false => "`teddy resume` lets the model continue; `teddy undo` takes it back.",
        });
    }
    if is_from_file && recorded.instead().is_some() && !app.global.json {
        app.note("Your message is kept for the next turn. Next: `teddy resume`");
    }
    Ok(())
}

/// Returns whether a word can only be a turn number.
fn is_number(app: &App, word: &str) -> bool {
    let is_file = app.dir().is_ok_and(|dir| dir.join(word).exists());
    !is_file && !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns whether the waiting plan belongs to this turn. Fails if the turn has run already or does
/// not exist.
fn waits(project: &Project, number: &str) -> anyhow::Result<bool> {
    let store = project.store();
    let session = project.session()?;
    let turn = store.turn_or_draft(&session, number)?;
    if turn.is_draft() {
        return Ok(true);
    }

    let status = turn.meta.status;
    let is_run = matches!(
        status,
        Status::Executed | Status::Failed | Status::Interrupted
    );
    let what = if is_run { "ran already" } else { "is over" };
    let has_plan = turn.text(&project.repository, artifact::PLAN)?.is_some();
    Err(error_with_hint(
        format!("turn {number} {what}: it is `{}`", status.word()),
        match has_plan {
            true => format!("`teddy show {number} plan.md | teddy execute -` runs its plan again"),
            false => "it has no plan; `teddy log` lists the turns".to_owned(),
        },
    ))
}

/// Explains what happened to the model's question.
fn report_answer(app: &App, project: &Project, recorded: &RecordedTurn) -> anyhow::Result<()> {
    let Some(question) = recorded.question.as_ref().filter(|_| !app.global.json) else {
        return Ok(());
    };
    match question.answer {
        AnswerStatus::Answered => {
            let (_, draft) = project.in_progress(&recorded.session)?;
            if let Some((answer, _)) = draft.waiting_message() {
                message::add_or_warn(app, project, &answer);
            }
            app.note("Your answer is kept for the next turn. Next: `teddy resume`");
            Ok(())
        }
        AnswerStatus::Open | AnswerStatus::UserLeft => report_question(app, &question.text, ANSWER),
    }
}

fn result_code(result: &ExecuteResult) -> ExitStatus {
    match result {
        _ if interrupt::requested() => exit::INTERRUPTED,
        ExecuteResult::Refused(_) => exit::REJECTED,
        ExecuteResult::Reviewed(ReviewedPlan::Undecided(undecided)) => {
            exit::success_or(undecided.doubts.is_empty(), exit::WAITS)
        }
        ExecuteResult::Reviewed(ReviewedPlan::Recorded(recorded)) => code(recorded),
    }
}

pub(super) fn code(recorded: &RecordedTurn) -> ExitStatus {
    match &recorded.ending {
        TurnEnding::Interrupted { cause, .. } if *cause == Interruption::User => exit::INTERRUPTED,
        _ if interrupt::requested() => exit::INTERRUPTED,
        TurnEnding::Interrupted { .. } => exit::FAILED,
        TurnEnding::Rejected {
            replanned: Some(_),
            in_doubt: true,
            ..
        } => exit::WAITS,
        TurnEnding::Rejected { .. } => exit::REJECTED,
        _ if !recorded.is_synced() => exit::OVERLAP,
        _ if recorded.unanswered().is_some() || recorded.answer.is_some() => exit::WAITS,
        TurnEnding::Ran { failed: true, .. } => exit::FAILED,
        TurnEnding::Ran { .. } | TurnEnding::Declined { .. } => exit::SUCCESS,
    }
}

/// Shows a turn that was recorded. `at_prompt`: the user is at the prompt of a loop, which continues.
pub(super) fn show(app: &App, recorded: &RecordedTurn, at_prompt: bool) -> anyhow::Result<()> {
    if app.global.json {
        return app.print_json(&json(recorded));
    }

    let RecordedTurn { turn, commit, .. } = recorded;
    let (word, id) = (recorded.word(), commit.to_string());
    app.print(format!("turn {turn} {word} {}\n", &id[..12]))?;
    if let Some(line) = applied_files(recorded) {
        app.note(&line);
    }
    for path in recorded.edited_by_user() {
        app.warn(&format!(
            "`{path}` overlaps with your own edits and was left as it is"
        ));
    }

    notes(recorded).iter().for_each(|note| app.warn(note));
    warn_of_damage(app, &recorded.damage);
    show_interruption(app, recorded);
    if !recorded.is_synced() && !recorded.edited_by_user().is_empty() {
        app.note("The result is in the turn: `teddy restore @ --theirs` takes it, `--markers` writes conflict markers, `--ours` keeps your side.");
    }

    if recorded.replanned().is_none() && recorded.is_rejected() {
        let command = if at_prompt { "/show" } else { "teddy show" };
        app.note(&format!("`{command} {turn} report.md` says what is wrong."));
    }

    if let Some(conclusion) = recorded.conclusion() {
        report_conclusion(app, conclusion)?;
    }

    // Without a user at the terminal, a question is reported at the end.
    let is_reported = recorded.unanswered().is_some() && !app.is_attended();
    if let Some(answer) = recorded.answer.as_ref().filter(|_| !is_reported) {
        report_prose(app, answer)?;
    }

    Ok(())
}

fn show_interruption(app: &App, recorded: &RecordedTurn) {
    let Some(cause) = recorded.interruption() else {
        return;
    };
    app.warn(&format!(
        "the plan was interrupted: {cause}; your files are unchanged"
    ));
    app.note(&match recorded.before == recorded.after {
        true => "`teddy execute` runs it again; nothing that it did is recorded.".to_owned(),
        false => format!(
            "`teddy execute` runs it again, `teddy diff {0}` shows what it did, `teddy restore {0}` applies that.",
            recorded.turn
        ),
    });
}

/// Names a plan that waits because the model was asked for another one.
pub(super) fn note_replanned(app: &App, planned: &WaitingPlan) {
    app.note(&match planned.title.as_str() {
        "" => format!(
            "The model answered for turn {}, but that is not a plan.",
            planned.turn
        ),
        title => format!(
            "The model wrote another plan for turn {}: \"{title}\".",
            planned.turn
        ),
    });
}

/// Files named after a turn.
const MAX_REACHED: usize = 4;

/// Summarizes the changed files in one line.
fn applied_files(recorded: &RecordedTurn) -> Option<String> {
    let ran = matches!(recorded.ending, TurnEnding::Ran { .. });
    if !ran || !recorded.is_synced() {
        return None;
    }
    if recorded.applied.is_empty() {
        return Some("Your files are unchanged.".to_owned());
    }

    let describe = |file: &AppliedFile| match file.change {
        PathChange::Added => format!("{} (new)", sanitize_line(&file.path)),
        PathChange::Modified => sanitize_line(&file.path).into_owned(),
        PathChange::Deleted => format!("{} (deleted)", sanitize_line(&file.path)),
    };
    let names: Vec<String> = recorded
        .applied
        .iter()
        .take(MAX_REACHED)
        .map(describe)
        .collect();
    let more = recorded.applied.len().saturating_sub(MAX_REACHED);
    let more = if more > 0 {
        format!(" and {}", counted(more, "more file"))
    } else {
        String::new()
    };
    Some(format!("Updated your files: {}{more}", names.join(", ")))
}

/// Returns notes about files that were not simply written.
fn notes(recorded: &RecordedTurn) -> Vec<String> {
    let obstacles = recorded.obstacles.iter().map(notice::obstacle);
    let rest = format!("; `teddy show {}` names all", recorded.turn);
    let left_out = notice::left_out(&recorded.not_captured, "is not recorded", &rest);
    obstacles.chain(left_out).collect()
}

/// Reports that the plan was left undecided.
fn show_undecided(app: &App, undecided: &UndecidedPlan) -> anyhow::Result<()> {
    if app.global.json {
        let mut value = unrecorded_json(&undecided.plan, "planned", &undecided.doubts);
        value["session"] = serde_json::json!(undecided.session.as_str());
        value["turn"] = serde_json::json!(undecided.turn);
        value["workspace"] = serde_json::json!(undecided.drift);
        return app.print_json(&value);
    }

    let turn = undecided.turn;
    app.note(&match undecided.doubts.is_empty() {
        true => format!("Nothing was run; the plan of turn {turn} is waiting."),
        false => in_doubt(turn),
    });
    Ok(())
}

/// Says that a plan waits because of what was said about it before.
pub(super) fn in_doubt(turn: u64) -> String {
    format!(
        "Nothing was run: the plan of turn {turn} is in doubt, and waits for a person. `teddy execute` without `-y` reviews it."
    )
}

/// Says why a text was not taken as a plan.
fn show_refused(app: &App, file: Option<&str>, refused: &RefusedPlan) -> anyhow::Result<()> {
    if app.global.json {
        let word = Status::Rejected.word();
        let mut value = unrecorded_json(&refused.plan, word, &refused.diagnostics);
        let session = refused.session.as_ref().map_or("", SessionName::as_str);
        value["session"] = serde_json::json!(session);
        return app.print_json(&value);
    }

    app.eprint_lines(&mistakes::rejected(file, &refused.diagnostics));
    app.warn(match refused.session {
        None => "the plan is rejected and no session was started",
        Some(_) => "this is not a plan; nothing was recorded and no model was asked",
    });
    Ok(())
}

/// Shows the model's question in full, and how to answer it.
pub(super) fn report_question(app: &App, question: &str, hint: &str) -> anyhow::Result<()> {
    app.warn("the model waits for your answer:");
    app.print_message(question)?;
    app.note(&format!("hint: {hint}"));
    Ok(())
}

/// Shows the model's closing message.
pub(super) fn report_conclusion(app: &App, conclusion: &str) -> anyhow::Result<()> {
    app.note("The work is done, says the model:");
    app.print_message(conclusion)
}

pub(super) fn json(recorded: &RecordedTurn) -> serde_json::Value {
    let diagnostics = match &recorded.ending {
        TurnEnding::Rejected { diagnostics, .. } => diagnostics.as_slice(),
        _ => &[],
    };
    serde_json::json!({
        "session": recorded.session.as_str(),
        "turn": recorded.turn,
        "commit": recorded.commit,
        "status": recorded.status().word(),
        "before": recorded.before,
        "after": recorded.after,
        "synced": recorded.is_synced(),
        "files": recorded.applied.iter().map(|file| serde_json::json!({ "path": file.path, "change": file.change })).collect::<Vec<_>>(),
        "overlaps": recorded.overlaps,
        "damage": recorded.damage,
        "notes": notes(recorded),
        "interruption": recorded.interruption().map(ToString::to_string),
        "actions": actions_json(&recorded.plan, recorded.ending.outcomes()),
        "diagnostics": diagnostics,
        "replanned": recorded.replanned().map(plan_json),
        "question": recorded.unanswered(),
        "answer": recorded.answer,
        "conclusion": recorded.conclusion(),
        "workspace": recorded.drift,
    })
}

/// Returns a plan that did not run as JSON: the fields of a turn without a commit.
fn unrecorded_json(plan: &Plan, status: &str, diagnostics: &[Diagnostic]) -> serde_json::Value {
    serde_json::json!({
        "session": "",
        "turn": 0,
        "commit": null,
        "status": status,
        "before": null,
        "after": null,
        "synced": false,
        "files": [],
        "overlaps": [],
        "damage": [],
        "notes": [],
        "interruption": null,
        "actions": actions_json(plan, &[]),
        "diagnostics": diagnostics,
        "replanned": null,
        "question": null,
        "answer": null,
        "conclusion": null,
        "workspace": null,
    })
}

/// Returns the actions of a plan as JSON, with their outcomes if they ran.
fn actions_json(plan: &Plan, outcomes: &[Outcome]) -> Vec<serde_json::Value> {
    let actions = plan.actions.iter().enumerate();
    let json = |(index, action): (usize, &Action)| {
        let outcome = outcomes.get(index);
        serde_json::json!({
            "index": index,
            "kind": action.kind.name(),
            "target": action.kind.target(),
            "status": outcome.map_or("not run", ending),
            "detail": outcome.map(|o| &o.detail),
            "exit_code": outcome.and_then(|o| o.exit_code),
            "duration_ms": outcome.map(|o| o.duration.as_millis()),
        })
    };
    actions.map(json).collect()
}

fn ending(outcome: &Outcome) -> &'static str {
    match outcome.ending {
        Ending::Success => "success",
        Ending::Failure => "failure",
        Ending::Skipped => "skipped",
    }
}
