//! The review of a plan. It is repeated if the user's files change meanwhile, up to `MAX_REVIEWS`
//! times.

use std::cell::RefCell;

use super::comments;
use super::options::ExecuteOptions;
use super::planned::{PlannedTurn, forced};
use super::record::ApprovedTurn;
use super::result::{RecordedTurn, UndecidedPlan};
use crate::config::settings::ReadApproval;
use crate::model::acting::transcript::count_commands;
use crate::plan::Plan;
use crate::plan::action::Action;
use crate::plan::diagnostic::Diagnostic;
use crate::project::{PlanActivity, note_activity};
use crate::session::artifact;
use crate::session::comments::LineComment;
use crate::session::meta::Approver;
use crate::text::hint::error_with_hint;
use crate::workflow::confine;
use crate::workflow::open_session::OpenSession;
use crate::workflow::user::{Approved, Decision, Event, Notice, ReviewRequest, User};
use crate::workflow::validation::review_content::{self, read_resource};
use crate::workflow::validation::{self, ValidationInput};
use crate::workspace::snapshot;

const MAX_REVIEWS: u32 = 3;

/// What a review leads to.
pub(super) enum Reviewed<'p> {
    Approved(Box<ApprovedTurn<'p>>),
    /// The plan was declined or rejected.
    Ended(Box<RecordedTurn>),
    Undecided(Box<UndecidedPlan>),
}

impl<'p> PlannedTurn<'p> {
    pub fn review(
        mut self,
        options: &ExecuteOptions,
        user: &mut dyn User,
    ) -> anyhow::Result<Reviewed<'p>> {
        // A decision ends them, so they are no part of the turn unless it is declined with them.
        self.written = comments::take_written(&mut self.session.draft);
        if !options.comments.is_empty() {
            return self.request_changes(&options.comments, user).map(ended);
        }
        if !self.written.is_empty() && user.approves_unseen() {
            return Err(error_with_hint(
                "comments on this plan are not sent yet",
                "`teddy execute` without `-y` shows them; `u` takes one back, `s` sends them",
            ));
        }
        for review_number in 1.. {
            // After a change of the files, the user can deselect the parts that don't apply any more.
            if self.earlier.is_none() && !self.validated.diagnostics().is_empty() {
                comments::put_back(&mut self.session.draft, &self.written);
                return self.turn_down(options, user);
            }

            // A person sees such words in the review; without one, the command must not run.
            if self.earlier.is_none() && user.approves_unseen() {
                let asides = self.validated.asides();
                if !asides.is_empty() {
                    return self.doubt(asides, options, user);
                }
                if let Some(reason) = self.session.draft.meta.agent_stop() {
                    let reason = reason.to_owned();
                    let message = format!("the agent stopped early: {reason}");
                    user.report(Event::Notice(Notice::AgentStopped(reason)));
                    return Ok(self.undecided(vec![Diagnostic::new(0, message)]));
                }
            }

            let chosen = match self.decide(user)? {
                Decision::Quit => return Ok(self.undecided(Vec::new())),
                Decision::Skip(reason) => return self.decline(reason, user).map(ended),
                Decision::Comment(comments) => {
                    return self.send_comments(comments, user).map(ended);
                }
                // Deselecting everything is a refusal; don't ask for a reason.
                Decision::Run(chosen) if chosen.is_empty() => {
                    return self.decline(Some(String::new()), user).map(ended);
                }
                Decision::Run(chosen) => chosen,
            };
            // Only without a review: `-y` approved a plan that does not apply any more.
            if !self.validated.diagnostics().is_empty() && !self.fits(&chosen)? {
                comments::put_back(&mut self.session.draft, &self.written);
                return self.turn_down(options, user);
            }

            // The plan runs on the reviewed snapshot in any case. An editor that saves all the time
            // must not block it; its saves are merged with the result.
            let is_last = user.approves_unseen() || review_number == MAX_REVIEWS;
            if is_last || self.is_unchanged(&chosen)? {
                return Ok(Reviewed::Approved(Box::new(
                    self.approve(chosen, options, user),
                )));
            }

            user.report(Event::Notice(Notice::ChangedUnderReview));
            self = self.reopened(chosen, user)?;
        }

        unreachable!("the last review leads to a run")
    }

    fn decide(&mut self, user: &mut dyn User) -> anyhow::Result<Decision> {
        if self.needs_no_approval(user) {
            return Ok(self.approve_reads(user));
        }
        let activity = PlanActivity::Review(self.session.draft.meta.number);
        note_activity(self.session.project, self.session.name(), Some(activity));
        self.ask_user(user)
    }

    /// The user left, or there are doubts.
    pub fn undecided(self, doubts: Vec<Diagnostic>) -> Reviewed<'p> {
        Reviewed::Undecided(Box::new(UndecidedPlan {
            session: self.session.tip.session,
            turn: self.session.draft.meta.number,
            plan: self.validated.plan,
            drift: self.drift,
            doubts,
        }))
    }

    fn approve(
        mut self,
        approved: Approved,
        options: &ExecuteOptions,
        user: &dyn User,
    ) -> ApprovedTurn<'p> {
        let is_unseen_answer = self.session.draft.meta.question && user.approves_unseen();
        let approver = match is_unseen_answer || self.needs_no_approval(user) {
            true => Approver::Reads,
            false => approver(user, options),
        };
        let meta = &mut self.session.draft.meta;
        meta.approved_by = Some(approver);
        meta.network = granted(&approved);
        ApprovedTurn {
            planned: self,
            approved,
        }
    }

    fn is_unchanged(&self, approved: &Approved) -> anyhow::Result<bool> {
        if self.recorded.is_fresh() {
            return Ok(true);
        }

        let checkout = self.session.project.checkout();
        let now = snapshot::snapshot(&checkout, &forced(&approved.plan))?.tree;
        Ok(now == self.recorded.tree)
    }

    /// Returns whether a plan runs without approval: a prose answer, and, unless the user wants to
    /// review them, a plan that only reads files of the project or tells something.
    fn needs_no_approval(&self, user: &dyn User) -> bool {
        if self.validated.prose.is_some() {
            return true;
        }
        let project = self.session.project;
        let reads = project.settings.review.reads;
        let is_auto = reads == ReadApproval::Auto && !user.approves_unseen();
        let (plan, limits) = (&self.validated.plan, project.limits());
        let is_harmless = |action: &Action| {
            // What a tracked file with such a name contains must not reach a provider unseen.
            let path = action.kind.worktree_path();
            let is_secret = path.is_some_and(|path| limits.is_secret(path.as_str().as_bytes()));
            action.kind.is_informational() && !is_secret
        };
        let is_same = self.earlier.as_ref().is_none_or(|e| e.modified.is_empty());
        let is_complete = self.session.draft.meta.agent_stop().is_none();
        is_auto
            && is_same
            && is_complete
            && plan.memos.is_empty()
            && plan.actions.iter().all(is_harmless)
    }

    fn approve_reads(&self, user: &mut dyn User) -> Decision {
        let plan = &self.validated.plan;
        let mut actions = plan.actions.iter();
        if self.earlier.is_none() && actions.any(|action| action.kind.message().is_none()) {
            user.report(Event::Notice(Notice::OnlyReads(plan.title.clone())));
        }
        Decision::Run(Approved::all(plan))
    }

    fn fits(&self, approved: &Approved) -> anyhow::Result<bool> {
        let plan = Plan {
            actions: approved.running().cloned().collect(),
            memos: approved.memos().cloned().collect(),
            ..approved.plan.clone()
        };
        let run = validation::simulate(self.session.project, &plan, &self.validation_input())?;
        Ok(run.diagnostics.is_empty())
    }

    fn validation_input(&self) -> ValidationInput<'_> {
        ValidationInput {
            tip: &self.session.tip,
            tree: self.recorded.tree,
            lists: &self.lists,
            draft: &self.session.draft,
        }
    }

    fn ask_user(&mut self, user: &mut dyn User) -> anyhow::Result<Decision> {
        let saved = RefCell::new((self.session.draft.clone(), self.written.clone()));
        let OpenSession {
            project,
            tip,
            draft,
            ..
        } = &self.session;
        let save_comments = |comments: &[LineComment]| {
            let (draft, written) = &mut *saved.borrow_mut();
            comments::save(project, tip, draft, comments)?;
            *written = comments.to_vec();
            Ok(())
        };
        let input = self.validation_input();
        let revise = |plan: &Plan| validation::simulate(project, plan, &input);
        let scope = review_content::ResourceScope {
            tip,
            artifacts: &draft.artifacts,
            tree: self.recorded.tree,
        };

        // A failed agent leaves its transcript, although another model can make the plan then.
        let transcript = |name: &str| draft.artifacts.0.get(name).filter(|_| draft.meta.made);
        let commands = transcript(artifact::TRANSCRIPT).map(|jsonl| count_commands(jsonl));
        let transcript = transcript(artifact::TRANSCRIPT_TEXT);
        let transcript = transcript.map(|text| String::from_utf8_lossy(text));

        let proposal = ReviewRequest {
            session: tip.session.as_str(),
            turn: draft.meta.number,
            plan: &self.validated.plan,
            text: &self.validated.repaired.text,
            repair: &self.validated.repaired,
            simulation: &self.validated.simulation,
            confinement: &|| confine::confinement(project),
            revise: &revise,
            read_resource: &|resource| read_resource(project, &scope, resource),
            earlier: self.earlier.as_ref(),
            comments: &comments::earlier_comments(self)?,
            written: &self.written,
            save_comments: &save_comments,
            agent_commands: commands.unwrap_or_default(),
            agent_stop: self.session.draft.meta.agent_stop(),
            transcript: transcript.as_deref(),
        };
        let decision = user.review(&proposal)?;
        let (draft, comments) = saved.into_inner();
        self.session.draft.commit = draft.commit;
        self.written = comments;
        Ok(decision)
    }
}

/// Returns the numbers of the actions to which the user granted the network.
fn granted(chosen: &Approved) -> Vec<usize> {
    let actions = chosen.plan.actions.iter().zip(1..);
    let granted = actions.filter(|(action, _)| {
        let execute = action.kind.command();
        execute.is_some_and(|execute| execute.network)
    });
    let numbers = granted.map(|(_, number)| number);
    numbers
        .filter(|number| chosen.actions[number - 1])
        .collect()
}

fn approver(user: &dyn User, options: &ExecuteOptions) -> Approver {
    match (user.approves_unseen(), options.yolo) {
        (false, _) => Approver::Person,
        (true, false) => Approver::Yes,
        (true, true) => Approver::Yolo,
    }
}

fn ended(turn: RecordedTurn) -> Reviewed<'static> {
    Reviewed::Ended(Box::new(turn))
}
