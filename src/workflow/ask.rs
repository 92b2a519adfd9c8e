//! `ask`: asks a question about the files. The answer is recorded as a turn and changes no file.
//!
//! The model can read files for at most `MAX_LOOKS` rounds. An answer with any other action is left
//! for a review.

use crate::project::Project;
use crate::session::meta::{MessageOrigin, ModelUse};
use crate::text::hint::error_with_hint;
use crate::workflow::execute::execute;
use crate::workflow::execute::options::ExecuteOptions;
use crate::workflow::execute::result::{RecordedTurn, ReviewedPlan};
use crate::workflow::plan::{PlanOptions, plan_next_turn};
use crate::workflow::user::{
    Approved, Choice, Decision, Event, Notice, Question, ReviewRequest, User,
};
use crate::workspace::notice::FilesNotice;

const MAX_LOOKS: usize = 5;
const GO_ON: &str =
    "The files that you wanted to read are in the context now. Answer the question.";

#[derive(Debug, Clone, Default)]
pub struct AskOptions {
    pub question: String,
    /// Instead of the configured model.
    pub model: Option<String>,
    /// How many turns before the previous one the model sees.
    pub depth: u64,
}

#[derive(Debug, Clone)]
pub struct AnsweredQuestion {
    /// The last one has the answer.
    pub turns: Vec<RecordedTurn>,
    /// Of the last turn.
    pub model: Option<ModelUse>,
    /// Markdown. `None` if the model only read files, or its reply was not an answer.
    pub answer: Option<String>,
}

pub fn ask(
    project: &Project,
    options: &AskOptions,
    user: &mut dyn User,
) -> anyhow::Result<AnsweredQuestion> {
    let session = project.session()?;
    if project.in_progress(&session)?.1.is_planned() {
        return Err(error_with_hint(
            format!("a plan is waiting in session `{session}`"),
            "`teddy execute` runs it; `teddy new <name>` starts another session",
        ));
    }

    let mut answered = AnsweredQuestion {
        turns: Vec::new(),
        model: None,
        answer: None,
    };
    let mut message = (options.question.as_str(), MessageOrigin::User);
    for _ in 0..=MAX_LOOKS {
        let (text, origin) = message;
        let plan_options = PlanOptions {
            message: Some(text.to_owned()),
            model: options.model.clone(),
            depth: options.depth,
            // `Loop` keeps our own message out of the user's requests.
            origin,
            question: true,
            ..PlanOptions::default()
        };
        let planned = plan_next_turn(project, &plan_options, user)?;
        answered.model = planned.model;

        let is_over = take_turns(project, &mut answered, user)?;
        if is_over || answered.answer.is_some() {
            break;
        }
        message = (GO_ON, MessageOrigin::Loop);
    }

    Ok(answered)
}

/// Returns `true` if no further answer can follow.
fn take_turns(
    project: &Project,
    answered: &mut AnsweredQuestion,
    user: &mut dyn User,
) -> anyhow::Result<bool> {
    let options = ExecuteOptions {
        replan: true,
        leaves_question: true,
        ..ExecuteOptions::default()
    };
    loop {
        let ReviewedPlan::Recorded(recorded) = execute(project, &options, &mut AnswerUser(user))?
        else {
            return Ok(true);
        };

        let ran = recorded.interruption().is_none() && !recorded.plan.actions.is_empty();
        let replanned = recorded.replanned().map(|planned| planned.model.clone());
        let is_rejected = recorded.is_rejected();
        if !is_rejected {
            answered.answer = answer(&recorded);
        }
        answered.turns.push(*recorded);

        match replanned {
            Some(model) => answered.model = model,
            None => return Ok(is_rejected || !ran),
        }
    }
}

fn answer(recorded: &RecordedTurn) -> Option<String> {
    let actions = recorded.plan.actions.iter();
    let messages: Vec<&str> = actions.filter_map(|action| action.kind.message()).collect();
    (!messages.is_empty()).then(|| messages.join("\n\n"))
}

/// Approves plans that only talk to the user. Leaves everything else for a review: another process
/// could have saved a plan in between.
pub struct AnswerUser<'a>(pub &'a mut dyn User);

impl User for AnswerUser<'_> {
    fn review(&mut self, proposal: &ReviewRequest<'_>) -> anyhow::Result<Decision> {
        let mut actions = proposal.plan.actions.iter();
        let is_answer =
            proposal.plan.memos.is_empty() && actions.all(|action| action.kind.is_informational());
        Ok(if is_answer {
            Decision::Run(Approved::all(proposal.plan))
        } else {
            Decision::Quit
        })
    }

    fn approves_unseen(&self) -> bool {
        true
    }

    fn ask(&mut self, question: &Question<'_>) -> anyhow::Result<Option<String>> {
        self.0.ask(question)
    }

    fn confirm(&mut self, question: &str, flag: &str) -> anyhow::Result<bool> {
        self.0.confirm(question, flag)
    }

    fn choose(&mut self, question: &str, choices: &[Choice<'_>]) -> anyhow::Result<Option<usize>> {
        self.0.choose(question, choices)
    }

    fn report(&mut self, event: Event<'_>) {
        // The answer itself is the output. A drift notice was shown when the question was asked.
        let is_told = matches!(
            event,
            Event::Started { .. }
                | Event::Finished { .. }
                | Event::Notice(Notice::Files(FilesNotice::Drifted { .. }))
        );
        if !is_told {
            self.0.report(event);
        }
    }
}
