//! The turn in progress, from its message to a plan that waits for execution.
//!
//! A value: `Store::save_draft` makes it durable.

use uuid::Uuid;

use super::artifact::{self, Artifacts};
use super::meta::{self, MessageOrigin, Meta, Status};
use crate::git::object::CommitId;
use crate::host::clock;

const OF_THE_ANSWER: [&str; 8] = [
    artifact::RESUMED_PROMPT,
    artifact::TRANSCRIPT,
    artifact::TRANSCRIPT_TEXT,
    artifact::INPUT,
    artifact::USER_PROMPT,
    artifact::REPLY,
    artifact::PLAN,
    artifact::COMMENTS,
];

const DIRS: [&str; 3] = [artifact::STEPS, artifact::TAKEN_FILES, artifact::TEXTS];

fn is_of_answer(name: &str) -> bool {
    OF_THE_ANSWER.contains(&name) || DIRS.iter().any(|dir| name.starts_with(dir))
}

#[derive(Debug, Clone)]
pub struct Draft {
    pub artifacts: Artifacts,
    pub meta: Meta,
    /// `None` until it is saved.
    pub commit: Option<CommitId>,
}

impl Draft {
    pub fn is_planned(&self) -> bool {
        self.meta.status == Status::Planned
    }

    pub fn begin(&mut self) {
        // Several refs can point at the same saved draft, so its id cannot be reused.
        self.meta.turn_id = Uuid::now_v7();
        self.meta.started = Some(clock::stamp());
    }

    pub fn message(&self) -> Option<(String, MessageOrigin)> {
        let message = self.artifacts.text_or_empty(artifact::USER_PROMPT);
        (!message.trim().is_empty()).then_some((message, self.meta.origin))
    }

    pub fn waiting_message(&self) -> Option<(String, MessageOrigin)> {
        self.message().filter(|_| !self.is_planned())
    }

    /// `false` for feedback of TeDDy and for work of a change.
    pub fn is_asked_by_user(&self) -> bool {
        matches!(self.message(), Some((_, MessageOrigin::User))) && self.meta.work.is_none()
    }

    /// What a turn without a plan keeps: the prompt, the context lists and replaced answers.
    pub fn lasting_artifacts(&self) -> Artifacts {
        let mut lasting = Artifacts::default();
        for name in [
            artifact::SYSTEM_PROMPT,
            artifact::TURN_CONTEXT,
            artifact::SESSION_CONTEXT,
        ] {
            lasting.insert(name, self.artifacts.text_or_empty(name));
        }

        let files = self.artifacts.0.iter();
        let archived = files.filter(|(name, _)| name.starts_with(artifact::REPLACED));
        lasting
            .0
            .extend(archived.map(|(name, bytes)| (name.clone(), bytes.clone())));
        lasting
    }

    /// Moves the model's answer, its input and its cost to [`artifact::REPLACED`]. The answer is a
    /// waiting plan, or what arrived before a call failed.
    /// Returns the directory, if there was an answer.
    pub fn archive_answer(&mut self) -> Option<String> {
        if !self.has_answer() {
            return None;
        }

        let dir = self.free_archive_dir();
        let names = self.artifacts.0.keys().filter(|name| is_of_answer(name));
        for name in names.cloned().collect::<Vec<String>>() {
            // Keep the message in place as well: a plan from a file answers the same message.
            let bytes = if name == artifact::USER_PROMPT {
                self.artifacts.0.get(&name).cloned()
            } else {
                self.artifacts.0.remove(&name)
            };
            self.artifacts
                .insert(&format!("{dir}{name}"), bytes.unwrap_or_default());
        }

        self.meta.planned_on = None;
        let mut meta = self.meta.clone();
        // A waiting plan that is replaced counts as declined (T14).
        if self.is_planned() {
            meta.status = Status::Declined;
        }

        meta.ended = Some(clock::stamp());
        self.artifacts
            .insert(&format!("{dir}{}", artifact::META), meta::write(&meta));

        let model = self.meta.model.take();
        // Earlier versions did not record `spent`.
        self.meta.spent = self.meta.spent.or(model.and_then(|model| model.cost));
        self.drop_answer();
        Some(dir)
    }

    /// Keeps the message, with its comments.
    pub fn drop_answer(&mut self) {
        let kept = [artifact::USER_PROMPT, artifact::COMMENTS];
        let artifacts = &mut self.artifacts.0;
        artifacts.retain(|name, _| kept.contains(&&**name) || !is_of_answer(name));

        let meta = &mut self.meta;
        meta.planned_on = None;
        meta.model = None;
        meta.pipeline = None;
        meta.made = false;
        meta.repair = None;
        meta.failure = None;
        meta.acted = None;
        meta.status = Status::Ready;
    }

    fn has_answer(&self) -> bool {
        let is_step = |name: &String| name.starts_with(artifact::STEPS);
        self.is_planned()
            || self.artifacts.0.contains_key(artifact::REPLY)
            || self.artifacts.0.keys().any(is_step)
    }

    fn free_archive_dir(&self) -> String {
        let dir = |number: usize| format!("{}{number:02}/", artifact::REPLACED);
        let is_free = |dir: &String| {
            let mut names = self.artifacts.0.keys();
            !names.any(|name| name.starts_with(dir))
        };
        (1..)
            .map(dir)
            .find(is_free)
            .expect("a turn has a finite number of files")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::meta::ModelUse;

    fn planned(plan: &str) -> Draft {
        let model = ModelUse {
            asked: "sonnet".to_owned(),
            cost: Some(0.5),
            ..ModelUse::default()
        };
        let mut artifacts = Artifacts::default();
        for (name, text) in [
            (artifact::TURN_CONTEXT, "a.txt\n"),
            (artifact::USER_PROMPT, "go"),
            (artifact::INPUT, "everything"),
            (artifact::PLAN, plan),
            ("steps/01-think/output.md", "hm"),
        ] {
            artifacts.insert(name, text);
        }
        Draft {
            artifacts,
            meta: Meta {
                model: Some(model),
                ..Meta::of(Uuid::nil(), 3, Status::Planned, "dev")
            },
            commit: None,
        }
    }

    fn names(artifacts: &Artifacts) -> Vec<&str> {
        artifacts.0.keys().map(String::as_str).collect()
    }

    #[test]
    fn a_plan_that_is_set_aside_keeps_what_led_to_it_and_what_it_cost() {
        let mut draft = planned("# One");
        draft.archive_answer();
        assert_eq!(
            names(&draft.artifacts),
            [
                "replaced/01/input.md",
                "replaced/01/meta.yaml",
                "replaced/01/plan.md",
                "replaced/01/steps/01-think/output.md",
                "replaced/01/user_prompt.txt",
                "turn.context",
                "user_prompt.txt",
            ]
        );
        let archived: Meta = meta::read(&draft.artifacts.text_or_empty("replaced/01/meta.yaml"))
            .expect("our own text");
        assert_eq!(
            (archived.status, archived.model.and_then(|model| model.cost)),
            (Status::Declined, Some(0.5))
        );
        assert_eq!(
            (draft.meta.status, draft.meta.model, draft.meta.spent),
            (Status::Ready, None, Some(0.5))
        );
    }

    #[test]
    fn several_plans_are_replaced_one_after_another() {
        let mut draft = planned("# One");
        draft.archive_answer();
        draft.archive_answer();
        draft.artifacts.insert(artifact::PLAN, "# Two");
        draft.meta.status = Status::Planned;
        draft.archive_answer();
        let plan = |number: &str| {
            let name = format!("replaced/{number}/plan.md");
            draft.artifacts.text(&name)
        };
        assert_eq!(
            [plan("01"), plan("02"), plan("03")],
            [Some("# One".to_owned()), Some("# Two".to_owned()), None]
        );
    }

    #[test]
    fn what_arrived_of_an_answer_is_set_aside_too() {
        let mut draft = planned("# One");
        draft.meta.status = Status::Ready;
        draft.meta.failure = Some("the answer broke off".to_owned());
        draft.artifacts.remove(artifact::PLAN);
        draft.artifacts.insert(artifact::REPLY, "# Hal");
        draft.archive_answer();
        let archived: Meta = meta::read(&draft.artifacts.text_or_empty("replaced/01/meta.yaml"))
            .expect("our own text");
        assert_eq!(
            (
                archived.status,
                archived.failure.as_deref(),
                draft.meta.failure
            ),
            (Status::Ready, Some("the answer broke off"), None)
        );
        assert_eq!(
            draft.artifacts.text("replaced/01/reply.md").as_deref(),
            Some("# Hal")
        );
    }

    #[test]
    fn a_turn_that_asks_no_model_keeps_the_plan_that_it_replaces() {
        let mut draft = planned("# One");
        draft.archive_answer();
        assert_eq!(
            names(&draft.lasting_artifacts()),
            [
                "replaced/01/input.md",
                "replaced/01/meta.yaml",
                "replaced/01/plan.md",
                "replaced/01/steps/01-think/output.md",
                "replaced/01/user_prompt.txt",
                "session.context",
                "system_prompt.xml",
                "turn.context",
            ]
        );
    }
}
