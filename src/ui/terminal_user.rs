//! The user at a terminal: reviews plans, writes messages and answers questions.

use std::io::{self, Stderr};

use ratatui::crossterm::style::force_color_output;

use super::ask::{self, KeyQuestion, LeaveKey, Reply};
use super::editor::{self, Choices, EditorUse};
use super::flag_user::APPROVE_ALL;
use super::modify::Modify;
use super::pager::Pager;
use super::progress::{OutputStyle, Progress};
use super::prompt::{PromptHelp, PromptText, TextKeys, TextUse};
use super::style::{self, Paint, StyledLine, Tone, block};
use super::summary::{self, Audience, Summary};
use super::terminal::{self, Full, RawMode};
use super::{editing, markdown};
use crate::host::editor::Editor;
use crate::host::file::temporary_dir;
use crate::host::{interrupt, screen};
use crate::model::acting::{PermissionDecision, PermissionQuestion};
use crate::plan::Plan;
use crate::text::counted;
use crate::text::sanitize::sanitize_block;
use crate::ui::editing::TerminalPrompts;
use crate::ui::style::TextArea;
use crate::workflow::act::permission::permission_text_with_differences;
use crate::workflow::user::{
    Approved, Choice, Decision, EmptyInput, Event, Question, ReviewRequest, User,
};

const REST_FITS: &str = "(a) runs the rest, switched as it was; (m)odify shows it.";

const NOTHING_ON: &str =
    "Nothing is switched on: (m)odify switches it on, (s)kip declines the plan.";

const NOTHING_FITS: &str =
    "Nothing is left to run: (s)kip the plan, or (q)uit and keep it until it fits again.";

const KEYS: [(char, &str); 10] = [
    ('a', "approve: run what is shown, your changes included"),
    ('r', "read the full plan"),
    (
        'm',
        "switch parts off and change them, with a preview of each",
    ),
    ('d', "all differences"),
    (TRANSCRIPT_KEY, "what the agent did: its transcript"),
    ('c', "comment on lines of the differences"),
    (
        BYTES_KEY,
        "keep your encoding, line ends and mode in all files",
    ),
    ('e', "edit the plan in your editor"),
    (
        's',
        "decline the plan: send your comments, or say what to do instead",
    ),
    ('q', "leave; the plan waits"),
];

/// Allows once, allows for the rest of the turn, denies.
const PERMISSION_CHOICES: [Choice<'static>; 3] = [
    Choice {
        key: 'y',
        label: "(y)es, this time",
    },
    Choice {
        key: 'a',
        label: "(a)lways in this turn",
    },
    Choice {
        key: 'n',
        label: "(n)o",
    },
];

/// Only for a plan from an agent.
const TRANSCRIPT_KEY: char = 't';

/// Only for a plan that damages bytes.
const BYTES_KEY: char = 'B';

/// Stands above an answer of the model in prose.
pub const PROSE_HEADING: &str = "The model answered without a plan:";

#[derive(Debug, Clone, Default)]
pub struct UserOptions {
    /// `-y`: run plans without asking. Messages are still asked for.
    pub approve_all: bool,
    /// Programs that open files.
    pub choices: Choices,
    /// History, completion and rules for messages.
    pub prompt: PromptHelp,
}

/// How to handle a message without text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BlankText {
    IsAskedAgain,
    Leaves,
    /// An empty message is an answer.
    Counts,
}

/// A [`User`] at a terminal: keys come from stdin, output goes to stderr.
pub struct TerminalUser {
    options: UserOptions,
    paint: Paint,
    progress: Progress<Stderr>,
    /// Reply given in the review: the answer to a question-only plan, or what to do instead of a
    /// declined plan, if anything. Returned by the next `ask`.
    reply: Option<Option<String>>,
    /// Messages typed in this process, for the history.
    typed: Vec<String>,
    /// How often the keys of the loop were shown in this process.
    hints: u32,
}

impl TerminalUser {
    /// Returns the user. Requires a terminal, see [`screen::can_prompt`].
    pub fn new(options: UserOptions, style: OutputStyle, paint: Paint) -> TerminalUser {
        // `--color` overrides NO_COLOR, which crossterm would apply again.
        force_color_output(paint == Paint::Colors);
        TerminalUser {
            options,
            paint,
            progress: Progress::new(io::stderr(), style),
            reply: None,
            typed: Vec::new(),
            hints: 0,
        }
    }

    /// Returns whether the keys are shown: at the first prompts of a session, and at every prompt that
    /// is not of a loop.
    fn shows_keys(&mut self, question: &Question<'_>) -> bool {
        let Some(turn) = turn_of_loop(question) else {
            return true;
        };
        self.hints += 1;
        self.hints <= MAX_HINTS && turn <= u64::from(MAX_HINTS)
    }

    fn decide(&mut self, proposal: &ReviewRequest<'_>) -> anyhow::Result<Decision> {
        let mut modify = Modify::new(proposal);
        let misfits = modify.leave_out_misfits(proposal)?;
        let misfits = Some(misfits).filter(|_| !proposal.simulation.diagnostics.is_empty());
        let initial = modify.approved();
        let _raw = RawMode::enter()?;
        // They are shown below the summary, which can fill the screen.
        let mut warnings: Vec<StyledLine> = Vec::new();
        loop {
            // Keys typed before the summary was visible, or in an editor or pager, must not approve
            // the plan.
            terminal::forget_typed()?;
            // Ctrl-c in a dialog, or while another program had the terminal.
            if interrupt::requested() {
                return Ok(Decision::Quit);
            }

            let running = modify.running(proposal)?;
            let mut notes = notes(&modify, misfits.as_ref());
            notes.append(&mut warnings);
            let current = match &running {
                Some((plan, simulation)) => proposal.with(plan, simulation),
                None => proposal.with(proposal.plan, proposal.simulation),
            };
            let chosen = self.ask_what(&Summary::new(&current, Audience::Asked), &notes)?;
            let decision = match chosen {
                'a' => modify.run_if_possible(),
                's' => Some(modify.declined()),
                'c' => modify.comment(proposal, &mut self.prompts())?,
                'q' => Some(Decision::Quit),
                'm' => modify.run(proposal, &mut self.prompts())?,
                'e' => {
                    warnings = self.edit_plan(&mut modify, proposal)?;
                    None
                }
                BYTES_KEY => {
                    warnings.extend(modify.keep_all_bytes(proposal)?.map(bytes_warning));
                    None
                }
                key => {
                    self.read_part(key, &current)?;
                    None
                }
            };
            let Some(decision) = decision else { continue };
            let is_confirmed = match &decision {
                Decision::Quit => {
                    let question =
                        "Leave the review? The plan waits, but your changes to it are lost.";
                    gives_up_changes(&modify, &initial, question)?
                }
                Decision::Run(_) => runs_without_comments(&modify)?,
                declined => {
                    let question = "Decline the plan? Your changes to it are lost.";
                    let is_asked = *declined == Decision::Skip(None);
                    gives_up_changes(&modify, &initial, question)?
                        && (!is_asked || self.declines(&proposal.plan.title)?)
                }
            };
            if is_confirmed {
                return Ok(decision);
            }
        }
    }

    fn read_part(&self, key: char, proposal: &ReviewRequest<'_>) -> anyhow::Result<()> {
        match key {
            'd' => {
                let lines = summary::differences(proposal);
                self.read("changes.diff", &style::text(&lines, Paint::Bare), lines)
            }
            TRANSCRIPT_KEY => {
                let text = proposal.transcript.unwrap_or_default();
                self.read("transcript.md", text, markdown::lines(text))
            }
            _ => self.read("plan.md", proposal.text, markdown::lines(proposal.text)),
        }
    }

    /// Lets the user edit the plan as text. Returns the warnings of the editor.
    fn edit_plan(
        &self,
        modify: &mut Modify,
        proposal: &ReviewRequest<'_>,
    ) -> anyhow::Result<Vec<StyledLine>> {
        let mut prompts = self.prompts();
        modify.edit_plan(proposal, &mut prompts)?;
        Ok(prompts.warnings)
    }

    /// Asks what to do instead of a plan. Returns false if the user goes back to the review.
    fn declines(&mut self, title: &str) -> anyhow::Result<bool> {
        let question = Question::Instead { title };
        ask::show(&question_lines(&question, true), self.paint);
        let (reply, by) = self.write_message(BlankText::IsAskedAgain, TextKeys::Declining)?;
        self.typed.extend(reply.clone());
        self.reply = (by == LeaveKey::Choice).then_some(reply);
        Ok(self.reply.is_some())
    }

    /// Asks the question of a plan that does nothing else. Answering it approves the plan.
    fn answered(
        &mut self,
        proposal: &ReviewRequest<'_>,
        message: &str,
    ) -> anyhow::Result<Decision> {
        // Changed files don't affect the question, so keep the answer.
        if proposal.earlier.is_some() && self.reply.is_some() {
            return Ok(Decision::Run(Approved::all(proposal.plan)));
        }

        let _raw = RawMode::enter()?;
        // As in `decide`: ignore keys typed before the question was visible.
        terminal::forget_typed()?;
        let mut lines = Summary::new(proposal, Audience::Asked).heading();
        lines.extend(markdown::quoted(message));
        lines.push(StyledLine::of(Tone::Strong, "Your answer:"));
        lines.push(ask::hint());
        ask::show(&lines, self.paint);
        let (answer, by) = self.write_message(BlankText::Leaves, TextKeys::Sending)?;
        by.end();
        self.reply = answer.map(Some);
        Ok(match self.reply {
            Some(_) => Decision::Run(Approved::all(proposal.plan)),
            None => Decision::Quit,
        })
    }

    fn ask_what(&self, summary: &Summary<'_>, notes: &[StyledLine]) -> io::Result<char> {
        let about = |area: TextArea| {
            let mut lines = summary.lines(area);
            lines.extend_from_slice(notes);
            lines
        };
        let mut keys = KEYS.to_vec();
        keys.retain(|(key, _)| match *key {
            TRANSCRIPT_KEY => summary.transcript().is_some(),
            BYTES_KEY => summary.damages_bytes,
            _ => true,
        });
        KeyQuestion {
            about: &about,
            question: summary::PROMPT,
            keys: &keys,
            approving: Some('a'),
            more_help: summary.reading().as_slice(),
            paint: self.paint,
        }
        .key_or_end()
    }

    fn read(&self, name: &str, text: &str, lines: Vec<StyledLine>) -> anyhow::Result<()> {
        if let Some(reader) = self.options.choices.reader()? {
            match self.read_with(&reader, name, text) {
                Ok(()) => return Ok(()),
                Err(error) => ask::show(
                    &[StyledLine::of(Tone::Warning, &error.to_string())],
                    self.paint,
                ),
            }
        }

        // No previewer, or it failed.
        let mut full = Full::enter()?;
        Pager::new(name, lines).run(&mut full, self.paint)?;
        Ok(())
    }

    /// Deceptive characters are written as code points.
    fn read_with(&self, reader: &Editor, name: &str, text: &str) -> io::Result<()> {
        let dir = temporary_dir()?;
        let path = dir.path().join(name);
        std::fs::write(&path, sanitize_block(text).as_bytes())?;
        if editor::open(reader, &path)? == EditorUse::Window {
            ask::key(
                "Your previewer has been opened. (c)lose › ",
                &editing::CLOSE,
            )?;
        }
        Ok(())
    }

    /// Like `write`, for a message at a prompt that takes no commands.
    fn write_message(
        &self,
        blank: BlankText,
        keys: TextKeys,
    ) -> anyhow::Result<(Option<String>, LeaveKey)> {
        loop {
            let (text, by) = self.write(blank, keys)?;
            let used = match &text {
                Some(text) if !text.trim().is_empty() => (self.options.prompt.check)(text)?,
                _ => TextUse::Sent,
            };
            match used {
                TextUse::Sent => return Ok((text, by)),
                TextUse::IsAskedAgain => {}
                // Leaving this prompt declines nothing: ctrl-c goes back.
                TextUse::Leaves if keys == TextKeys::Declining => {
                    return Ok((None, LeaveKey::CtrlC));
                }
                TextUse::Leaves => return Ok((None, LeaveKey::Choice)),
            }
        }
    }

    /// `None` if the user leaves, with the key that did it.
    fn write(
        &self,
        blank: BlankText,
        keys: TextKeys,
    ) -> anyhow::Result<(Option<String>, LeaveKey)> {
        let (mut prompts, mut text) = (self.prompts(), String::new());
        let mut help = PromptText::new(&self.options.prompt, &self.typed);
        help.keys = keys;
        loop {
            text = match ask::text(&text, Some(&mut help), self.paint)? {
                Reply::Quit(by) => return Ok((None, by)),
                Reply::Text(text) if text.trim().is_empty() => match blank {
                    BlankText::IsAskedAgain => String::new(),
                    BlankText::Leaves => return Ok((None, LeaveKey::Choice)),
                    BlankText::Counts => return Ok((Some(text), LeaveKey::Choice)),
                },
                Reply::Text(text) => return Ok((Some(text), LeaveKey::Choice)),
                Reply::Editor(written) => prompts.in_editor(&written),
            }
        }
    }

    fn prompts(&self) -> TerminalPrompts {
        TerminalPrompts {
            choices: self.options.choices.clone(),
            paint: self.paint,
            warnings: Vec::new(),
        }
    }

    /// `leaving` says what `q` does.
    fn choose_or_leave(
        &mut self,
        question: &str,
        choices: &[Choice<'_>],
        leaving: &str,
    ) -> anyhow::Result<Option<usize>> {
        self.progress.clear();
        let mut keys: Vec<(char, &str)> = choices
            .iter()
            .map(|choice| (choice.key, choice.label))
            .collect();
        let mut labels: Vec<&str> = keys.iter().map(|(_, label)| *label).collect();
        labels.push("(q)uit");
        keys.push(('q', leaving));
        let _raw = RawMode::enter()?;
        terminal::forget_typed()?;
        let (about, question) = question.rsplit_once('\n').unwrap_or(("", question));
        let about = block(Tone::Plain, about);
        let key = KeyQuestion {
            about: &|_| about.clone(),
            question: &format!("{question} {} › ", labels.join(" / ")),
            keys: &keys,
            approving: None,
            more_help: &[],
            paint: self.paint,
        }
        .key_or_end()?;

        Ok(choices.iter().position(|choice| choice.key == key))
    }
}

impl User for TerminalUser {
    fn review(&mut self, proposal: &ReviewRequest<'_>) -> anyhow::Result<Decision> {
        self.progress.clear();
        if self.options.approve_all {
            // Nothing is asked, so this is ordinary output on stderr, which can be a file.
            let area = if screen::is_stderr() {
                terminal::terminal_size()
            } else {
                TextArea::UNLIMITED
            };

            self.progress
                .lines(Summary::new(proposal, Audience::Informed).lines(area));
            return Ok(Decision::Run(Approved::all(proposal.plan)));
        }

        match only_question(proposal.plan) {
            Some(message) => self.answered(proposal, message),
            None => self.decide(proposal),
        }
    }

    fn approves_unseen(&self) -> bool {
        self.options.approve_all
    }

    fn ask(&mut self, question: &Question<'_>) -> anyhow::Result<Option<String>> {
        self.progress.clear();
        // The review already has the reply.
        if let Question::Answer { .. } | Question::Instead { .. } = question
            && let Some(reply) = self.reply.take()
        {
            return Ok(reply);
        }

        let _raw = RawMode::enter()?;
        let shows_keys = self.shows_keys(question);
        ask::show(&question_lines(question, shows_keys), self.paint);
        let blank = match question {
            Question::NextTurn {
                empty: EmptyInput::Continue | EmptyInput::Retry,
                ..
            }
            | Question::Prose { .. } => BlankText::Counts,
            _ => BlankText::IsAskedAgain,
        };
        let (written, by) = match is_message_alone(question) {
            true => self.write_message(blank, TextKeys::Sending)?,
            false => self.write(blank, TextKeys::Sending)?,
        };
        by.end();
        let text = written.iter().filter(|text| !text.trim().is_empty());
        self.typed.extend(text.cloned());
        Ok(written)
    }

    fn confirm(&mut self, question: &str, flag: &str) -> anyhow::Result<bool> {
        self.progress.clear();
        if self.options.approve_all && flag == APPROVE_ALL {
            return Ok(true);
        }
        let _raw = RawMode::enter()?;
        terminal::forget_typed()?;
        Ok(ask::yes_or_end(question)?)
    }

    fn choose(&mut self, question: &str, choices: &[Choice<'_>]) -> anyhow::Result<Option<usize>> {
        self.choose_or_leave(question, choices, "leave it as it is")
    }

    fn permit(
        &mut self,
        agent: &str,
        question: &PermissionQuestion,
    ) -> anyhow::Result<Option<PermissionDecision>> {
        let text = permission_text_with_differences(agent, question);
        let question = format!("{text}\nAllow it?");
        let chosen = self.choose_or_leave(&question, &PERMISSION_CHOICES, "stop the agent")?;
        if chosen.is_none() {
            interrupt::raise();
        }
        Ok(chosen.map(|index| match index {
            0 => PermissionDecision::Once,
            1 => PermissionDecision::Always,
            _ => PermissionDecision::No,
        }))
    }

    fn report(&mut self, event: Event<'_>) {
        self.progress.report(&event);
    }
}

fn bytes_warning(why: String) -> StyledLine {
    StyledLine::of(Tone::Warning, &format!("{why}."))
}

/// Returns whether the user continues although their changes to the plan are lost then.
fn gives_up_changes(modify: &Modify, initial: &Approved, question: &str) -> io::Result<bool> {
    if interrupt::requested() || modify.approved() == *initial {
        return Ok(true);
    }
    ask::yes_or_end(question)
}

/// Returns whether the plan runs although comments on it were not sent.
fn runs_without_comments(modify: &Modify) -> io::Result<bool> {
    if modify.comments.is_empty() {
        return Ok(true);
    }
    let comments = counted(modify.comments.len(), "comment");
    ask::yes_or_end(&format!("Run the plan without sending your {comments}?"))
}

/// Returns the message of a plan whose only action is a question.
fn only_question(plan: &Plan) -> Option<&str> {
    match plan.actions.as_slice() {
        [action] if plan.memos.is_empty() => action.kind.question(),
        _ => None,
    }
}

/// Lines about the user's changes, or about parts that no longer apply.
fn notes(modify: &Modify, misfits: Option<&Vec<String>>) -> Vec<StyledLine> {
    let warning = |text: &str| vec![StyledLine::of(Tone::Warning, text)];
    let unsent = match modify.comments.len() {
        0 => Vec::new(),
        count => {
            let comments = counted(count, "comment");
            warning(&format!(
                "{comments} not sent: (c) shows them, (s) declines the plan with them."
            ))
        }
    };
    let Some(misfits) = misfits else {
        let mut lines = match modify.problem() {
            Some(problem) => warning(&format!("✗ {problem}; (m)odify shows it.")),
            None if modify.approved().is_empty() => warning(NOTHING_ON),
            None if modify.is_changed() => {
                let (changed, off) = modify.count_changed_and_off();
                warning(&with_changes(changed, off))
            }
            None => Vec::new(),
        };
        lines.extend(unsent);
        return lines;
    };

    let what_runs = if modify.approved().is_empty() {
        NOTHING_FITS
    } else {
        REST_FITS
    };

    let mut lines = warning("Switched off, because it no longer fits your files:");
    lines.extend(
        misfits
            .iter()
            .flat_map(|misfit| block(Tone::Warning, misfit)),
    );
    lines.extend(warning(what_runs));
    lines.extend(unsent);
    lines
}

fn with_changes(changed: usize, off: usize) -> String {
    let part = |number: usize, verb: &str| {
        (number > 0).then(|| format!("{} {verb}", counted(number, "action")))
    };
    let parts: Vec<String> = [part(changed, "changed"), part(off, "switched off")]
        .into_iter()
        .flatten()
        .collect();
    match parts.as_slice() {
        [] => "With your changes; (a) runs what is shown.".to_owned(),
        parts => format!(
            "With your changes: {}; (a) runs what is shown.",
            parts.join(", ")
        ),
    }
}

/// Returns whether the text becomes a message for the model, at a prompt that takes no commands.
fn is_message_alone(question: &Question<'_>) -> bool {
    match question {
        Question::NextTurn { takes_commands, .. } => !takes_commands,
        Question::Answer { turn_of_loop, .. } => turn_of_loop.is_none(),
        Question::Instead { .. } => true,
        Question::Prose { .. } | Question::Reason { .. } => false,
    }
}

/// Prompts of a loop at which its keys are shown.
const MAX_HINTS: u32 = 3;

fn turn_of_loop(question: &Question<'_>) -> Option<u64> {
    match question {
        Question::NextTurn {
            takes_commands: true,
            turn,
            ..
        }
        | Question::Prose { turn, .. } => Some(*turn),
        Question::Answer { turn_of_loop, .. } => *turn_of_loop,
        _ => None,
    }
}

fn keys_hint(question: &Question<'_>, is_shown: bool) -> Option<StyledLine> {
    is_shown.then(|| match turn_of_loop(question) {
        Some(_) => ask::prompt_hint(),
        None if matches!(question, Question::Instead { .. }) => ask::hint_for(
            "enter declines with it",
            "ctrl-d declines without, ctrl-c goes back",
        ),
        None => ask::hint(),
    })
}

/// Returns the lines shown above the prompt.
fn question_lines(question: &Question<'_>, shows_keys: bool) -> Vec<StyledLine> {
    let mut lines = asked_lines(question);
    lines.extend(keys_hint(question, shows_keys));
    lines
}

fn asked_lines(question: &Question<'_>) -> Vec<StyledLine> {
    match question {
        Question::NextTurn {
            session,
            turn,
            empty,
            ..
        } => {
            let prompt = match empty {
                EmptyInput::Nothing => "what should be done?",
                EmptyInput::Continue => "enter lets the model continue, or say what should be done",
                EmptyInput::Retry => {
                    "enter tries again, /model chooses another, or say something else"
                }
            };
            vec![
                StyledLine::of(Tone::Strong, session)
                    .with(Tone::Plain, &format!(" · turn {turn}: {prompt}")),
            ]
        }
        Question::Instead { title } => {
            vec![
                StyledLine::plain("Declining ")
                    .with(Tone::Strong, title)
                    .with(Tone::Plain, ". What should be done instead?"),
            ]
        }
        Question::Reason { change } => {
            vec![
                StyledLine::plain("Why is ")
                    .with(Tone::Strong, change)
                    .with(
                        Tone::Plain,
                        " approved against its review? The reason is recorded.",
                    ),
            ]
        }
        Question::Answer { message, .. } => {
            let mut lines = markdown::quoted(message);
            lines.extend(block(Tone::Strong, "Your answer:"));
            lines
        }
        Question::Prose { message, .. } => {
            let mut lines = Vec::new();
            if let Some(message) = message {
                lines.push(StyledLine::plain(PROSE_HEADING));
                lines.extend(markdown::quoted(message));
            }
            lines.push(StyledLine::of(
                Tone::Strong,
                "Your reply, or enter to ask for the plan:",
            ));
            lines
        }
    }
}
