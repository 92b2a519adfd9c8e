//! A plan that does not run: validation rejects it, or the user declines it. The turn is recorded
//! without changes, and the model is asked for a corrected plan where that is useful.

use std::collections::BTreeSet;

use super::comments::{self, CommentRequest};
use super::options::ExecuteOptions;
use super::planned::PlannedTurn;
use super::result::{DeclineReply, RecordedTurn, TurnEnding};
use super::review::Reviewed;
use super::turn::EndedTurn;
use crate::host::interrupt;
use crate::plan::diagnostic::Diagnostic;
use crate::plan::run::{Ending, Outcome};
use crate::session::comments::{LineComment, MAX_COMMENTS, message, parse, render};
use crate::session::meta::{MessageOrigin, Status};
use crate::session::transition::{self, Next};
use crate::session::{artifact, feedback};
use crate::text::path::lossy;
use crate::workflow::context::message::without_keys;
use crate::workflow::model::choose::{self, NoModel};
use crate::workflow::open_session::OpenSession;
use crate::workflow::plan::{PlanOptions, WaitingPlan, plan_turn};
use crate::workflow::user::{Event, NoReplan, Notice, Question, User};
use crate::workflow::validation::ASIDES;
use crate::workspace::snapshot;

impl<'p> PlannedTurn<'p> {
    /// Declines the plan with the comments that were written in a review, and with others.
    pub fn request_changes(
        mut self,
        requests: &[CommentRequest],
        user: &mut dyn User,
    ) -> anyhow::Result<RecordedTurn> {
        let mut comments = std::mem::take(&mut self.written);
        for request in requests {
            comments.push(comments::comment(&self, request)?);
        }
        self.send_comments(comments, user)
    }

    /// Declines the plan with comments. They become the message of the next turn.
    pub fn send_comments(
        mut self,
        mut comments: Vec<LineComment>,
        user: &mut dyn User,
    ) -> anyhow::Result<RecordedTurn> {
        anyhow::ensure!(
            comments.len() <= MAX_COMMENTS,
            "at most {MAX_COMMENTS} comments are possible at once"
        );
        for comment in &mut comments {
            comment.text = without_keys(std::mem::take(&mut comment.text), user);
        }
        let artifacts = &mut self.session.draft.artifacts;
        artifacts.insert(artifact::COMMENTS, render(&comments));
        self.decline(Some(message(&comments)), user)
    }

    /// What the user wants instead becomes the message of the next turn.
    pub fn decline(
        mut self,
        reason: Option<String>,
        user: &mut dyn User,
    ) -> anyhow::Result<RecordedTurn> {
        let is_typed = reason.is_none();
        let reason = match reason {
            Some(reason) => Some(reason),
            None => user.ask(&Question::Instead {
                title: &self.validated.plan.title,
            })?,
        };
        anyhow::ensure!(
            !interrupt::requested(),
            "interrupted before the plan was declined; it is still waiting"
        );
        let reply = match reason.map(|reason| without_keys(reason, user)) {
            None => DeclineReply::Left,
            Some(reason) if reason.trim().is_empty() => DeclineReply::Nothing,
            Some(message) => DeclineReply::Instead {
                message,
                is_typed,
                replanned: None,
            },
        };

        let mut recorded = self.record_declined(reply, user)?;
        if let Some(message) = recorded.instead() {
            let mut next = self.session.continued()?;
            next.draft.artifacts.insert(artifact::USER_PROMPT, message);
            next.save_draft()?;
            // The message answers an open question too.
            recorded.question = None;
        }

        Ok(recorded)
    }

    fn record_declined(
        &mut self,
        reply: DeclineReply,
        user: &mut dyn User,
    ) -> anyhow::Result<RecordedTurn> {
        let next = transition::without_effects(&self.current(&self.lists.turn(), &self.prompt()?));
        let transaction = self.session.project.enter("execute", user)?;
        if let DeclineReply::Instead { message, .. } = &reply {
            let artifacts = &mut self.session.draft.artifacts;
            artifacts.insert(artifact::DECLINED, message.as_str());
        }

        let skipped = |_| Outcome::of(Ending::Skipped, "the user declined the plan");
        let ending = TurnEnding::Declined {
            outcomes: self.validated.plan.actions.iter().map(skipped).collect(),
            reply,
        };
        self.without_run(ending, next)
            .record(self, &transaction, None)
    }

    /// A turn that changed nothing.
    fn without_run(&self, ending: TurnEnding, next: Next) -> EndedTurn<'_> {
        EndedTurn {
            ending,
            plan: &self.validated.plan,
            approved: None,
            memos: &[],
            modifications: Vec::new(),
            next,
            workspace: self.unchanged_workspace(),
            repository_changes: Vec::new(),
            not_captured: self.recorded.not_captured.clone(),
        }
    }

    pub fn turn_down(
        mut self,
        options: &ExecuteOptions,
        user: &mut dyn User,
    ) -> anyhow::Result<Reviewed<'p>> {
        let unseen = self.validated.unseen();
        let shows_files = !unseen.is_empty()
            && options.replan
            && self.check_replan_useful().is_ok()
            && self.has_correcting_model(options);
        match shows_files {
            false => {
                let changed = self.changed_since_plan()?;
                if !changed.is_empty() {
                    user.report(Event::Notice(Notice::ChangedSincePlan(changed)));
                }
                user.report(Event::Rejected {
                    file: options.file.as_ref().map(|file| file.name.as_str()),
                    diagnostics: &options
                        .placed(self.validated.diagnostics(), &self.validated.repaired),
                });
            }
            true => user.report(Event::Notice(Notice::ShowingFiles(unseen))),
        }
        self.session.draft.meta.showed_files = shows_files;
        Ok(Reviewed::Ended(Box::new(self.reject(options, user)?)))
    }

    /// Returns the files of rejected actions that differ from those the plan was made from.
    fn changed_since_plan(&self) -> anyhow::Result<Vec<String>> {
        let project = self.session.project;
        let repository = &project.repository;
        let planned_on = self.session.draft.meta.planned_on;
        // `teddy gc` can have removed the snapshot.
        let base = planned_on.and_then(|commit| repository.commit(commit).ok());
        let Some(base) = base
            .map(|commit| commit.tree)
            .filter(|tree| repository.has(*tree))
        else {
            return Ok(Vec::new());
        };

        let actions = self.validated.plan.actions.iter();
        let rejected = actions.zip(&self.validated.simulation.steps);
        let rejected = rejected.filter(|(_, step)| step.wrong);
        let paths = rejected.filter_map(|(action, _)| action.kind.path());
        let paths: BTreeSet<&[u8]> = paths.map(|path| path.as_str().as_bytes()).collect();
        let [before, now] =
            [base, self.recorded.tree].map(|tree| repository.entries_at(tree, &paths));
        let (before, now) = (before?, now?);
        let mut changed = paths;
        changed.retain(|path| before.get(path) != now.get(path));

        // A file that git ignores is in `now` because the plan names it.
        if changed.iter().any(|path| !before.contains_key(path)) {
            let plain = snapshot::snapshot(&project.checkout(), &[])?.tree;
            let plain = repository.entries_at(plain, &changed)?;
            changed.retain(|path| before.contains_key(path) || plain.contains_key(path));
        }
        Ok(changed.into_iter().map(lossy).collect())
    }

    /// Asks the model once to send the plan again without text next to its commands. Otherwise the
    /// plan waits for a user.
    pub fn doubt(
        mut self,
        asides: Vec<Diagnostic>,
        options: &ExecuteOptions,
        user: &mut dyn User,
    ) -> anyhow::Result<Reviewed<'p>> {
        // The diagnostics have the lines of the reply, not of the repaired plan.
        user.report(Event::Rejected {
            file: options.file.as_ref().map(|file| file.name.as_str()),
            diagnostics: &asides,
        });
        if !options.replan || !self.may_ask_about_asides(options) {
            return Ok(self.undecided(asides));
        }

        self.validated.simulation.diagnostics = asides;
        Ok(Reviewed::Ended(Box::new(self.reject(options, user)?)))
    }

    /// If requested and useful, asks the model for a corrected plan.
    fn reject(self, options: &ExecuteOptions, user: &mut dyn User) -> anyhow::Result<RecordedTurn> {
        let diagnostics = self.validated.simulation.diagnostics.clone();
        let in_doubt = self.has_only_asides();
        let showed_files = self.session.draft.meta.showed_files;
        let request = PlanOptions {
            message: Some(self.feedback()),
            model: self.correcting_model(options),
            origin: MessageOrigin::Validation,
            question: self.session.draft.meta.question,
            takes_commands: options.takes_commands,
            ..PlanOptions::default()
        };
        let useful = self.check_replan_useful();

        let mut recorded = self.record_rejected(user)?;
        if !options.replan {
            return Ok(recorded);
        }
        if let Err(why) = useful {
            user.report(Event::Notice(Notice::NotReplanned {
                why,
                takes_commands: options.takes_commands,
                is_question: request.question,
            }));
            return Ok(recorded);
        }

        let replanned = replan(self.session.continued()?, &request, user);
        recorded.ending = TurnEnding::Rejected {
            diagnostics,
            has_failed: replanned.is_none(),
            replanned: replanned.map(Box::new),
            in_doubt,
            showed_files,
        };
        Ok(recorded)
    }

    /// The message that tells the model what is wrong.
    fn feedback(&self) -> String {
        let (artifacts, validated) = (&self.session.draft.artifacts, &self.validated);
        // The repaired plan no longer has the doubtful text.
        let reply = artifacts.text(artifact::REPLY);
        let text = reply
            .filter(|_| self.has_only_asides())
            .unwrap_or_else(|| artifacts.text_or_empty(artifact::PLAN));
        let comments = artifacts.text(artifact::COMMENTS);
        let comments = comments.and_then(|text| parse(&text)).unwrap_or_default();
        let mistakes = feedback::render(&feedback::Rejected {
            plan: &text,
            diagnostics: validated.diagnostics(),
            outline: validated.outline.as_deref(),
            correct_actions: &validated.simulation.correct_actions(&validated.plan),
            unseen: &validated.unseen(),
        });
        match comments.is_empty() {
            true => mistakes,
            false => format!("{mistakes}\n{}", message(&comments)),
        }
    }

    fn record_rejected(&self, user: &mut dyn User) -> anyhow::Result<RecordedTurn> {
        let (context, prompt) = (self.lists.turn(), self.prompt()?);
        let current = self.current(&context, &prompt);
        let next = transition::after_rejection(&current, &self.validated.mistaken());
        let transaction = self.session.project.enter("execute", user)?;
        let showed_files = self.session.draft.meta.showed_files;
        let ending = TurnEnding::Rejected {
            diagnostics: self.validated.diagnostics().to_vec(),
            replanned: None,
            has_failed: false,
            in_doubt: self.has_only_asides(),
            showed_files,
        };
        self.without_run(ending, next)
            .record(self, &transaction, None)
    }

    /// Nothing but text next to commands is wrong.
    fn has_only_asides(&self) -> bool {
        let asides = self.validated.asides();
        !asides.is_empty() && self.validated.diagnostics() == asides
    }

    /// The model is asked once.
    fn may_ask_about_asides(&self, options: &ExecuteOptions) -> bool {
        let OpenSession { tip, draft, .. } = &self.session;
        let was_asked = draft.meta.origin == MessageOrigin::Validation
            && tip.meta.mistakes.iter().any(|name| name == ASIDES);
        !was_asked && self.has_correcting_model(options) && self.check_replan_useful().is_ok()
    }

    fn has_correcting_model(&self, options: &ExecuteOptions) -> bool {
        let OpenSession { project, tip, .. } = &self.session;
        let model = self
            .correcting_model(options)
            .or_else(|| project.model_of(&tip.session));
        model.is_some_and(|name| choose::model_settings(project, &name).is_ok())
    }

    /// Returns the model that corrects a plan: the one that is named, or the one that wrote it.
    fn correcting_model(&self, options: &ExecuteOptions) -> Option<String> {
        let own = self.session.draft.meta.model.as_ref();
        let requested = options.model.clone();
        requested.or_else(|| own.map(|model| model.asked.clone()))
    }

    /// Fails if asking again is useless.
    fn check_replan_useful(&self) -> Result<(), NoReplan> {
        let OpenSession {
            project,
            tip,
            draft,
            ..
        } = &self.session;
        if draft.meta.replans >= project.settings.replan.max {
            return Err(NoReplan::TooMany(draft.meta.replans.saturating_add(1)));
        }

        let before = &tip.meta.mistakes;
        let is_repeated = |mistake: &String| before.contains(mistake);
        let is_correction = draft.meta.origin == MessageOrigin::Validation;
        if is_correction
            && tip.meta.status == Status::Rejected
            && self.validated.mistakes().iter().any(is_repeated)
        {
            return Err(NoReplan::SameMistake);
        }

        Ok(())
    }
}

/// `None` if the model could not be asked.
fn replan(
    session: OpenSession<'_>,
    request: &PlanOptions,
    user: &mut dyn User,
) -> Option<WaitingPlan> {
    let why = match plan_turn(session, request, user) {
        Ok(planned) => return Some(planned),
        Err(error) if error.is::<NoModel>() => NoReplan::NoModel,
        Err(error) => NoReplan::Failed(format!("{error:#}")),
    };
    user.report(Event::Notice(Notice::NotReplanned {
        why,
        takes_commands: request.takes_commands,
        is_question: request.question,
    }));
    None
}
