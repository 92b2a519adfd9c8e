//! The commands of a change that take steps.

use std::path::Path;

use super::super::app::App;
use super::super::execute::{code, report_question};
use super::super::exit::{self, ExitStatus};
use super::super::{complete, source};
use super::show;
use crate::change::id::ChangeId;
use crate::change::phase::ChangePhase;
use crate::change::review::ReviewVerdict;
use crate::change::store::Change;
use crate::change::{proposal, spec, tasks};
use crate::host::interrupt;
use crate::project::Project;
use crate::text::counted;
use crate::workflow::change::implement::{self as implementing, ImplementStop, Implemented};
use crate::workflow::change::judge::{self, Judgement};
use crate::workflow::change::plan::{self as planning, PlannedChange};
use crate::workflow::change::work::WorkStop;
use crate::workflow::change::{ChangeRequest, OpenChange, archive as archiving, open_change};
use crate::workflow::execute::result::{RecordedTurn, TurnEnding};
use crate::workflow::restore::OnOverlap;
use crate::workflow::user::{Choice, Question, User};

/// Options of every step that asks a model.
#[derive(clap::Args)]
struct ModelFlags {
    /// The model of every role, in place of `change.roles`: a name of the configuration, or
    /// `kind:id`
    #[arg(long, value_name = "MODEL", add = complete::with(complete::models))]
    model: Option<String>,
}

impl ModelFlags {
    /// Opens the project for a step that calls a model.
    fn project(&self, app: &App, request: &ChangeRequest) -> anyhow::Result<Project> {
        let mut project = project_of(app, request)?;
        if project.settings.change.roles.is_empty() {
            // A pipeline produces plans, not documents, so a plain model is required.
            app.ensure_model(&mut project, self.model.as_deref())?;
        }

        Ok(project)
    }

    fn request(&self, id: &str) -> anyhow::Result<ChangeRequest> {
        Ok(ChangeRequest {
            model: self.model.clone(),
            ..ChangeRequest::of(ChangeId::parse(id)?)
        })
    }
}

#[derive(clap::Args)]
pub(super) struct ProposalArgs {
    /// The change's id: lower-case words joined by hyphens
    #[arg(add = complete::with(complete::changes))]
    id: String,
    /// What it is for; needed for a new change, ignored otherwise
    description: Option<String>,
    #[command(flatten)]
    models: ModelFlags,
}

#[derive(clap::Args)]
pub(super) struct JudgeArgs {
    /// The change
    #[arg(add = complete::with(complete::changes))]
    id: String,
    #[command(flatten)]
    models: ModelFlags,
}

/// Have the documents of a change revised, or replace them with your own
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  teddy change reproposal add-auth -m 'without passwords'\n  teddy change show add-auth proposal.md > proposal.md; $EDITOR proposal.md\n  teddy change reproposal add-auth --from proposal.md"
)]
pub(super) struct ReproposalArgs {
    /// The change
    #[arg(add = complete::with(complete::changes))]
    id: String,
    /// What you want besides what the challenger found
    #[arg(short, long, value_name = "TEXT", conflicts_with = "from")]
    message: Option<String>,
    /// Take these files as documents: proposal.md and tasks.md by their title or name; any other
    /// `<id>.md` is specs/<id>.md
    #[arg(long, value_name = "FILE", num_args = 1.., value_hint = clap::ValueHint::FilePath)]
    from: Vec<String>,
    #[command(flatten)]
    models: ModelFlags,
}

#[derive(clap::Args)]
pub(super) struct ImplementArgs {
    /// The change
    #[arg(add = complete::with(complete::changes))]
    id: String,
    /// Answer the model's question, or add to the next task; `-` reads standard input
    #[arg(short, long, value_name = "TEXT")]
    message: Option<String>,
    /// Approve every plan
    #[arg(short, long)]
    yes: bool,
    #[command(flatten)]
    models: ModelFlags,
}

/// Approve a change despite its challenge or review; the reason is recorded
///
/// A proposed or rejected change can be implemented then; one whose tasks are done is complete.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  teddy change approve add-auth --reason 'the open point is settled in the next change'"
)]
pub(super) struct ApproveArgs {
    /// The change
    #[arg(add = complete::with(complete::changes))]
    id: String,
    /// Why
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

/// Merge the specs of a complete change into the project's specs/
///
/// A three-way merge, based on the specs from when the change began. If the same lines have changed
/// since, nothing is written and the exit code is 4, until you choose a side. After an undo of its turn,
/// a change can be archived again.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  teddy change archive add-auth\n  teddy change archive add-auth --markers\n  teddy undo -s change/add-auth"
)]
pub(super) struct ArchiveArgs {
    /// The change
    #[arg(add = complete::with(complete::changes))]
    id: String,
    /// Keep the project's side where both changed the same lines
    #[arg(long, group = "side")]
    ours: bool,
    /// Take the change's side there
    #[arg(long, group = "side")]
    theirs: bool,
    /// Write conflict markers there
    #[arg(long, group = "side")]
    markers: bool,
}

/// Hints name the session of the change.
fn project_of(app: &App, request: &ChangeRequest) -> anyhow::Result<Project> {
    let project = app.project()?;
    app.name_session_in_hints(&project, request.id.session().as_str());
    Ok(project)
}

/// Takes a step of a change that exists. Also returns the change after it.
fn take<T>(
    app: &App,
    project: &mut Project,
    request: &ChangeRequest,
    command: &'static str,
    step: impl FnOnce(&mut OpenChange<'_>) -> anyhow::Result<T>,
) -> anyhow::Result<(T, Change)> {
    let mut user = app.user(project, false);
    let mut open = OpenChange::open(project, request, command, user.as_mut())?;
    let result = step(&mut open)?;
    Ok((result, open.change))
}

/// Plans, reports the result, and asks how to continue.
pub(super) fn plan(args: ProposalArgs, app: &mut App) -> anyhow::Result<ExitStatus> {
    let mut request = args.models.request(&args.id)?;
    request.description = args.description;
    let mut project = args.models.project(app, &request)?;
    let mut user = app.user(&project, false);
    let mut planned = plan_once(&mut project, &request, user.as_mut())?;
    loop {
        report_plan(app, &planned)?;
        if !app.is_attended() {
            break;
        }

        match next(&planned, user.as_mut())? {
            Some('v') => {
                let text = show::everything(&open_change(&project, &request.id)?);
                app.page_markdown(&project, text.as_bytes())?;
            }
            Some('i') => {
                return implement_planned(app, &mut project, &planned, &request, user.as_mut());
            }
            Some(_) => {
                planning::revise(&mut OpenChange::open(
                    &mut project,
                    &request,
                    "reproposal",
                    user.as_mut(),
                )?)?;
                planned = plan_once(&mut project, &request, user.as_mut())?;
            }
            None => break,
        }
    }

    Ok(exit::success_if(planned.phase != ChangePhase::Rejected))
}

fn plan_once(
    project: &mut Project,
    request: &ChangeRequest,
    user: &mut dyn User,
) -> anyhow::Result<PlannedChange> {
    planning::plan(&mut OpenChange::open_or_begin(
        project, request, "plan", user,
    )?)
}

/// Asks how to continue, if there is a choice.
fn next(planned: &PlannedChange, user: &mut dyn User) -> anyhow::Result<Option<char>> {
    let view = Choice {
        key: 'v',
        label: "(v)iew",
    };
    let implement = Choice {
        key: 'i',
        label: "(i)mplement",
    };
    let go_on = Choice {
        key: 'c',
        label: "(c)ontinue fixing",
    };
    let (question, choices) = match planned.phase {
        ChangePhase::Challenged => ("Ready to be implemented.", vec![implement, view]),
        ChangePhase::Proposed if planned.only_minor_issues => (
            "Only minor issues remain; it can be implemented.",
            vec![implement, view, go_on],
        ),
        ChangePhase::Proposed => (
            "Significant issues remain; read them first.",
            vec![view, go_on, implement],
        ),
        _ => return Ok(None),
    };
    Ok(user
        .choose(question, &choices)?
        .map(|index| choices[index].key))
}

/// An unapproved change is approved first, with a reason.
fn implement_planned(
    app: &App,
    project: &mut Project,
    planned: &PlannedChange,
    request: &ChangeRequest,
    user: &mut dyn User,
) -> anyhow::Result<ExitStatus> {
    if planned.phase == ChangePhase::Proposed {
        let change = request.id.as_str();
        let Some(reason) = user.ask(&Question::Reason { change })? else {
            return Ok(exit::FAILED);
        };
        judge::approve(
            &mut OpenChange::open(project, request, "approve", user)?,
            &reason,
        )?;
    }

    let mut open = OpenChange::open(project, request, "impl", user)?;
    let implemented = implementing::implement_and_review(&mut open)?;
    report_implemented(app, &implemented)
}

fn report_plan(app: &App, planned: &PlannedChange) -> anyhow::Result<()> {
    if app.global.json {
        return app.print_json(planned);
    }

    app.print(format!(
        "{} {}, iteration {}\n",
        planned.change,
        planned.phase.word(),
        planned.iteration
    ))?;
    let count = counted(planned.challenges, "challenge");
    note_verdict(app, planned.verdict, &count, &planned.issues.describe());
    app.note(&format!("Next: {}", planned.next));
    Ok(())
}

/// The last verdict of a call, after `count` of them.
fn note_verdict(app: &App, verdict: Option<ReviewVerdict>, count: &str, issues: &str) {
    if let Some(verdict) = verdict {
        app.note(&format!("{} after {count}: {issues}.", verdict.word()));
    }
}

/// Writes the missing documents.
pub(super) fn propose(args: ProposalArgs, app: &mut App) -> anyhow::Result<ExitStatus> {
    let mut request = args.models.request(&args.id)?;
    request.description = args.description;
    let mut project = args.models.project(app, &request)?;
    let mut user = app.user(&project, false);
    let mut open = OpenChange::open_or_begin(&mut project, &request, "proposal", user.as_mut())?;
    let written = planning::propose(&mut open)?;
    let change = open.change;
    drop(user);
    if !app.global.json {
        app.note(&format!("Wrote {}.", counted(written, "document")));
    }

    report_change(app, &change)
}

pub(super) fn revise(args: ReproposalArgs, app: &mut App) -> anyhow::Result<ExitStatus> {
    let mut request = args.models.request(&args.id)?;
    request.message = args.message;
    let (_, change) = if args.from.is_empty() {
        let mut project = args.models.project(app, &request)?;
        take(app, &mut project, &request, "reproposal", planning::revise)?
    } else {
        let mut project = app.project()?;
        let read = |path: &String| {
            let text = source::read(app, path, "`teddy change reproposal <id>` asks the author")?;
            anyhow::Ok((document(&request.id, path, &text), text))
        };
        let files = args.from.iter().map(read).collect::<anyhow::Result<_>>()?;
        take(app, &mut project, &request, "reproposal", |open| {
            planning::edit(open, files)
        })?
    };
    report_change(app, &change)
}

/// Returns the document that a file contains, by its title or else by its name.
fn document(id: &ChangeId, path: &str, text: &str) -> String {
    let title = text
        .lines()
        .find(|line| !line.trim().is_empty())
        .unwrap_or_default()
        .trim_end();
    let name = Path::new(path)
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    match () {
        () if title == format!("# Change: {id}") => proposal::FILE.to_owned(),
        () if title == format!("# Tasks: {id}") => tasks::FILE.to_owned(),
        () if matches!(name.as_str(), proposal::FILE | tasks::FILE) => name,
        () => format!("{}{name}", spec::DIR),
    }
}

pub(super) fn challenge(args: JudgeArgs, app: &mut App) -> anyhow::Result<ExitStatus> {
    have_judged(&args, app, "challenge", judge::challenge)
}

pub(super) fn review(args: JudgeArgs, app: &mut App) -> anyhow::Result<ExitStatus> {
    have_judged(&args, app, "review", judge::review)
}

fn have_judged(
    args: &JudgeArgs,
    app: &App,
    command: &'static str,
    step: fn(&mut OpenChange<'_>) -> anyhow::Result<Judgement>,
) -> anyhow::Result<ExitStatus> {
    let request = args.models.request(&args.id)?;
    let mut project = args.models.project(app, &request)?;
    let (judgement, judged) = take(app, &mut project, &request, command, step)?;
    let Judgement {
        change,
        phase,
        verdict,
        issues,
        ..
    } = &judgement;
    if app.global.json {
        app.print_json(&judgement)?;
    } else {
        app.print(format!(
            "{change} {}: {} ({})\n",
            phase.word(),
            verdict.word(),
            issues.summary()
        ))?;
        app.note(&format!("Next: {}", judged.next_step()));
    }

    Ok(exit::success_if(*verdict != ReviewVerdict::Rejected))
}

pub(super) fn approve(args: ApproveArgs, app: &mut App) -> anyhow::Result<ExitStatus> {
    let request = ChangeRequest::of(ChangeId::parse(&args.id)?);
    let mut project = project_of(app, &request)?;
    let (_, change) = take(app, &mut project, &request, "approve", |open| {
        judge::approve(open, &args.reason)
    })?;
    report_change(app, &change)
}

fn report_change(app: &App, change: &Change) -> anyhow::Result<ExitStatus> {
    let (id, state) = (&change.id, &change.state);
    if app.global.json {
        app.print_json(&serde_json::json!({ "change": id, "phase": state.phase, "iteration": state.iteration, "commit": change.commit }))?;
    } else {
        app.print(format!(
            "{id} {}, iteration {}\n",
            state.phase.word(),
            state.iteration
        ))?;
        app.note(&format!("Next: {}", change.next_step()));
    }

    Ok(exit::SUCCESS)
}

/// Implements a change, then reviews and fixes it.
pub(super) fn implement_and_review(
    args: ImplementArgs,
    app: &mut App,
) -> anyhow::Result<ExitStatus> {
    let implemented = run_tasks(args, app, "impl", implementing::implement_and_review)?;
    report_implemented(app, &implemented)
}

/// Implements a change without a review.
pub(super) fn implement(args: ImplementArgs, app: &mut App) -> anyhow::Result<ExitStatus> {
    let implemented = run_tasks(args, app, "implement", implementing::implement)?;
    let code = report_implemented(app, &implemented)?;
    Ok(exit::success_or(implemented.stopped.is_none(), code))
}

fn run_tasks(
    args: ImplementArgs,
    app: &App,
    command: &'static str,
    workflow: fn(&mut OpenChange<'_>) -> anyhow::Result<Implemented>,
) -> anyhow::Result<Implemented> {
    let mut request = args.models.request(&args.id)?;
    let mut project = args.models.project(app, &request)?;
    let mut user = app.user(&project, args.yes);
    request.message = args.message.map(source::message).transpose()?;
    workflow(&mut OpenChange::open(
        &mut project,
        &request,
        command,
        user.as_mut(),
    )?)
}

/// Prints the result and returns the exit code.
fn report_implemented(app: &App, implemented: &Implemented) -> anyhow::Result<ExitStatus> {
    let Implemented {
        change,
        phase,
        done,
        tasks,
        stopped,
        ..
    } = implemented;
    let reason = stopped.as_ref().map(|stop| describe_stop(change, stop));
    let work = stopped.as_ref().and_then(ImplementStop::work);
    if app.global.json {
        let mut value = serde_json::to_value(implemented)?;
        value["stopped"] = serde_json::json!(reason);
        app.print_json(&value)?;
    } else {
        app.print(format!(
            "{change} {}, {done} of {} done\n",
            phase.word(),
            counted(*tasks, "task")
        ))?;
        let count = counted(implemented.reviews, "review");
        let issues = implemented.issues.summary();
        note_verdict(app, implemented.verdict, &count, &issues);
        if let Some(reason) = reason {
            app.warn(&format!("stopped: {reason}"));
        }

        app.note(&format!("Next: {}", implemented.next));
        if let Some(question) = work.and_then(WorkStop::question) {
            let hint = format!("`teddy change impl {change} -m '<answer>'` answers and continues");
            report_question(app, question, &hint)?;
        }
    }

    Ok(match (phase, work) {
        (ChangePhase::Complete, _) => exit::SUCCESS,
        (_, Some(stop)) => stop_code(stop),
        (_, None) => exit::FAILED,
    })
}

fn stop_code(stop: &WorkStop) -> ExitStatus {
    match stop {
        WorkStop::Turn(recorded) if code(recorded) != exit::SUCCESS => code(recorded),
        _ if interrupt::requested() => exit::INTERRUPTED,
        WorkStop::Question(_) => exit::WAITS,
        WorkStop::NotBrought(_) => exit::OVERLAP,
        _ => exit::FAILED,
    }
}

/// Explains why an implementation stopped.
fn describe_stop(change: &ChangeId, stop: &ImplementStop) -> String {
    match stop {
        ImplementStop::Work { about, why } => {
            format!("{about}: {}", describe_work_stop(change, why))
        }
        ImplementStop::TooManyRounds(count) => {
            format!("the review still finds problems after {count} rounds")
        }
        ImplementStop::ReviewRejects => {
            "the review rejects the implementation as a whole".to_owned()
        }
    }
}

/// Explains why a single piece of work stopped.
fn describe_work_stop(change: &ChangeId, stop: &WorkStop) -> String {
    match stop {
        WorkStop::NothingPlanned => "nothing was planned".to_owned(),
        WorkStop::Question(_) => asks(change),
        WorkStop::Undecided => "nothing was run; the plan is waiting".to_owned(),
        WorkStop::Unfinished(turns) => format!("{} did not finish it", counted(*turns, "turn")),
        WorkStop::Turn(recorded) => describe_turn_stop(change, recorded),
        WorkStop::NotBrought(unapplied) => not_in_files(change, &unapplied.turn.to_string()),
    }
}

/// Explains why no further turn follows.
fn describe_turn_stop(change: &ChangeId, recorded: &RecordedTurn) -> String {
    match &recorded.ending {
        TurnEnding::Interrupted { cause, .. } => format!("interrupted: {cause}"),
        _ if !recorded.is_synced() => not_in_files(change, "@"),
        TurnEnding::Rejected { .. } => "the plan was rejected".to_owned(),
        TurnEnding::Declined { .. } => "you declined the plan".to_owned(),
        TurnEnding::Ran { .. } => asks(change),
    }
}

fn not_in_files(change: &ChangeId, turn: &str) -> String {
    format!(
        "the result is not in all of your files; `teddy -s {} restore {turn} --theirs` takes it, `--ours` keeps your side",
        change.session()
    )
}

fn asks(change: &ChangeId) -> String {
    format!("the model asks you something; `teddy change impl {change} -m '<answer>'` answers")
}

pub(super) fn archive(args: ArchiveArgs, app: &mut App) -> anyhow::Result<ExitStatus> {
    let request = ChangeRequest::of(ChangeId::parse(&args.id)?);
    let on_overlap = match (args.ours, args.theirs, args.markers) {
        (true, ..) => OnOverlap::Ours,
        (_, true, _) => OnOverlap::Theirs,
        (.., true) => OnOverlap::Markers,
        _ => OnOverlap::Stop,
    };
    let mut project = project_of(app, &request)?;
    let (archived, _) = take(app, &mut project, &request, "archive", |open| {
        archiving::archive(open, on_overlap)
    })?;

    let problem = match archived.turn {
        Some(_) => "was not written: something in your files is in the way",
        None if args.markers => "cannot have conflict markers",
        None => "was also changed in the project's specs in the same place",
    };
    if app.global.json {
        app.print_json(&archived)?;
    } else if archived.conflicts.is_empty() {
        app.print(format!("{} {}\n", request.id, archived.phase.word()))?;
        archived.done.iter().for_each(|line| app.note(line));
        for path in &archived.marked {
            app.warn(&format!("`{path}` has conflict markers now; resolve them"));
        }
    } else {
        for path in &archived.conflicts {
            app.warn(&format!("`{path}` {problem}"));
        }
        app.note(&match archived.turn {
            Some(turn) => format!("Turn {turn} has the specs, and the change is not archived yet. Move the obstacle, then archive again."),
            None if args.markers => "Nothing was written. `--ours` or `--theirs` resolves the conflict.".to_owned(),
            None => "Nothing was written. `--ours`, `--theirs` or `--markers` resolves the conflict.".to_owned(),
        });
    }

    Ok(exit::success_or(
        archived.conflicts.is_empty(),
        exit::OVERLAP,
    ))
}
