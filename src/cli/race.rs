//! `teddy race`: asks several models for a plan and compares their plans.

pub(super) mod lane;

use super::app::App;
use super::begin::begin_session_or_hand_to;
use super::exit::{self, ExitStatus};
use super::failure::{InvalidArgument, Unfinished};
use super::prompt::message;
use super::request::RequestFlags;
use super::{complete, gc, number, run_nested};
use crate::host::env;
use crate::project::Project;
use crate::session::meta::Status;
use crate::session::name::SessionName;
use crate::text::damage::FileDamage;
use crate::text::hint::error_with_hint;
use crate::text::sanitize::sanitize_line;
use crate::text::{counted, grouped};
use crate::ui::comparison::aligned;
use crate::ui::notice::stopped_early;
use crate::ui::race::RaceTable;
use crate::workflow::gc::GcOptions;
use crate::workflow::model::choose;
use crate::workflow::race::combine::combine;
use crate::workflow::race::{FinishedLane, FinishedRace, LaneProgram, RaceOptions, race};
use crate::workflow::user::{Choice, User};

/// Placeholder for unknown values.
const UNKNOWN: &str = "-";
/// Keys that select a lane.
const KEYS: &[u8] = b"123456789";

/// Ask several models, compare their plans, and review one
///
/// Each model works from the same snapshot of your files, in its own session and worktree;
/// models that edit files themselves and models that write plans can take part together. Nothing
/// reaches your files before you have reviewed one of the plans. The others wait as drafts until
/// you drop them.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  teddy race 'add a --version flag' --with claude,codex\n  teddy race 'fix the parser' src/ --with sonnet,gpt --check 'cargo test'\n  teddy race 'speed it up' --with claude,claude --judge gpt\n  teddy race 'fix both bugs' --with sonnet,gpt --pick 1+2\n\nThe sessions are named after the one in use and the models. For any of them:\n  teddy --session <session> show draft    the plan\n  teddy --session <session> execute        review and run it\n  teddy gc <session>                drop it\n\nExit codes: 0 a plan waits or was executed, 1 no model made one, 130 stopped"
)]
pub(super) struct Args {
    /// What you want, then files to show the models
    #[arg(value_name = "TEXT|FILE", value_hint = clap::ValueHint::AnyPath)]
    words: Vec<String>,
    #[command(flatten)]
    request: RequestFlags,
    /// The models, separated by commas; one may be named twice
    #[arg(long, value_name = "MODEL,...", required = true, value_delimiter = ',', add = complete::with(complete::models))]
    with: Vec<String>,
    /// Run this line of the shell on what each of them made
    #[arg(long, value_name = "COMMAND")]
    check: Option<String>,
    /// Let this model compare the plans; it decides nothing
    #[arg(long, value_name = "MODEL", add = complete::with(complete::models))]
    judge: Option<String>,
    /// Take this plan without asking, by its position in `--with`; `1+2` merges two
    #[arg(long, value_name = "N|N+M", value_parser = picked)]
    pick: Option<PickedLanes>,
    /// Also show the models this many turns before the previous one
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = number::depth)]
    context_depth: u64,
    /// Approve what the models ask for while they work
    #[arg(short, long)]
    yes: bool,
}

/// One lane, or two to merge.
type PickedLanes = (usize, Option<usize>);

fn picked(argument: &str) -> Result<PickedLanes, String> {
    let number = |text: &str| text.parse::<usize>().ok()?.checked_sub(1);
    let lanes = match argument.split_once('+') {
        None => number(argument).map(|one| (one, None)),
        Some((one, other)) => number(one)
            .zip(number(other))
            .filter(|(one, other)| one != other)
            .map(|(one, other)| (one, Some(other))),
    };
    lanes.ok_or_else(|| "write it as `2`, or as `1+2` for two of them".to_owned())
}

pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<ExitStatus> {
    let mut project = app.project()?;
    let request = args.request.read(app, &project, args.words)?;
    let Some(message) = request.message.clone() else {
        let hint = "`teddy race '<message>' --with <models>` gives it";
        return Err(InvalidArgument::error("a race needs a message", hint));
    };
    if args.with.iter().any(|model| model.trim().is_empty()) {
        let hint = "`--with sonnet,gpt` names models, separated by commas";
        return Err(InvalidArgument::error("`--with` has an empty name", hint));
    }
    if let Some(lanes) = args.pick {
        check_picked(lanes, args.with.len())?;
    }
    if project.session().is_err() {
        let mut models = args.with.iter().chain(&args.judge);
        models.try_for_each(|model| choose::check(&project, model))?;
    }
    begin_session_or_hand_to(app, &mut project, &message, None)?;
    request.show_files(app, &project)?;
    let options = RaceOptions {
        message,
        models: args.with,
        check: args.check,
        judge: args.judge,
        depth: args.context_depth,
    };
    let program = program(app)?;
    let mut table = RaceTable::new(std::io::stderr(), app.output_style());
    let mut user = app.helped_user(&project, args.yes, message::rules(app));
    let finished = race(&project, &options, &program, user.as_mut(), &mut table);
    table.clear();
    drop(user);

    let mut finished = finished?;
    // With the lanes, the project's session is not the only one any more.
    project.work_on(&finished.session);
    let Some(lanes) = args.pick else {
        show(app, &finished)?;
        return choose(app, project, &options, &finished);
    };
    let name = pick(app, &project, &options, &finished, lanes);
    finished.picked = name.as_ref().ok().map(ToString::to_string);
    if app.global.json
        && let Err(error) = name
    {
        let partial = serde_json::to_value(&finished)?;
        return Err(Unfinished { partial, error }.into());
    }
    show(app, &finished)?;
    let name = name?;
    project.use_session(&name)?;
    if app.is_attended() {
        return review(app, project, &finished, &name);
    }
    app.note(&format!(
        "Session {name} is in use now. Next: `teddy execute`"
    ));
    Ok(exit::SUCCESS)
}

fn check_picked(lanes: PickedLanes, models: usize) -> anyhow::Result<()> {
    let (one, other) = lanes;
    let highest = one.max(other.unwrap_or(0)) + 1;
    if highest <= models {
        return Ok(());
    }
    let message = format!(
        "`--pick {highest}` is out of range: `--with` names {}",
        counted(models, "model")
    );
    let hint = "the models are counted from 1, as `--with` names them";
    Err(InvalidArgument::error(message, hint))
}

/// Returns the program that runs a lane, with the options of this call.
fn program(app: &App) -> anyhow::Result<LaneProgram> {
    let mut arguments = Vec::new();
    if let Some(dir) = &app.global.directory {
        arguments.extend(["-C".into(), dir.clone().into_os_string()]);
    }
    for setting in &app.global.setting {
        arguments.extend(["-c".into(), setting.into()]);
    }
    Ok(LaneProgram {
        program: env::current_exe()?.into(),
        arguments,
    })
}

/// Prints the result of each lane, and the judge's opinion.
fn show(app: &App, finished: &FinishedRace) -> anyhow::Result<()> {
    if app.global.json {
        return app.print_json(finished);
    }

    app.print(table(&finished.lanes))?;
    for lane in &finished.lanes {
        if let Some(error) = &lane.error {
            app.warn(&format!("{}: {error}", lane.model));
        }
        if let Some(reason) = lane.stopped() {
            app.warn(&format!("{}: {}", lane.model, stopped_early(reason)));
        }
        let damage = lane.plan.iter().flat_map(|plan| &plan.damage);
        for FileDamage { path, text, .. } in damage {
            let path = sanitize_line(path);
            app.warn(&format!("{}: {path}: {text}", lane.model));
        }
        let plan = lane.plan.as_ref().filter(|plan| plan.mistakes > 0);
        if plan.is_some() {
            app.warn(&format!(
                "{}: its plan has mistakes; `teddy --session {} execute` lets the model correct it",
                lane.model, lane.session
            ));
        }
    }

    if let Some(verdict) = &finished.verdict {
        app.print(format!(
            "\nWhat {} says of them:\n\n",
            sanitize_line(&verdict.model)
        ))?;
        app.print_message(&verdict.text)?;
    }
    if let Some(error) = &finished.judge_error {
        app.warn(&format!("the judge gave no verdict: {error}"));
    }
    if let Some(why) = finished.stopped {
        app.warn(why);
    }
    Ok(())
}

/// Lets the user choose a lane at a terminal. Returns the exit code of what follows.
fn choose(
    app: &App,
    mut project: Project,
    options: &RaceOptions,
    finished: &FinishedRace,
) -> anyhow::Result<ExitStatus> {
    let ready_lanes: Vec<&FinishedLane> = finished
        .lanes
        .iter()
        .filter(|lane| lane.is_ready())
        .collect();
    if ready_lanes.is_empty() {
        if app.global.json {
            return Ok(exit::FAILED);
        }
        return Err(error_with_hint(
            "no model made a plan that can be executed",
            "what each of them said is in the draft of its session: `teddy --session <session> show draft`",
        ));
    }

    let labels = labels(&finished.lanes);
    let choices = choices(&labels);
    while app.is_attended() {
        let mut user = app.user(&project, false);
        let chosen = user.choose("Review the plan of which model?", &choices)?;
        let name = match chosen.filter(|&at| at + 1 < choices.len()) {
            None => break,
            Some(at) if at < labels.len() => ready_lanes[at].session.clone(),
            Some(_) => {
                let Some((one, other)) = two_of(user.as_mut(), &choices[..labels.len()])? else {
                    continue;
                };
                let (one, other) = (ready_lanes[one], ready_lanes[other]);
                match combine(&project, options, one, other, user.as_mut()) {
                    Ok(name) => name,
                    Err(error) => {
                        drop(user);
                        app.fail(error);
                        continue;
                    }
                }
            }
        };
        drop(user);
        project.use_session(&name)?;
        return review(app, project, finished, &name);
    }
    app.note(&format!(
        "Nothing was changed. `teddy --session {} execute` reviews a plan; `teddy gc <session>` drops one.",
        ready_lanes[0].session
    ));
    Ok(exit::SUCCESS)
}

/// Returns the lanes, then two of them together if there are several, and last none of them.
fn choices(labels: &[(char, String)]) -> Vec<Choice<'_>> {
    let mut choices: Vec<Choice<'_>> = labels
        .iter()
        .map(|(key, label)| Choice { key: *key, label })
        .collect();
    if choices.len() > 1 {
        choices.push(Choice {
            key: 't',
            label: "(t)wo together",
        });
    }
    choices.push(Choice {
        key: 'l',
        label: "(l)eave them",
    });
    choices
}

/// Returns key and label of each lane that has a plan.
fn labels(lanes: &[FinishedLane]) -> Vec<(char, String)> {
    // The numbers of `--pick`, so a lane without a plan leaves a gap.
    let numbered = lanes
        .iter()
        .zip(KEYS)
        .map(|(lane, key)| (lane, char::from(*key)));
    let ready = numbered.filter(|(lane, _)| lane.is_ready());
    ready
        .map(|(lane, key)| {
            let note = lane.stopped().map_or("", |_| ", stopped early");
            (key, format!("({key}) {}{note}", lane.model))
        })
        .collect()
}

/// Asks which two lanes to combine, if there are more. `None` if the user goes back.
fn two_of(user: &mut dyn User, lanes: &[Choice<'_>]) -> anyhow::Result<Option<(usize, usize)>> {
    if lanes.len() == 2 {
        return Ok(Some((0, 1)));
    }
    let Some(one) = user.choose("The first of the two?", lanes)? else {
        return Ok(None);
    };
    let other = user.choose("And the second?", lanes)?;
    Ok(other
        .filter(|other| *other != one)
        .map(|other| (one, other)))
}

/// Returns the session of the plan that was named in advance.
fn pick(
    app: &App,
    project: &Project,
    options: &RaceOptions,
    finished: &FinishedRace,
    lanes: PickedLanes,
) -> anyhow::Result<SessionName> {
    let ready = |at: usize| {
        let lane = &finished.lanes[at];
        match lane.is_ready() {
            true => Ok(lane),
            false => Err(error_with_hint(
                format!("`{}` made no plan that can be executed", lane.model),
                format!(
                    "`teddy --session {} show draft` shows its answer",
                    lane.session
                ),
            )),
        }
    };
    let one = ready(lanes.0)?;
    let Some(other) = lanes.1 else {
        return Ok(one.session.clone());
    };
    let mut user = app.user(project, false);
    combine(project, options, one, ready(other)?, user.as_mut())
}

/// Reviews the plan of a session, and offers to drop the other lanes if it was executed.
fn review(
    app: &App,
    project: Project,
    finished: &FinishedRace,
    name: &SessionName,
) -> anyhow::Result<ExitStatus> {
    app.note(&format!("Session {name} is in use now."));
    drop(project);
    // `-s` of this call names the session that the race started from.
    let args = ["--session", name.as_str(), "execute"];
    let code = run_nested(app, args.map(str::to_owned).to_vec())?;
    drop_others(app, finished, name)?;
    Ok(code)
}

/// Offers to delete the other lanes.
fn drop_others(app: &App, finished: &FinishedRace, chosen: &SessionName) -> anyhow::Result<()> {
    let project = app.open()?;
    let tip = project.store().tip(chosen)?;
    let is_executed = tip.commit != finished.from && tip.meta.status == Status::Executed;
    let others = unused_lanes(&project, finished, chosen);
    if !is_executed || others.is_empty() {
        return Ok(());
    }

    let mut user = app.user(&project, false);
    let names: Vec<String> = others.iter().map(ToString::to_string).collect();
    let question = format!("Drop the plans of the others ({})?", names.join(", "));
    if user.confirm(&question, "-y")? {
        let options = GcOptions {
            fetched: Vec::new(),
            // Another process can have run one while the question was open.
            sessions: unused_lanes(&project, finished, chosen),
            idle_days: u32::MAX,
            undo_days: u32::MAX,
            no_bundle: false,
        };
        let dropped = crate::workflow::gc::gc(&project, &options, user.as_mut())?;
        drop(user);
        gc::report(app, &dropped, false)?;
    }
    Ok(())
}

/// Returns the lanes without a turn of their own, except the chosen one.
fn unused_lanes(
    project: &Project,
    finished: &FinishedRace,
    chosen: &SessionName,
) -> Vec<SessionName> {
    let is_unused = |name: &&SessionName| {
        let tip = project.store().tip_id(name);
        *name != chosen && tip.is_ok_and(|tip| tip == finished.from)
    };
    let names = finished.lanes.iter().map(|lane| &lane.session);
    names.filter(is_unused).cloned().collect()
}

fn table(lanes: &[FinishedLane]) -> String {
    let names = [
        "model", "files", "lines", "tokens", "cost", "time", "check", "session",
    ];
    let mut rows = vec![names.map(str::to_owned).to_vec()];
    rows.extend(lanes.iter().map(row));
    aligned(&rows)
}

fn row(lane: &FinishedLane) -> Vec<String> {
    let plan = lane.plan.as_ref();
    let unknown = || UNKNOWN.to_owned();
    let or_unknown = |text: Option<String>| text.unwrap_or_else(unknown);
    let lines = plan.and_then(|plan| Some(format!("+{} -{}", plan.added?, plan.removed?)));
    let tokens = plan.and_then(|plan| Some(plan.tokens_in? + plan.tokens_out?));
    let cost = plan.and_then(|plan| plan.cost);
    let check = plan.and_then(|plan| plan.check.as_ref());
    let check = check.map(|check| match check.exit_code {
        Some(0) => "passed".to_owned(),
        Some(code) if check.has_not_run() => format!("cannot test ({code})"),
        Some(code) => format!("exit {code}"),
        None => "not run".to_owned(),
    });
    vec![
        sanitize_line(&lane.model).into_owned(),
        or_unknown(plan.map(|plan| plan.files.to_string())),
        or_unknown(lines),
        or_unknown(tokens.map(grouped)),
        or_unknown(cost.map(|cost| format!("${cost:.4}"))),
        format!("{:.1} s", lane.seconds),
        or_unknown(check),
        lane.session.to_string(),
    ]
}
