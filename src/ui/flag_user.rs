//! The user if no question is possible: without a terminal, or if flags answer everything.

use std::io::Write;

use super::progress::{OutputStyle, Progress};
use super::summary::{self, Audience, Summary};
use crate::host::screen::why_no_prompt;
use crate::ui::style::TextArea;
use crate::workflow::user::{
    Approved, Decision, Event, NobodyToAsk, Question, ReviewRequest, User,
};

/// The flag that approves plans and confirms questions that name it.
pub const APPROVE_ALL: &str = "-y";

/// Error: the plan was shown, but there is no user to approve it.
#[derive(Debug, thiserror::Error)]
#[error("{}, so TeDDy cannot ask for approval of this plan", why_no_prompt())]
pub struct Unapproved {
    /// The plan as JSON, for a program that decides.
    pub review: serde_json::Value,
}

/// A [`User`] that answers from flags and refuses everything else.
pub struct FlagUser<W: Write> {
    /// `-y`: approve every plan. Otherwise each is shown and refused, naming the flag.
    approve_all: bool,
    progress: Progress<W>,
}

impl FlagUser<std::io::Stderr> {
    /// Returns a user that writes to stderr.
    pub fn new(approve_all: bool, style: OutputStyle) -> Self {
        FlagUser {
            approve_all,
            progress: Progress::new(std::io::stderr(), style),
        }
    }
}

impl<W: Write> User for FlagUser<W> {
    fn review(&mut self, proposal: &ReviewRequest<'_>) -> anyhow::Result<Decision> {
        let mut area = TextArea::UNLIMITED;
        // A terminal that can only print has a width.
        area.width = (self.progress.style.width)().unwrap_or(area.width);
        let summary = Summary::new(proposal, Audience::Informed);
        self.progress.lines(summary.lines(area));
        if self.approve_all {
            return Ok(Decision::Run(Approved::all(proposal.plan)));
        }
        let review = summary::proposal_json(proposal);
        Err(Unapproved { review }.into())
    }

    fn approves_unseen(&self) -> bool {
        self.approve_all
    }

    fn ask(&mut self, question: &Question<'_>) -> anyhow::Result<Option<String>> {
        let message = "`-m '<message>'` says it";
        let (problem, hint) = match question {
            Question::NextTurn { session, turn, .. } => (
                format!("turn {turn} of `{session}` needs a message"),
                message,
            ),
            Question::Instead { title } => {
                let problem = format!("it is not said what to do instead of `{title}`");
                (problem, message)
            }
            Question::Reason { change } => {
                let problem = format!("it is not said why `{change}` is approved");
                (problem, "`--reason '<why>'` says it")
            }
            Question::Answer { .. } | Question::Prose { .. } => {
                let problem = "the model waits for your answer".to_owned();
                (problem, "`teddy resume -m '<answer>'` answers")
            }
        };
        Err(NobodyToAsk::new(problem, hint).into())
    }

    fn confirm(&mut self, question: &str, flag: &str) -> anyhow::Result<bool> {
        if self.approve_all && flag == APPROVE_ALL {
            return Ok(true);
        }
        let reason = format!("{}, so TeDDy cannot ask \"{question}\"", why_no_prompt());
        Err(NobodyToAsk::new(reason, format!("`{flag}` says yes")).into())
    }

    fn report(&mut self, event: Event<'_>) {
        self.progress.report(&event);
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::super::style::Paint;
    use super::*;
    use crate::workflow::user::EmptyInput;

    fn user(approve_all: bool) -> FlagUser<Vec<u8>> {
        let style = OutputStyle {
            paint: Paint::Bare,
            width: || None,
            moves_cursor: true,
            is_quiet: false,
        };
        FlagUser {
            approve_all,
            progress: Progress::new(Vec::new(), style),
        }
    }

    #[test]
    fn approval_by_flag_shows_and_runs_all() {
        let (sample, mut user) = (sample::bootstrap(), user(true));
        let decision = user.review(&sample.proposal()).unwrap();
        assert_eq!(decision, Decision::Run(Approved::all(&sample.plan)));
        assert!(
            String::from_utf8(user.progress.out)
                .unwrap()
                .contains("EXECUTE: 1 command")
        );
    }

    #[test]
    fn a_terminal_that_can_only_print_has_a_width() {
        let (sample, mut user) = (sample::bootstrap(), user(true));
        user.progress.style.width = || Some(30);
        user.review(&sample.proposal()).unwrap();
        let text = String::from_utf8(user.progress.out).unwrap();
        let is_rule = |line: &&str| line.starts_with('─');
        let rules: Vec<usize> = text
            .lines()
            .filter(is_rule)
            .map(|line| line.chars().count())
            .collect();
        assert_eq!(rules, [30, 30]);
    }

    #[test]
    fn a_quiet_approval_shows_nothing() {
        let (sample, mut user) = (sample::bootstrap(), user(true));
        user.progress.style.is_quiet = true;
        assert_eq!(
            user.review(&sample.proposal()).unwrap(),
            Decision::Run(Approved::all(&sample.plan))
        );
        assert_eq!(String::from_utf8(user.progress.out).unwrap(), "");
    }

    #[test]
    fn without_a_flag_the_plan_is_shown_and_the_flag_named() {
        let (sample, mut user) = (sample::bootstrap(), user(false));
        let error = user.review(&sample.proposal()).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "{}, so TeDDy cannot ask for approval of this plan",
                why_no_prompt()
            )
        );
        let review = &error.downcast_ref::<Unapproved>().unwrap().review;
        assert_eq!(
            (&review["title"], &review["actions"][3]["command"]),
            (
                &"Bootstrap New Project Component".into(),
                &"poetry lock\n".into()
            )
        );
        assert!(
            String::from_utf8(user.progress.out)
                .unwrap()
                .contains("poetry lock")
        );
    }

    fn error_text(error: &anyhow::Error) -> String {
        let NobodyToAsk {
            what: problem,
            hint,
        } = error.downcast_ref().unwrap();
        format!("{problem}: {hint}")
    }

    #[test]
    fn a_message_is_never_invented() {
        let error = |question| error_text(&user(true).ask(&question).unwrap_err());
        assert_eq!(
            error(Question::NextTurn {
                session: "a",
                turn: 2,
                empty: EmptyInput::Nothing,
                takes_commands: false,
            }),
            "turn 2 of `a` needs a message: `-m '<message>'` says it"
        );
        assert_eq!(
            error(Question::Answer {
                message: "?",
                turn_of_loop: None
            }),
            "the model waits for your answer: `teddy resume -m '<answer>'` answers"
        );
    }

    #[test]
    fn a_question_names_its_flag() {
        let error = user(true)
            .confirm("Overwrite 3 files?", "--exact")
            .unwrap_err();
        assert_eq!(
            error_text(&error),
            format!(
                "{}, so TeDDy cannot ask \"Overwrite 3 files?\": `--exact` says yes",
                why_no_prompt()
            )
        );
        assert!(user(true).confirm("Run it?", "-y").unwrap());
        assert!(user(false).confirm("Run it?", "-y").is_err());
    }
}
