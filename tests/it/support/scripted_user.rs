//! A user whose decisions and answers are written down before a workflow is called.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::Write;
use std::rc::Rc;

use teddy::plan::Plan;
use teddy::ui::progress::{OutputStyle, Progress};
use teddy::ui::style::Paint;
use teddy::workflow::user::{
    Approved, Choice, Decision, Event, NobodyToAsk, Question, ReviewRequest, User,
};

/// A decision on a plan.
#[derive(Debug)]
pub enum Scripted {
    /// Approves everything.
    Approve,
    /// Approves everything after something else happened.
    ApproveAfter(Meanwhile),
    /// Approves the actions at these positions, and all memos.
    ApproveOnly(Vec<usize>),
    /// Declines the plan; with a message, says what to do instead.
    Skip(Option<&'static str>),
    /// Leaves the plan undecided.
    Quit,
    /// The terminal is gone: the question fails.
    Fail,
    /// A defect of ours while the user is asked.
    Panic,
}

/// What someone else does while the user decides.
pub struct Meanwhile(pub Box<dyn FnOnce()>);

impl std::fmt::Debug for Meanwhile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("meanwhile")
    }
}

/// A [`User`] whose answers are known beforehand. Panics if it is asked something else.
#[derive(Default)]
pub struct ScriptedUser {
    decisions: VecDeque<Scripted>,
    answers: VecDeque<Option<&'static str>>,
    confirmations: VecDeque<bool>,
    choices: VecDeque<Option<usize>>,
    /// Happens before the first answer.
    before_answer: Option<Meanwhile>,
    /// Approves every plan and answers nothing, as `-y` without a terminal.
    is_absent: bool,
}

impl ScriptedUser {
    /// Returns a user who approves every plan unseen and cannot be asked anything.
    pub fn absent() -> ScriptedUser {
        ScriptedUser {
            is_absent: true,
            ..ScriptedUser::default()
        }
    }

    /// Returns a user who decides on plans in this order, and answers nothing yet.
    pub fn deciding(decisions: impl IntoIterator<Item = Scripted>) -> ScriptedUser {
        ScriptedUser {
            decisions: decisions.into_iter().collect(),
            ..ScriptedUser::default()
        }
    }

    /// Does something while the first question waits for its answer.
    pub fn acting_when_asked(mut self, act: impl FnOnce() + 'static) -> ScriptedUser {
        self.before_answer = Some(Meanwhile(Box::new(act)));
        self
    }

    /// Adds an answer to a question; `None` leaves.
    pub fn answering(mut self, answer: Option<&'static str>) -> ScriptedUser {
        self.answers.push_back(answer);
        self
    }

    /// Adds an answer to a yes-or-no question.
    pub fn confirming(mut self, answer: bool) -> ScriptedUser {
        self.confirmations.push_back(answer);
        self
    }

    /// Adds a choice by its position; `None` leaves.
    pub fn choosing(mut self, choice: Option<usize>) -> ScriptedUser {
        self.choices.push_back(choice);
        self
    }

    /// Returns what the script has for questions that nobody asked.
    pub(super) fn rest(&self) -> String {
        let ScriptedUser {
            decisions,
            answers,
            confirmations,
            choices,
            ..
        } = self;
        let left = decisions.len() + answers.len() + confirmations.len() + choices.len();
        match left {
            0 => String::new(),
            _ => format!("{decisions:?} {answers:?} {confirmations:?} {choices:?}"),
        }
    }
}

/// Text that two owners append to.
#[derive(Clone, Default)]
pub(super) struct SharedText(Rc<RefCell<Vec<u8>>>);

impl SharedText {
    /// Returns the text so far.
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.borrow()).into_owned()
    }

    /// Appends a line.
    pub(super) fn push(&self, line: &str) {
        let mut text = self.0.borrow_mut();
        text.extend_from_slice(line.trim_end_matches('\n').as_bytes());
        text.push(b'\n');
    }
}

impl Write for SharedText {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A scripted user during a call, with the log of what they were told, as it stands on stderr.
pub(super) struct Attendant<'a> {
    script: &'a mut ScriptedUser,
    progress: Progress<SharedText>,
    log: SharedText,
}

impl<'a> Attendant<'a> {
    /// Attends a call; what they are told is appended to the log.
    pub(super) fn new(script: &'a mut ScriptedUser, log: &SharedText) -> Attendant<'a> {
        let manner = OutputStyle {
            paint: Paint::Bare,
            width: || None,
            moves_cursor: true,
            is_quiet: false,
        };
        Attendant {
            script,
            progress: Progress::new(log.clone(), manner),
            log: log.clone(),
        }
    }
}

impl User for Attendant<'_> {
    fn review(&mut self, proposal: &ReviewRequest<'_>) -> anyhow::Result<Decision> {
        let title = &proposal.plan.title;
        if self.script.is_absent {
            return Ok(Decision::Run(Approved::all(proposal.plan)));
        }
        let decision = self.script.decisions.pop_front();
        let decision =
            decision.unwrap_or_else(|| panic!("the script does not decide on `{title}`"));
        self.log.push(&format!("review \"{title}\": {decision:?}"));
        Ok(match decision {
            Scripted::Approve => Decision::Run(Approved::all(proposal.plan)),
            Scripted::ApproveAfter(Meanwhile(act)) => {
                act();
                Decision::Run(Approved::all(proposal.plan))
            }
            Scripted::ApproveOnly(actions) => Decision::Run(only(proposal.plan, &actions)),
            Scripted::Skip(message) => Decision::Skip(message.map(str::to_owned)),
            Scripted::Quit => Decision::Quit,
            Scripted::Fail => anyhow::bail!("the terminal is gone"),
            Scripted::Panic => panic!("a defect in a review"),
        })
    }

    fn approves_unseen(&self) -> bool {
        self.script.is_absent
    }

    fn ask(&mut self, question: &Question<'_>) -> anyhow::Result<Option<String>> {
        let text = match question {
            Question::NextTurn { session, turn, .. } => {
                format!("message of turn {turn} of `{session}`")
            }
            Question::Instead { title } => format!("what to do instead of `{title}`"),
            Question::Reason { change } => format!("why `{change}` is approved"),
            Question::Answer { message, .. } => format!("answer to `{message}`"),
            Question::Prose { message: None, .. } => "reply to the answer".to_owned(),
            Question::Prose {
                message: Some(message),
                ..
            } => format!("reply to `{message}`"),
        };
        if self.script.is_absent {
            return Err(NobodyToAsk::new(text, "nobody is there").into());
        }
        if let Some(Meanwhile(act)) = self.script.before_answer.take() {
            act();
        }
        let answer = self.script.answers.pop_front();
        let answer = answer.unwrap_or_else(|| panic!("the script does not answer: {text}"));
        self.log.push(&format!("asked {text}: {answer:?}"));
        Ok(answer.map(str::to_owned))
    }

    fn confirm(&mut self, question: &str, flag: &str) -> anyhow::Result<bool> {
        if self.script.is_absent {
            return Ok(flag == "-y");
        }
        let answer = self.script.confirmations.pop_front();
        let answer = answer.unwrap_or_else(|| panic!("the script does not confirm: {question}"));
        self.log
            .push(&format!("asked {question} ({flag}): {answer}"));
        Ok(answer)
    }

    fn choose(&mut self, question: &str, choices: &[Choice<'_>]) -> anyhow::Result<Option<usize>> {
        if self.script.is_absent {
            return Ok(None);
        }
        let choice = self.script.choices.pop_front();
        let choice = choice.unwrap_or_else(|| panic!("the script does not choose: {question}"));
        let labels: Vec<&str> = choices.iter().map(|choice| choice.label).collect();
        self.log.push(&format!(
            "asked {question} {}: {choice:?}",
            labels.join(" / ")
        ));
        Ok(choice)
    }

    fn report(&mut self, event: Event<'_>) {
        self.progress.report(&event);
    }
}

/// Approves some actions of a plan.
fn only(plan: &Plan, actions: &[usize]) -> Approved {
    let chosen = |at| actions.contains(&at);
    Approved {
        actions: (0..plan.actions.len()).map(chosen).collect(),
        ..Approved::all(plan)
    }
}
