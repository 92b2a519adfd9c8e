//! Asking a question about the files: the answer is a turn, and nothing is changed.

use crate::session::meta::{MessageOrigin, ModelUse};
use crate::workflow::execute::result::{RecordedTurn, ReviewedPlan};
use crate::workflow::execute::{ExecuteOptions, execute};
use crate::workflow::hinted::hinted;
use crate::workflow::notice::Notice;
use crate::workflow::plan::{PlanOptions, plan};
use crate::workflow::project::Project;
use crate::workflow::user::{Approved, Choice, Decision, Event, Question, ReviewRequest, User};
use crate::workspace::notice::FilesNotice;

/// How often a model may look at files before it must answer.
const MAX_LOOKS: usize = 5;
/// What the model is told once it has looked.
const GO_ON: &str =
    "The files that you wanted to read are in the context now. Answer the question.";

/// What is wanted of an answer.
#[derive(Debug, Clone, Default)]
pub struct AskOptions {
    /// The question.
    pub question: String,
    /// The model.
    pub model: Option<String>,
    /// How many turns before the previous one the model sees.
    pub depth: u64,
}

/// What came of a question.
#[derive(Debug, Clone)]
pub struct AnsweredQuestion {
    /// The turns that it took, the last one with the answer.
    pub turns: Vec<RecordedTurn>,
    /// What the model took for the last of them.
    pub model: Option<ModelUse>,
    /// The answer, in Markdown; without one, the model only wanted to see more, or its reply was
    /// no answer.
    pub answer: Option<String>,
}

/// Asks a question in the session in use, lets the model look at the files that it wants to see,
/// and records what it answers.
///
/// # Errors
/// Where a plan waits, the model gives no whole answer, or the repository cannot be written.
pub fn ask(
    project: &Project,
    options: &AskOptions,
    user: &mut dyn User,
) -> anyhow::Result<AnsweredQuestion> {
    let session = project.session()?;
    let tip = project.store().tip(&session)?;
    if project.store().draft(&tip)?.is_planned() {
        return Err(hinted(
            format!("a plan is waiting in session `{session}`"),
            "`teddy execute` runs it; `teddy new <name>` starts another session",
        ));
    }

    let mut asked = AnsweredQuestion {
        turns: Vec::new(),
        model: None,
        answer: None,
    };
    let mut message = (options.question.as_str(), MessageOrigin::User);
    for _ in 0..=MAX_LOOKS {
        let (text, origin) = message;
        let wanted = PlanOptions {
            message: Some(text.to_owned()),
            model: options.model.clone(),
            depth: options.depth,
            origin,
            question: true,
            ..PlanOptions::default()
        };
        let planned = plan(project, &wanted, user)?;
        asked.model = planned.model;

        let is_over = take_turns(project, &mut asked, user)?;
        if is_over || asked.answer.is_some() {
            break;
        }
        message = (GO_ON, MessageOrigin::Loop);
    }

    Ok(asked)
}

/// Executes the answer that waits, and those that the model gives instead of a wrong one. Returns
/// whether nothing more can come.
fn take_turns(
    project: &Project,
    asked: &mut AnsweredQuestion,
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
            asked.answer = answer(&recorded);
        }
        asked.turns.push(*recorded);

        match replanned {
            Some(model) => asked.model = model,
            None => return Ok(is_rejected || !ran),
        }
    }
}

/// Returns what a plan tells the user.
fn answer(recorded: &RecordedTurn) -> Option<String> {
    let actions = recorded.plan.actions.iter();
    let told: Vec<&str> = actions.filter_map(|action| action.kind.message()).collect();
    (!told.is_empty()).then(|| told.join("\n\n"))
}

/// A user who is shown an answer: there is nothing to decide. Whatever else waits by now, as another
/// process may have planned in between, is left for a person.
struct AnswerUser<'a>(&'a mut dyn User);

impl User for AnswerUser<'_> {
    fn review(&mut self, proposal: &ReviewRequest<'_>) -> anyhow::Result<Decision> {
        let mut actions = proposal.plan.actions.iter();
        let is_answer =
            proposal.plan.memos.is_empty() && actions.all(|action| action.kind.only_tells());
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

    fn tell(&mut self, event: Event<'_>) {
        // That an answer was said is told by the answer, and how the files are when it was asked.
        let is_told = matches!(
            event,
            Event::Started { .. }
                | Event::Finished { .. }
                | Event::Notice(Notice::Files(FilesNotice::Drifted { .. }))
        );
        if !is_told {
            self.0.tell(event);
        }
    }
}
