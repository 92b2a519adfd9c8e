//! The judge of a race: a model that compares the plans. It does not learn which model wrote which
//! plan, and decides nothing.

use std::cell::RefCell;

use serde::Serialize;

use super::{FinishedLane, FinishedRace};
use crate::model::ModelRequest;
use crate::project::Project;
use crate::session::artifact;
use crate::session::name::SessionName;
use crate::session::turn::Turn;
use crate::text::beginning;
use crate::text::fence::fenced;
use crate::text::sanitize::sanitize_line;
use crate::text::secret::redact;
use crate::workflow::execute::ForeignPlan;
use crate::workflow::model::budget::{self, CostBudget, MeteredModel, TokenEstimate};
use crate::workflow::model::choose::PricedModel;
use crate::workflow::model::request::ask_one;
use crate::workflow::open_session::OpenSession;
use crate::workflow::user::{Event, Notice, User};

const JUDGING: &str = include_str!("../../../prompts/judge.xml");
/// In bytes. A longer plan is truncated.
const MAX_PLAN: usize = 200 << 10;

#[derive(Debug, Clone, Serialize)]
pub struct Verdict {
    pub model: String,
    /// Markdown. Lanes are called `A`, `B`, ... in order.
    pub text: String,
    /// In dollars; `None` if unknown.
    pub cost: Option<f64>,
}

/// Stores the comparison with each plan. `None` if fewer than two plans can be compared.
pub(super) fn ask(
    project: &Project,
    tip: &Turn,
    message: &str,
    judge: PricedModel,
    race: &FinishedRace,
    user: &mut dyn User,
) -> anyhow::Result<Option<Verdict>> {
    let lanes: Vec<&FinishedLane> = race.lanes.iter().filter(|lane| lane.is_ready()).collect();
    if lanes.len() < 2 {
        return Ok(None);
    }

    let mut input = format!("# Request\n\n{}\n", fenced(message, "", 4));
    for lane in &lanes {
        input.push_str(&render_lane(project, lane, letter(race, lane))?);
    }
    let request = ModelRequest {
        system: JUDGING.to_owned(),
        input,
        message: "Compare the plans.".to_owned(),
        max_tokens: None,
    };

    let draft = project.store().draft(tip)?;
    let session_cost = budget::session_spending(project, tip, &draft)?;
    let total_cost = session_cost + race.lanes.iter().filter_map(|lane| lane.spent).sum::<f64>();
    let model = MeteredModel {
        chosen: judge,
        env: None,
        budget: CostBudget::new(total_cost, project.settings.limits.cost),
        weight: TokenEstimate::default(),
    };
    let answer = ask_one(&model, &request, &RefCell::new(&mut *user))?;
    let charged = model.charge(&answer);
    let mut remarks = Vec::new();
    if let Err(error) = charge(project, &tip.session, charged, user) {
        remarks.push(format!("what the judge cost is not counted: {error:#}"));
    }

    let cost = answer.cost.or((charged > 0.0).then_some(charged));
    let verdict = Verdict {
        model: model.chosen.name.clone(),
        text: redact(&answer.into_complete()?).into_owned(),
        cost,
    };
    // Other processes can have changed the sessions while the judge worked. The verdict was paid for
    // and is shown in any case.
    for lane in lanes {
        if let Err(error) = keep(project, race, lane, &verdict) {
            let session = &lane.session;
            remarks.push(format!(
                "the comparison is not kept in {session}: {error:#}"
            ));
        }
    }
    for remark in remarks {
        user.report(Event::Notice(Notice::ModelRemark(remark)));
    }
    Ok(Some(verdict))
}

/// Adds dollars to the turn in progress. It can be another one than before the judge was asked.
fn charge(
    project: &Project,
    name: &SessionName,
    dollars: f64,
    user: &mut dyn User,
) -> anyhow::Result<()> {
    if dollars <= 0.0 {
        return Ok(());
    }
    let mut session = OpenSession::open(project, name, "race", user)?;
    let draft = &session.draft;
    // A saved draft counts as the user's own, and its plan could run.
    anyhow::ensure!(
        !draft.is_planned() || project.journal().owns_draft(&session.tip.session, draft),
        ForeignPlan(name.clone())
    );
    let spent = &mut session.draft.meta.spent;
    *spent = Some(spent.unwrap_or_default() + dollars);
    session.save_draft()
}

fn letter(race: &FinishedRace, lane: &FinishedLane) -> char {
    let position = race
        .lanes
        .iter()
        .position(|other| other.session == lane.session);
    char::from(b'A' + u8::try_from(position.unwrap_or_default() % 26).unwrap_or_default())
}

fn render_lane(project: &Project, lane: &FinishedLane, letter: char) -> anyhow::Result<String> {
    let (_, draft) = project.in_progress(&lane.session)?;
    let text = draft.artifacts.text_or_empty(artifact::PLAN);
    let mut rendered = format!(
        "\n# Plan {letter}\n\n{}\n",
        fenced(&beginning(&text, MAX_PLAN), "markdown", 4)
    );

    if let Some(reason) = lane.stopped() {
        rendered.push_str(&format!(
            "\nIts author stopped early: {}.\n",
            sanitize_line(reason)
        ));
    }
    if let Some(check) = lane.plan.as_ref().and_then(|plan| plan.check.as_ref()) {
        let code = check.exit_code.map_or_else(
            || "it could not be run".to_owned(),
            |code| match check.has_not_run() {
                true => format!("exit code {code}, so it could not test them"),
                false => format!("exit code {code}"),
            },
        );
        rendered.push_str(&format!(
            "\nThe check `{}` on these files: {code}.\n\n{}\n",
            check.command,
            fenced(&check.tail.join("\n"), "", 4)
        ));
    }
    Ok(rendered)
}

fn keep(
    project: &Project,
    race: &FinishedRace,
    lane: &FinishedLane,
    verdict: &Verdict,
) -> anyhow::Result<()> {
    let (tip, mut draft) = project.in_progress(&lane.session)?;
    let mut text = format!("# Comparison by {}\n\n", verdict.model);
    for other in &race.lanes {
        text.push_str(&format!(
            "- {}: {}, session `{}`\n",
            letter(race, other),
            other.model,
            other.session
        ));
    }
    text.push_str(&format!("\n{}\n", verdict.text.trim_end()));
    draft.artifacts.insert(artifact::COMPARISON, text);
    project.store().save_draft(&tip, &mut draft)
}
