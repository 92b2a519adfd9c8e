//! Chooses the source of the next message: the options, the draft, the model continuing by itself,
//! or a prompt.

use super::remaining::{RemainingWork, remaining_work};
use super::state::{NextStep, ResumeLoop};
use super::{Console, Ended, Typed};
use crate::session::draft::Draft;
use crate::session::meta::MessageOrigin;
use crate::session::turn::Turn;
use crate::workflow::model::source::plan_source;
use crate::workflow::user::{NobodyToAsk, Question, User};

impl ResumeLoop<'_> {
    pub(super) fn next_step(
        &mut self,
        (tip, draft): (&Turn, &Draft),
        user: &mut dyn User,
        console: &mut dyn Console,
    ) -> anyhow::Result<NextStep> {
        // A message for a later turn is kept for the next call.
        let is_left = self.is_one_message() && self.turns > 0;
        if is_left && self.message.is_some() {
            return Ok(NextStep::End(Ended::Left));
        }

        if let Some(message) = self.message.take() {
            return Ok(NextStep::Plan(Some(message), MessageOrigin::User));
        }

        let waiting = draft.waiting_message();
        if waiting.is_some_and(|(_, origin)| origin != MessageOrigin::Loop) {
            return Ok(NextStep::Plan(None, MessageOrigin::User));
        }

        if let Some(conclusion) = tip.conclusion(&self.project.repository)? {
            if self.ends_when_done() {
                return Ok(NextStep::End(Ended::Complete(conclusion)));
            }
            return self.ask(
                (tip, draft),
                LoopPrompt::Next { goes_on: false },
                user,
                console,
            );
        }

        // A continuation that TeDDy generates is not an answer.
        if let Some(question) = tip.question(&self.project.repository)? {
            return self.ask((tip, draft), LoopPrompt::Answer(question), user, console);
        }

        let remaining = remaining_work(self.project, tip)?;
        if self.options.yolo || (self.unseen && remaining == RemainingWork::Work) {
            return Ok(NextStep::go_on());
        }

        let goes_on = remaining != RemainingWork::Nothing;
        let prompt = LoopPrompt::Next { goes_on };
        self.ask((tip, draft), prompt, user, console)
    }

    /// Returns `true` if the loop ends when the model concludes the work. A user at the prompt
    /// might have more to ask for, unless the work was already complete when the loop began.
    fn ends_when_done(&self) -> bool {
        self.options.alone || self.unseen || self.turns == 0
    }

    fn ask(
        &mut self,
        (tip, draft): (&Turn, &Draft),
        prompt: LoopPrompt,
        user: &mut dyn User,
        console: &mut dyn Console,
    ) -> anyhow::Result<NextStep> {
        // Fail on an unavailable model before prompting.
        let (model, pipeline) = (
            self.options.model.as_deref(),
            self.options.pipeline.as_deref(),
        );
        plan_source(self.project, tip, model, pipeline, MessageOrigin::User)?;

        let typed = match user.ask(&prompt.question(tip, draft)) {
            Ok(Some(typed)) => typed,
            Ok(None) => return Ok(NextStep::End(prompt.into_end())),
            Err(error) => return prompt.unanswered(error),
        };
        if typed.trim().is_empty() {
            return Ok(match prompt {
                LoopPrompt::Next { goes_on: true } => NextStep::go_on(),
                _ => NextStep::Again,
            });
        }

        Ok(match console.typed(self.project, typed)? {
            Typed::Message(message) => NextStep::Plan(Some(message), MessageOrigin::User),
            Typed::Done => NextStep::Again,
            Typed::Model(model) => {
                self.options.model = Some(model);
                NextStep::Again
            }
            Typed::Leave => NextStep::End(prompt.into_end()),
        })
    }
}

enum LoopPrompt {
    /// The answer to this question.
    Answer(String),
    /// The next request.
    Next {
        /// An empty input lets the model continue.
        goes_on: bool,
    },
}

impl LoopPrompt {
    fn question<'a>(&'a self, tip: &'a Turn, draft: &Draft) -> Question<'a> {
        match self {
            LoopPrompt::Answer(message) => Question::Answer {
                message,
                takes_commands: true,
            },
            LoopPrompt::Next { goes_on } => Question::NextTurn {
                session: tip.session.as_str(),
                turn: draft.meta.number,
                goes_on: *goes_on,
                takes_commands: true,
            },
        }
    }

    fn into_end(self) -> Ended {
        match self {
            LoopPrompt::Answer(question) => Ended::Question(question),
            LoopPrompt::Next { .. } => Ended::Left,
        }
    }

    fn unanswered(self, error: anyhow::Error) -> anyhow::Result<NextStep> {
        match self {
            LoopPrompt::Answer(question) if error.is::<NobodyToAsk>() => {
                Ok(NextStep::End(Ended::Question(question)))
            }
            _ => Err(error),
        }
    }
}
