//! `teddy doctor`: finds problems and explains how to fix them.

use serde::Serialize;

use super::app::App;
use super::exit::{self, ExitStatus};
use crate::text::counted;
use crate::text::sanitize::sanitize_line;
use crate::ui::style::{StyledLine, Tone};
use crate::workflow::doctor::{
    self, HealthCheck, HealthState, Patient, RecoveryResult, RepairOutcome,
};

/// Find problems and risks, and how to fix them
///
/// Checks git, the sandbox, disk space, settings and keys in them, the model, settings of git that
/// would send sessions by accident, worktrees, locks, hooks of agents, and the newest turns of the
/// sessions. Sends nothing to a model: only tests whether its server answers, without your key.
/// Works outside of a repository, too. Exits with 1 if there is a problem.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  teddy doctor\n  teddy doctor -v             what is fine as well\n  teddy doctor --fix          finish what a crash interrupted, fix what is harmless\n  teddy doctor --json         for programs"
)]
pub(super) struct Args {
    /// Finish what a crash interrupted, check every object, and fix what is harmless
    ///
    /// Nothing of yours is deleted. Every command that changes something recovers by itself, too,
    /// but checks only the newest turns. Running it twice is harmless.
    #[arg(long)]
    fix: bool,
    /// First restore the valid part of what an earlier recovery quarantined as damaged
    #[arg(long, requires = "fix")]
    put_back: bool,
}

/// Width of the names of states and groups.
const WIDTH: usize = 10;

/// JSON output.
#[derive(Serialize)]
struct DoctorReport<'a> {
    problems: usize,
    warnings: usize,
    notes: usize,
    fixed: Vec<FixReport<'a>>,
    checks: &'a [HealthCheck],
    /// `None` without `--fix`, or if there is nothing to recover in: no repository, or a bare one.
    recovery: Option<&'a RecoveryResult>,
}

/// An attempt of `--fix`.
#[derive(Serialize)]
struct FixReport<'a> {
    group: &'static str,
    name: &'static str,
    /// What was done; `None` if it failed.
    done: Option<&'a str>,
    error: Option<String>,
}

pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<ExitStatus> {
    let admit = |app: &App| Patient::admit(&app.dir()?, app.user_dirs()?, app.project_options()?);
    let mut patient = admit(app)?;
    let mut recovery = None;
    if args.fix {
        // If recovery cannot read the repository, nothing else is changed in it either.
        recovery = recover(app, &patient, args.put_back)?;
        patient = admit(app)?;
    }
    let mut checks = patient.examine(recovery.as_ref());
    let mut repaired = Vec::new();
    if args.fix {
        repaired = patient.repair(&checks);
    }
    if !repaired.is_empty() {
        checks = admit(app)?.examine(recovery.as_ref());
    }

    if app.global.json {
        app.print_json(&report(&checks, &repaired, recovery.as_ref()))?;
    } else {
        let mut lines: Vec<StyledLine> = repaired.iter().map(repair_line).collect();
        lines.extend(group_lines(&checks, app.global.verbose));
        app.print_lines(lines)?;
        app.note(&summary(&checks, args.fix));
    }

    let is_ill = checks
        .iter()
        .any(|check| check.state == HealthState::Problem);
    Ok(exit::success_if(!is_ill))
}

/// Recovers and reports what was done; `None` if there is nothing to recover in.
fn recover(
    app: &App,
    patient: &Patient,
    puts_back: bool,
) -> anyhow::Result<Option<RecoveryResult>> {
    let Some(project) = patient.checkout() else {
        return Ok(None);
    };
    let mut user = app.user(project, false);
    crate::host::shell::end_orphans();
    let recovery = doctor::recover(project, puts_back, user.as_mut())?;

    for result in &recovery.put_back {
        let name = sanitize_line(&result.item.name);
        match &result.refused {
            None => app.note(&format!("Put back `{name}`.")),
            Some(why) => app.warn(&format!(
                "`{name}` stays in quarantine: {}",
                sanitize_line(why)
            )),
        }
    }
    for lock in &recovery.foreign_locks {
        let (path, seconds) = (lock.path.display(), lock.seconds);
        app.warn(&format!(
            "`{path}` is a lock of git's own, {seconds} s old; if no git is running, remove it"
        ));
    }
    if !recovery.recovered && recovery.put_back.is_empty() {
        app.note("There is nothing to recover.");
    }
    Ok(Some(recovery))
}

fn report<'a>(
    checks: &'a [HealthCheck],
    repaired: &'a [RepairOutcome],
    recovery: Option<&'a RecoveryResult>,
) -> DoctorReport<'a> {
    let fixed = repaired.iter().map(|one| FixReport {
        group: one.check.group,
        name: one.check.name,
        done: one.result.as_deref().ok(),
        error: one.result.as_ref().err().map(|error| format!("{error:#}")),
    });
    DoctorReport {
        problems: count(checks, HealthState::Problem),
        warnings: count(checks, HealthState::Warning),
        notes: count(checks, HealthState::Note),
        fixed: fixed.collect(),
        checks,
        recovery,
    }
}

fn count(checks: &[HealthCheck], state: HealthState) -> usize {
    checks.iter().filter(|check| check.state == state).count()
}

fn repair_line(repaired: &RepairOutcome) -> StyledLine {
    match &repaired.result {
        Ok(action) => StyledLine::of(Tone::Added, &padded("fixed")).with(Tone::Plain, action),
        Err(error) => StyledLine::of(Tone::Removed, &padded("not fixed"))
            .with(Tone::Plain, &format!("{error:#}")),
    }
}

/// Returns the groups as lines: one line if all is well, otherwise the failed checks.
fn group_lines(checks: &[HealthCheck], is_verbose: bool) -> Vec<StyledLine> {
    let mut lines = Vec::new();
    for group in checks.chunk_by(|a, b| a.group == b.group) {
        let is_well = group.iter().all(|check| check.state == HealthState::Ok);
        let (name, fine) = (group[0].group, fine(group));
        let head = StyledLine::of(Tone::Strong, &padded(name));
        lines.push(match is_well {
            true => head.with(Tone::Added, "ok").with(Tone::Faint, &fine),
            false => head.with(Tone::Plain, &tally(group)),
        });

        let reported = group
            .iter()
            .filter(|check| is_verbose || check.state != HealthState::Ok);
        lines.extend(reported.flat_map(check_lines));
    }
    lines
}

fn padded(name: &str) -> String {
    format!("{name:WIDTH$}  ")
}

/// Returns the details of a group without problems.
fn fine(group: &[HealthCheck]) -> String {
    const DETAILED: [&str; 4] = ["git", "sandbox", "model", "turns"];
    let detailed = group.iter().filter(|check| DETAILED.contains(&check.name));
    detailed
        .map(|check| format!("  {}", check.reason))
        .collect()
}

fn tally(group: &[HealthCheck]) -> String {
    let states = [
        (HealthState::Problem, "problem"),
        (HealthState::Warning, "warning"),
        (HealthState::Note, "note"),
    ];
    let counts = states.map(|(state, noun)| (count(group, state), noun));
    let nonzero = counts.into_iter().filter(|(count, _)| *count > 0);
    nonzero
        .map(|(count, noun)| counted(count, noun))
        .collect::<Vec<_>>()
        .join(", ")
}

fn check_lines(check: &HealthCheck) -> Vec<StyledLine> {
    let (word, tone) = match check.state {
        HealthState::Ok => ("ok", Tone::Added),
        HealthState::Note => ("note", Tone::Accent),
        HealthState::Warning => ("warning", Tone::Warning),
        HealthState::Problem => ("problem", Tone::Removed),
    };
    let head = StyledLine::of(Tone::Plain, "  ").with(tone, &format!("{word:WIDTH$}"));
    let mut lines = vec![head.with(Tone::Plain, &check.reason)];
    if let Some(remedy) = &check.remedy {
        let line = StyledLine::of(Tone::Plain, "").blanks(WIDTH + 2);
        lines.push(line.with(Tone::Faint, "fix: ").with(Tone::Strong, remedy));
    }
    lines
}

fn summary(checks: &[HealthCheck], is_fixing: bool) -> String {
    let tally = tally(checks);
    if tally.is_empty() {
        return "Everything is fine.".to_owned();
    }
    let fixable = checks.iter().filter(|check| check.fixable).count();
    match fixable {
        0 => format!("{tally}."),
        _ if is_fixing => format!("{tally}; {fixable} could not be fixed."),
        1 => format!("{tally}; `teddy doctor --fix` fixes one of them."),
        _ => format!("{tally}; `teddy doctor --fix` fixes {fixable} of them."),
    }
}
