//! Calls of the workflows of changes, in the test's own process.

use serde_json::{Value, json};
use teddy::change::id::ChangeId;
use teddy::change::phase::ChangePhase;
use teddy::change::review::ReviewVerdict;
use teddy::project::Project;
use teddy::workflow::change::implement::ImplementStop;
use teddy::workflow::change::work::WorkStop;
use teddy::workflow::change::{self, ChangeRequest, OpenChange};
use teddy::workflow::restore::OnOverlap;
use teddy::workflow::user::User;

use super::in_process::{Reply, Workflow};

/// Calls of the workflows of changes. What they return is in the reply, as `--json` has it.
impl Workflow<'_> {
    /// Makes a call whose result is shown as JSON.
    fn change<T: serde::Serialize>(
        &self,
        id: &str,
        act: impl FnOnce(&mut Project, &ChangeId, &mut dyn User) -> anyhow::Result<(T, bool)>,
    ) -> Reply {
        self.call(|project, user, out| {
            let (value, is_done) = act(project, &ChangeId::parse(id)?, user)?;
            writeln!(out, "{}", serde_json::to_string_pretty(&value)?)?;
            Ok(is_done)
        })
    }

    /// Takes a step of a change that exists.
    fn step<T: serde::Serialize>(
        &self,
        id: &str,
        command: &'static str,
        step: impl FnOnce(&mut OpenChange<'_>) -> anyhow::Result<(T, bool)>,
    ) -> Reply {
        self.change(id, |project, id, user| {
            let request = ChangeRequest::of(id.clone());
            step(&mut OpenChange::open(project, &request, command, user)?)
        })
    }

    /// Takes a step of a change that may be new.
    fn first_step<T: serde::Serialize>(
        &self,
        id: &str,
        command: &'static str,
        description: Option<&str>,
        step: impl FnOnce(&mut OpenChange<'_>) -> anyhow::Result<(T, bool)>,
    ) -> Reply {
        self.change(id, |project, id, user| {
            let mut request = ChangeRequest::of(id.clone());
            request.description = description.map(str::to_owned);
            step(&mut OpenChange::open_or_begin(
                project, &request, command, user,
            )?)
        })
    }

    /// Plans a change as its phase says.
    pub fn plan_change(&self, id: &str, description: Option<&str>) -> Reply {
        self.first_step(id, "plan", description, |open| {
            let planned = change::plan::plan(open)?;
            let is_done = planned.phase != ChangePhase::Rejected;
            Ok((planned, is_done))
        })
    }

    /// Writes the documents of a change that are missing.
    pub fn propose(&self, id: &str, description: Option<&str>) -> Reply {
        self.first_step(id, "proposal", description, |open| {
            let written = change::plan::propose(open)?;
            let phase = open.change.state.phase;
            Ok((json!({ "written": written, "phase": phase }), true))
        })
    }

    /// Challenges a change.
    pub fn challenge(&self, id: &str) -> Reply {
        self.step(id, "challenge", |open| {
            let judged = change::judge::challenge(open)?;
            let is_done = judged.verdict != ReviewVerdict::Rejected;
            Ok((judged, is_done))
        })
    }

    /// Has the implementation of a change reviewed.
    pub fn review(&self, id: &str) -> Reply {
        self.step(id, "review", |open| {
            let judged = change::judge::review(open)?;
            let is_done = judged.verdict != ReviewVerdict::Rejected;
            Ok((judged, is_done))
        })
    }

    /// Implements a change; `reviews` asks for the reviews, too.
    pub fn implement(&self, id: &str, reviews: bool) -> Reply {
        let command = if reviews { "impl" } else { "implement" };
        self.step(id, command, |open| {
            let done = if reviews {
                change::implement::implement_and_review(open)?
            } else {
                change::implement::implement(open)?
            };
            let stopped = done.stopped.as_ref().map(why_stopped);
            let is_done = done.stopped.is_none();
            let mut value = serde_json::to_value(&done)?;
            value["stopped"] = json!(stopped);
            Ok((value, is_done))
        })
    }

    /// Overrides a verdict.
    pub fn approve(&self, id: &str, reason: &str) -> Reply {
        self.step(id, "approve", |open| {
            change::judge::approve(open, reason)?;
            Ok((json!({ "phase": open.change.state.phase }), true))
        })
    }

    /// Takes documents of the user's into a change.
    pub fn revise(&self, id: &str, name: &str, text: &str) -> Reply {
        self.step(id, "reproposal", |open| {
            let files = vec![(name.to_owned(), text.to_owned())];
            change::plan::edit(open, files)?;
            Ok((json!({ "phase": open.change.state.phase }), true))
        })
    }

    /// Archives a change.
    pub fn archive(&self, id: &str, on_overlap: OnOverlap) -> Reply {
        self.step(id, "archive", |open| {
            let archived = change::archive::archive(open, on_overlap)?;
            let is_done = archived.conflicts.is_empty();
            Ok((archived, is_done))
        })
    }

    /// Returns where a change stands, as `change status --json` has it.
    #[track_caller]
    pub fn change_status(&self, id: &str) -> Value {
        self.read(|project| {
            let status = change::status::change_status(project, &ChangeId::parse(id)?)?;
            Ok(serde_json::to_value(status)?)
        })
    }

    /// Looks for a change; the reply says why there is none.
    pub fn find_change(&self, id: &str) -> Reply {
        self.change(id, |project, id, _| {
            let change = change::open_change(project, id)?;
            Ok((json!({ "phase": change.state.phase }), true))
        })
    }
}

/// Returns why an implementation stopped.
fn why_stopped(stop: &ImplementStop) -> String {
    let work = |why: &WorkStop| match why {
        WorkStop::NothingPlanned => "nothing planned".to_owned(),
        WorkStop::Question(question) => format!("asks {question}"),
        WorkStop::Undecided => "undecided".to_owned(),
        WorkStop::Turn(recorded) => format!("turn {}", recorded.status().word()),
        WorkStop::NotBrought(unapplied) => format!("turn {} not in the files", unapplied.turn),
        WorkStop::Unfinished(turns) => format!("unfinished after {turns} turns"),
    };
    match stop {
        ImplementStop::Work { about, why } => format!("{about}: {}", work(why)),
        ImplementStop::TooManyRounds(rounds) => format!("after {rounds} rounds"),
        ImplementStop::ReviewRejects => "the review rejects it".to_owned(),
    }
}
