//! `resume`: executes the waiting plan, or prompts and plans, in a loop.
//!
//! Without a user, the loop ends at the first question, failure or limit.

use crate::host::interrupt;
use crate::model::{ModelError, TokenUsage};
use crate::plan;
use crate::project::Project;
use crate::session::artifact;
use crate::session::draft::Draft;
use crate::session::meta::{MessageOrigin, Status};
use crate::session::turn::Turn;
use crate::workflow::context::message::keep_message;
use crate::workflow::execute::execute;
use crate::workflow::execute::options::ExecuteOptions;
use crate::workflow::execute::result::{RecordedTurn, ReviewedPlan, TurnEnding};
use crate::workflow::lifecycle::follow_session;
use crate::workflow::model::budget::{self, TokenEstimate};
use crate::workflow::model::pipelines::plan_source;
use crate::workflow::model::request::read_of_cut_input;
use crate::workflow::plan::{PlanOptions, WaitingPlan, message_of, plan_next_turn};
use crate::workflow::user::{EmptyInput, Event, NobodyToAsk, Notice, Question, User};

const YOLO_REPLANS: u32 = 2;

#[derive(Debug, Clone, Default)]
pub struct ResumeOptions {
    pub message: Option<String>,
    /// Without reviews, until a question, a limit, or too many rejected corrections.
    pub yolo: bool,
    /// No user can be prompted: ends when the model has nothing left to do.
    pub alone: bool,
    pub max_turns: Option<u32>,
    /// Of the session, in dollars, instead of the configured limit.
    pub max_cost: Option<f64>,
    /// How many turns before the previous one the model sees.
    pub depth: u64,
    pub model: Option<String>,
    /// `None` for the configured pipeline.
    pub pipeline: Option<String>,
}

#[derive(Debug, Clone)]
pub struct Resumed {
    pub last: Option<Box<RecordedTurn>>,
    pub waiting: Option<WaitingPlan>,
    pub ended: Ended,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Ended {
    /// The user left, or nothing is left to do and no user can be prompted.
    Left,
    /// The model's summary.
    Complete(String),
    /// The model's question.
    Question(String),
    /// The turn whose plan the user left undecided.
    Undecided(u64),
    /// The plan has text next to a command that no user has judged. It waits.
    InDoubt(u64),
    /// The result of the last turn conflicts with the user's own edits.
    Overlap,
    /// There is no correction.
    Rejected,
    /// The model wrote the same plan as in the previous turn. It is waiting.
    Repeated,
    Turns(u32),
    Cost {
        /// So far, in dollars.
        used: f64,
        /// In dollars.
        limit: f64,
    },
    /// Why the model could not be asked to continue.
    NextCall(String),
    /// The model failed, and the user left the prompt after that.
    Failed,
    /// The model answered in prose, also when it was asked for a plan.
    NoPlan,
    /// The server read only a part of the input. The plan waits.
    InputCut,
}

/// Shows turns, and handles commands typed at the prompt.
pub trait Console {
    fn recorded(&mut self, project: &Project, turn: &RecordedTurn) -> anyhow::Result<()>;

    /// Shows why the model failed. The loop stays at its prompt.
    fn failed(&mut self, error: anyhow::Error);

    /// Handles input at the prompt. A command is executed at once.
    fn typed(&mut self, project: &mut Project, text: String) -> anyhow::Result<Typed>;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Typed {
    /// For the model.
    Message(String),
    /// A command, which was executed.
    Done,
    /// Use this model from now on.
    Model(String),
    Leave,
}

/// Ends when the user leaves, the work is complete, or a limit is reached.
pub fn resume(
    project: &mut Project,
    options: ResumeOptions,
    user: &mut dyn User,
    console: &mut dyn Console,
) -> anyhow::Result<Resumed> {
    project.settings.limits.cost = options.max_cost.unwrap_or(project.settings.limits.cost);
    if options.yolo {
        // Without a user, a model that cannot correct its plan would only cost money.
        project.settings.replan.max = project.settings.replan.max.min(YOLO_REPLANS);
    }

    let mut resume_loop = ResumeLoop::new(project, options, user);
    let ended = resume_loop.run(user, console);
    let ResumeLoop {
        message,
        last,
        waiting,
        ..
    } = resume_loop;
    let saved = keep_message(project, message, user);
    // The error of the loop takes precedence.
    let ended = ended?;
    saved?;

    Ok(Resumed {
        last,
        waiting,
        ended,
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RemainingWork {
    /// The model only read, handed over or failed. It continues by itself.
    Work,
    /// The plan was rejected too often. The user can let the model try again.
    Retry,
    /// It told something instead of making a plan. It can be asked for one.
    Plan,
    Nothing,
}

fn remaining_work(project: &Project, tip: &Turn) -> anyhow::Result<RemainingWork> {
    // An answer is complete although it changes no file.
    if tip.meta.question {
        return Ok(RemainingWork::Nothing);
    }

    Ok(match tip.meta.status {
        Status::Failed => RemainingWork::Work,
        Status::Rejected => RemainingWork::Retry,
        Status::Executed if prose_answer(project, tip)?.is_some() => RemainingWork::Plan,
        Status::Executed if !plan_changed_files(project, tip)? => RemainingWork::Work,
        _ => RemainingWork::Nothing,
    })
}

/// As it ran, and without a handover.
fn plan_changed_files(project: &Project, tip: &Turn) -> anyhow::Result<bool> {
    let text = tip.plan_as_run(&project.repository)?.unwrap_or_default();
    let (plan, _) = plan::parse(&text);
    let mut kinds = plan.actions.iter().map(|action| &action.kind);
    let hands_over = kinds.clone().any(|kind| kind.hands_over());
    Ok(!hands_over && kinds.any(|kind| kind.changes_files()))
}

/// Returns the answer of a turn in which the model answered in prose.
fn prose_answer(project: &Project, tip: &Turn) -> anyhow::Result<Option<String>> {
    let reply = tip.text(&project.repository, artifact::REPLY)?;
    let Some(reply) = reply.filter(|_| !tip.meta.question && tip.meta.work.is_none()) else {
        return Ok(None);
    };
    let reading = plan::reading::read_reply(&reply, &tip.title);
    Ok(reading.prose.and_then(|_| message_of(&reading.plan)))
}

/// Returns whether the model was asked for the plan after a prose answer.
fn answers_plan_request(project: &Project, tip: &Turn) -> anyhow::Result<bool> {
    let message = tip.text(&project.repository, artifact::USER_PROMPT)?;
    Ok(message.as_deref() == Some(PLAN_PLEASE))
}

const CONTINUE_MESSAGE: &str = "Continue with the next step.";
const CORRECT_MESSAGE: &str = "Your plan was rejected, so nothing was done. Write it again without the mistakes in the report.";
const PLAN_PLEASE: &str = "Your answer was not a plan, so nothing was done. Write the plan for the request. If nothing is left to do, write a plan that only has a CONCLUDE.";

/// The user's reply to a prose answer, if they only press enter.
pub(super) const GO_AHEAD: &str = "Go ahead: write the plan.";

/// Turns that only read, after each other, before the user is asked whether to continue.
const MAX_READS: u32 = 5;

enum NextStep {
    /// From this message, or from the one in the draft.
    Plan(Option<String>, MessageOrigin),
    /// The input was handled and can have changed the session.
    Again,
    End(Ended),
}

impl NextStep {
    fn by_itself(message: &str) -> NextStep {
        NextStep::Plan(Some(message.to_owned()), MessageOrigin::Loop)
    }
}

struct ResumeLoop<'a> {
    project: &'a mut Project,
    options: ResumeOptions,
    /// Plans run without a review.
    unseen: bool,
    most: Option<u32>,
    /// No plan was made from it yet.
    message: Option<String>,
    turns: u32,
    /// Turns in a row that only read and ran without approval.
    reads: u32,
    /// The model repeated the plan of the previous turn.
    repeats: bool,
    /// The last call of the model failed, and the user has not said yet what to do.
    has_failed: bool,
    /// The prose answer was shown already, before a command at the prompt.
    has_shown_answer: bool,
    /// The user's last input was a command at the prompt.
    is_after_command: bool,
    last: Option<Box<RecordedTurn>>,
    waiting: Option<WaitingPlan>,
}

impl<'a> ResumeLoop<'a> {
    /// Without a review, `limits.turns` applies.
    fn new(
        project: &'a mut Project,
        mut options: ResumeOptions,
        user: &dyn User,
    ) -> ResumeLoop<'a> {
        let unseen = options.yolo || user.approves_unseen();
        let limit = unseen.then_some(project.settings.limits.turns);
        ResumeLoop {
            most: options.max_turns.or(limit),
            message: options.message.take(),
            project,
            options,
            unseen,
            turns: 0,
            reads: 0,
            repeats: false,
            has_failed: false,
            has_shown_answer: false,
            is_after_command: false,
            last: None,
            waiting: None,
        }
    }

    fn in_progress(&self) -> anyhow::Result<(Turn, Draft)> {
        self.project.in_progress(&self.project.session()?)
    }

    /// The user decides at a prompt how the loop continues.
    fn is_attended(&self) -> bool {
        !self.options.alone && !self.options.yolo
    }

    /// The loop ends with the given message, because no user can enter another one.
    fn is_one_message(&self) -> bool {
        self.options.alone && !self.options.yolo
    }
}

// Chooses the source of the next message: the options, the draft, the model continuing by itself,
// or a prompt.

impl ResumeLoop<'_> {
    fn next_step(
        &mut self,
        tip: &Turn,
        draft: &Draft,
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

        if std::mem::take(&mut self.has_failed) {
            return self.ask(tip, draft, LoopPrompt::Failed, user, console);
        }

        let waiting = draft.waiting_message();
        if waiting.is_some_and(|(_, origin)| origin != MessageOrigin::Loop) {
            return Ok(NextStep::Plan(None, MessageOrigin::User));
        }

        if let Some(conclusion) = tip.conclusion(&self.project.repository)? {
            if self.ends_when_done() {
                return Ok(NextStep::End(Ended::Complete(conclusion)));
            }
            let prompt = LoopPrompt::Next(EmptyInput::Nothing);
            return self.ask(tip, draft, prompt, user, console);
        }

        // A continuation that TeDDy generates is not an answer.
        if let Some(question) = tip.question(&self.project.repository)? {
            let prompt = match prose_answer(self.project, tip)? {
                Some(message) => self.prompt_for_reply(message, Some(question)),
                None => LoopPrompt::Answer(question),
            };
            return self.ask(tip, draft, prompt, user, console);
        }

        let remaining = remaining_work(self.project, tip)?;
        if remaining == RemainingWork::Plan {
            return match prose_answer(self.project, tip)? {
                Some(message) if !self.unseen || self.is_after_command => {
                    let prompt = self.prompt_for_reply(message, None);
                    self.ask(tip, draft, prompt, user, console)
                }
                _ if answers_plan_request(self.project, tip)? => Ok(NextStep::End(Ended::NoPlan)),
                _ => Ok(NextStep::by_itself(PLAN_PLEASE)),
            };
        }

        let only_read = self.reads > 0 && self.reads < MAX_READS;
        let is_unasked = self.unseen || only_read;
        if self.options.yolo || (is_unasked && remaining == RemainingWork::Work) {
            return Ok(NextStep::by_itself(match remaining {
                RemainingWork::Retry => CORRECT_MESSAGE,
                _ => CONTINUE_MESSAGE,
            }));
        }

        self.reads = 0;
        let prompt = LoopPrompt::Next(match remaining {
            RemainingWork::Nothing => EmptyInput::Nothing,
            RemainingWork::Retry => EmptyInput::Retry,
            RemainingWork::Work | RemainingWork::Plan => EmptyInput::Continue,
        });
        self.ask(tip, draft, prompt, user, console)
    }

    /// An answer that was recorded in this loop is on the screen.
    fn prompt_for_reply(&self, message: String, question: Option<String>) -> LoopPrompt {
        LoopPrompt::Reply {
            message: (self.turns == 0 && !self.has_shown_answer).then_some(message),
            question,
        }
    }

    /// Returns `true` if the loop ends when the model concludes the work. A user at the prompt
    /// might have more to ask for, unless the work was already complete when the loop began.
    fn ends_when_done(&self) -> bool {
        let is_at_prompt = self.is_after_command || (self.turns > 0 && !self.unseen);
        self.options.alone || !is_at_prompt
    }

    fn ask(
        &mut self,
        tip: &Turn,
        draft: &Draft,
        prompt: LoopPrompt,
        user: &mut dyn User,
        console: &mut dyn Console,
    ) -> anyhow::Result<NextStep> {
        // Fail on an unavailable model before prompting.
        let options = &self.options;
        let (model, pipeline) = (options.model.as_deref(), options.pipeline.as_deref());
        plan_source(self.project, tip, model, pipeline, MessageOrigin::User)?;

        self.is_after_command = false;
        let typed = match user.ask(&prompt.question(tip, draft)) {
            Ok(Some(typed)) => typed,
            Ok(None) => return Ok(NextStep::End(prompt.into_end())),
            Err(error) => return prompt.unanswered(error, self.turns),
        };
        let is_answer = matches!(prompt, LoopPrompt::Answer(_) | LoopPrompt::Reply { .. });
        if follow_session(self.project, tip, user)? && is_answer && !typed.trim().is_empty() {
            user.report(Event::Notice(Notice::AnswerNotSent(typed)));
            return Ok(NextStep::Again);
        }
        if typed.trim().is_empty() {
            return Ok(match prompt {
                LoopPrompt::Next(EmptyInput::Continue) => NextStep::by_itself(CONTINUE_MESSAGE),
                LoopPrompt::Next(EmptyInput::Retry) => NextStep::by_itself(CORRECT_MESSAGE),
                LoopPrompt::Failed => NextStep::Plan(None, MessageOrigin::User),
                LoopPrompt::Reply { .. } => {
                    NextStep::Plan(Some(GO_AHEAD.to_owned()), MessageOrigin::User)
                }
                _ => NextStep::Again,
            });
        }

        let typed = console.typed(self.project, typed)?;
        // `/undo` and the like can lead to another answer.
        self.has_shown_answer = matches!(prompt, LoopPrompt::Reply { .. })
            && self.project.store().tip(&self.project.session()?)?.commit == tip.commit;
        self.is_after_command = !matches!(typed, Typed::Message(_));
        // A command does not answer what to do after the failure.
        self.has_failed = self.is_after_command && matches!(prompt, LoopPrompt::Failed);
        Ok(match typed {
            Typed::Message(message) => NextStep::Plan(Some(message), MessageOrigin::User),
            Typed::Done => NextStep::Again,
            Typed::Model(model) => {
                let session = self.project.session()?;
                self.project.journal().record_model(&session, &model)?;
                self.options.model = Some(model);
                NextStep::Again
            }
            Typed::Leave => NextStep::End(prompt.into_end()),
        })
    }
}

enum LoopPrompt {
    Answer(String),
    /// The reply to a prose answer.
    Reply {
        /// The answer; `None` if it is on the screen.
        message: Option<String>,
        /// The answer, if it asks something.
        question: Option<String>,
    },
    /// What to do after the model failed.
    Failed,
    /// The next request, and what an empty input does.
    Next(EmptyInput),
}

impl LoopPrompt {
    fn question<'a>(&'a self, tip: &'a Turn, draft: &Draft) -> Question<'a> {
        match self {
            LoopPrompt::Answer(message) => Question::Answer {
                message,
                turn_of_loop: Some(draft.meta.number),
            },
            LoopPrompt::Reply { message, .. } => Question::Prose {
                turn: draft.meta.number,
                message: message.as_deref(),
            },
            LoopPrompt::Failed => LoopPrompt::next_turn(tip, draft, EmptyInput::Retry),
            LoopPrompt::Next(empty) => LoopPrompt::next_turn(tip, draft, *empty),
        }
    }

    fn next_turn<'a>(tip: &'a Turn, draft: &Draft, empty: EmptyInput) -> Question<'a> {
        Question::NextTurn {
            session: tip.session.as_str(),
            turn: draft.meta.number,
            empty,
            takes_commands: true,
        }
    }

    fn into_end(self) -> Ended {
        match self {
            LoopPrompt::Answer(question)
            | LoopPrompt::Reply {
                question: Some(question),
                ..
            } => Ended::Question(question),
            LoopPrompt::Failed => Ended::Failed,
            LoopPrompt::Next(_) | LoopPrompt::Reply { question: None, .. } => Ended::Left,
        }
    }

    fn unanswered(self, error: anyhow::Error, turns: u32) -> anyhow::Result<NextStep> {
        let NobodyToAsk { what, hint } = error.downcast()?;
        match self {
            LoopPrompt::Answer(_)
            | LoopPrompt::Reply {
                question: Some(_), ..
            } => Ok(NextStep::End(self.into_end())),
            LoopPrompt::Next(EmptyInput::Continue) if turns > 0 => {
                Ok(NextStep::End(Ended::NextCall(format!("{what}; {hint}"))))
            }
            _ => Err(NobodyToAsk { what, hint }.into()),
        }
    }
}

impl ResumeLoop<'_> {
    fn run(&mut self, user: &mut dyn User, console: &mut dyn Console) -> anyhow::Result<Ended> {
        let (_, draft) = self.in_progress()?;
        if draft.is_planned() && self.message.is_some() {
            user.report(Event::Notice(Notice::PlanComesFirst));
        }

        loop {
            let (tip, draft) = self.in_progress()?;
            if !draft.is_planned() {
                match self.next_step(&tip, &draft, user, console)? {
                    NextStep::Plan(message, origin) => match self.plan(message, origin, user) {
                        Ok(None) => {}
                        Ok(Some(ended)) => return Ok(ended),
                        Err(error) if self.stays_at_prompt(&error) => {
                            console.failed(error);
                            self.has_failed = true;
                            continue;
                        }
                        Err(error) => return Err(error),
                    },
                    NextStep::Again => continue,
                    NextStep::End(ended) => return Ok(ended),
                }
            }

            let recorded = match self.execute(user)? {
                ReviewedPlan::Undecided(plan) if !plan.doubts.is_empty() => {
                    return Ok(Ended::InDoubt(plan.turn));
                }
                ReviewedPlan::Undecided(plan) => return Ok(Ended::Undecided(plan.turn)),
                ReviewedPlan::Recorded(recorded) => recorded,
            };
            console.recorded(self.project, &recorded)?;

            let ended = self.why_stop(&recorded)?;
            self.last = Some(recorded);
            if let Some(ended) = ended {
                return Ok(ended);
            }
        }
    }

    /// Returns the reason if the loop must end.
    fn plan(
        &mut self,
        message: Option<String>,
        origin: MessageOrigin,
        user: &mut dyn User,
    ) -> anyhow::Result<Option<Ended>> {
        let (tip, _) = self.in_progress()?;
        let plan_options = PlanOptions {
            message,
            model: self.options.model.clone(),
            pipeline: self.options.pipeline.clone(),
            depth: self.options.depth,
            origin,
            takes_commands: self.is_attended(),
            ..PlanOptions::default()
        };
        let planned = match plan_next_turn(self.project, &plan_options, user) {
            Ok(planned) => planned,
            Err(error) => return self.why_no_plan(error, origin).map(Some),
        };

        // Without a review, a model that repeats itself would run until the limit.
        let before = tip.text(&self.project.repository, artifact::PLAN)?;
        let agent = self.project.store().draft(&tip)?.meta.agent;
        let is_circle = origin == MessageOrigin::Loop
            && tip.meta.agent == agent
            && before.as_ref() == Some(&planned.text);
        self.waiting = Some(planned);
        if self.options.yolo && self.is_input_cut(&tip)? {
            return Ok(Some(Ended::InputCut));
        }
        self.repeats = is_circle;
        Ok((is_circle && self.unseen).then_some(Ended::Repeated))
    }

    /// Returns whether the plan was made from a part of the input. A user has seen the warning.
    fn is_input_cut(&self, tip: &Turn) -> anyhow::Result<bool> {
        let draft = self.project.store().draft(tip)?;
        let input = draft.artifacts.text_or_empty(artifact::INPUT);
        let weight = TokenEstimate::of_input(&input, 0, 0);
        let usage = draft.meta.model.map(|used| TokenUsage {
            input: used.tokens_in.unwrap_or(0),
            output: used.tokens_out.unwrap_or(0),
            cached: used.tokens_cached,
            cache_written: used.tokens_cache_written,
        });
        Ok(usage.is_some_and(|usage| read_of_cut_input(weight.tokens, usage).is_some()))
    }

    /// The reason to end if there is no plan. An error is not a failure of the loop if the model
    /// was only asked to continue: the request before is complete.
    fn why_no_plan(&self, error: anyhow::Error, origin: MessageOrigin) -> anyhow::Result<Ended> {
        let by_itself = origin == MessageOrigin::Loop && self.is_one_message();
        let ends = by_itself || (self.options.yolo && is_cost_limit(&error));
        if ends && !interrupt::requested() {
            return Ok(Ended::NextCall(format!("{error:#}")));
        }
        Err(error)
    }

    /// Returns whether the user decides what to do after an error of the model.
    fn stays_at_prompt(&self, error: &anyhow::Error) -> bool {
        self.is_attended() && error.is::<ModelError>() && !interrupt::requested()
    }

    fn execute(&mut self, user: &mut dyn User) -> anyhow::Result<ReviewedPlan> {
        let options = ExecuteOptions {
            file: None,
            replan: true,
            model: self.options.model.clone(),
            yolo: self.options.yolo,
            leaves_question: true,
            takes_commands: self.is_attended(),
            recorded: self.waiting.as_ref().map(|plan| plan.recorded.clone()),
            comments: Vec::new(),
        };
        let reviewed = execute(self.project, &options, user)?;
        let ReviewedPlan::Recorded(recorded) = &reviewed else {
            return Ok(reviewed);
        };

        if let Some(instead) = recorded.instead() {
            // The reply to the declined plan comes before the earlier message.
            let later = self
                .message
                .take()
                .map(|later| format!("\n\n{later}"))
                .unwrap_or_default();
            self.message = Some(format!("{instead}{later}"));
        }

        self.turns += 1;
        self.reads = match recorded.only_read {
            // The next answer would be the same.
            true if self.repeats => MAX_READS,
            true => self.reads + 1,
            false => 0,
        };
        // The reason was reported. The user decides whether the model is asked again.
        self.has_failed = recorded.has_failed_replan() && self.is_attended();
        self.waiting = recorded.replanned().cloned();
        Ok(reviewed)
    }

    fn why_stop(&self, recorded: &RecordedTurn) -> anyhow::Result<Option<Ended>> {
        if recorded.interruption().is_some() {
            return Ok(Some(Ended::Left));
        }

        if !recorded.overlaps.is_empty() {
            return Ok(Some(Ended::Overlap));
        }

        if let Some(question) = recorded.unanswered() {
            let ended = Ended::Question(question.to_owned());
            return Ok(self.options.alone.then_some(ended));
        }

        if recorded.user_left() {
            return Ok(Some(Ended::Left));
        }

        // `next_step` decides about a concluded turn, with a prompt if a user is present.
        match recorded.conclusion() {
            Some(_) => Ok(None),
            None => self.why_stop_unseen(recorded),
        }
    }

    fn why_stop_unseen(&self, recorded: &RecordedTurn) -> anyhow::Result<Option<Ended>> {
        let is_rejected = matches!(recorded.ending, TurnEnding::Rejected { .. });
        let is_final = is_rejected && recorded.replanned().is_none();
        if is_final && (self.options.yolo || self.options.alone) {
            return Ok(Some(Ended::Rejected));
        }

        let (tip, draft) = self.in_progress()?;
        if self.options.yolo {
            let used = budget::session_spending(self.project, &tip, &draft)?;
            let limit = self.project.settings.limits.cost;
            if used >= limit {
                return Ok(Some(Ended::Cost { used, limit }));
            }
        }

        let more = draft.is_planned() || remaining_work(self.project, &tip)? == RemainingWork::Work;
        if self.is_one_message() && !more {
            return Ok(Some(Ended::Left));
        }

        let is_full = self.most.is_some_and(|most| self.turns >= most);
        Ok(is_full.then_some(Ended::Turns(self.turns)))
    }
}

fn is_cost_limit(error: &anyhow::Error) -> bool {
    matches!(
        error.downcast_ref::<ModelError>(),
        Some(ModelError::CostLimit { .. } | ModelError::BudgetExceeded { .. })
    )
}
