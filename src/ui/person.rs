//! `Person`: the user at a terminal.

use std::io::{self, Stderr};

use ratatui::crossterm::style::force_color_output;

use super::ask::{self, KeyQuestion, Reply};
use super::desk::Terminal;
use super::editor::{self, Choices, EditorUse};
use super::modify::Modify;
use super::progress::{Manner, Progress};
use super::quiet::APPROVE_ALL;
use super::room::TextArea;
use super::style::{Paint, StyledLine, Tone, block};
use super::summary;
use super::terminal::{self, Full, RawMode};
use super::viewer::Viewer;
use super::{markdown, reader};
use crate::host::editor::Editor;
use crate::host::{interrupt, screen};
use crate::text::visible::visible_block;
use crate::workflow::user::{Approved, Choice, Decision, Event, Question, ReviewRequest, User};

/// What is said when the person comes back from changes that are not run yet.
const KEPT: &str = "Your changes are kept in (m)odify; (a) runs the plan as it came.";

/// What is said when some of the plan no longer fits.
const REST_FITS: &str = "(a) runs the rest, switched as it was; (m)odify shows it.";
/// What is said when nothing of the plan fits.
const NOTHING_FITS: &str =
    "Nothing is left to run: (s)kip the plan, or (q)uit and keep it until it fits again.";

/// What the person said beforehand.
#[derive(Debug, Clone, Default)]
pub struct Wishes {
    /// `-y`: plans run without a question; messages are still asked for.
    pub approve_all: bool,
    /// The programs that open files.
    pub choices: Choices,
}

/// The user at a terminal: keys from stdin, words on stderr.
pub struct Person {
    /// What was said beforehand.
    wishes: Wishes,
    /// With colours or without.
    paint: Paint,
    /// Tells events.
    progress: Progress<Stderr>,
}

impl Person {
    /// Returns the user at the terminal, with colours on its screen or without; `screen::is_there`
    /// says whether there is one.
    pub fn new(wishes: Wishes, manner: Manner, paint: Paint) -> Person {
        // The variable NO_COLOR has been weighed against `--color` already.
        force_color_output(paint == Paint::Colors);
        Person {
            wishes,
            paint,
            progress: Progress::new(io::stderr(), manner),
        }
    }

    /// Shows the summary and asks until something is decided.
    fn decide(&mut self, proposal: &ReviewRequest<'_>) -> anyhow::Result<Decision> {
        let mut modify = Modify::new(proposal);
        let misfits = modify.leave_out_misfits(proposal)?;
        let _raw = RawMode::enter()?;
        terminal::forget_typed()?;
        loop {
            if interrupt::requested() {
                return Ok(Decision::Quit);
            }

            let fits = proposal.simulation.diagnostics.is_empty();
            let kept = kept(&modify, (!fits).then_some(&misfits));
            match self.ask_what(proposal, &kept)? {
                // As it came it cannot run.
                'a' if !fits => {
                    let approved = modify.approved();
                    if !approved.is_empty() {
                        return Ok(Decision::Run(approved));
                    }
                }
                'a' => return Ok(Decision::Run(Approved::all(proposal.plan))),
                'r' => self.read("plan.md", proposal.text)?,
                's' => return Ok(Decision::Skip(None)),
                'q' => return Ok(Decision::Quit),
                _ => {
                    if let Some(approved) = modify.run(proposal, &mut self.desk())? {
                        return Ok(Decision::Run(approved));
                    }
                }
            }
        }
    }

    /// Shows the summary and returns the key that was pressed.
    fn ask_what(&self, proposal: &ReviewRequest<'_>, kept: &[StyledLine]) -> io::Result<char> {
        let about = |room: TextArea| {
            let mut lines = summary::lines(proposal, room);
            lines.extend_from_slice(kept);
            lines
        };
        let keys = &['a', 'r', 'm', 's', 'q'];
        KeyQuestion {
            about: &about,
            question: summary::PROMPT,
            keys,
            leave: 'q',
            paint: self.paint,
        }
        .key_or_end()
    }

    /// Shows a text in the configured program, or on a full screen.
    fn read(&self, name: &str, text: &str) -> anyhow::Result<()> {
        if let Some(reader) = self.wishes.choices.reader()? {
            match self.read_with(&reader, name, text) {
                Ok(()) => return Ok(()),
                Err(error) => ask::show(
                    &[StyledLine::of(Tone::Warning, &error.to_string())],
                    self.paint,
                ),
            }
        }

        let mut full = Full::enter()?;
        reader::read(
            &mut full,
            Viewer::new(name, markdown::lines(text)),
            self.paint,
        )?;
        Ok(())
    }

    /// Shows a text in a program, deceptive characters as code points.
    fn read_with(&self, reader: &Editor, name: &str, text: &str) -> io::Result<()> {
        let folder = tempfile::Builder::new().prefix("teddy-").tempdir()?;
        let path = folder.path().join(name);
        std::fs::write(&path, visible_block(text).as_bytes())?;
        if editor::open(reader, &path)? == EditorUse::Beside {
            ask::key("Your previewer has been opened. (c)lose › ", &['c'], 'c')?;
        }
        Ok(())
    }

    /// Asks for a text of one or more lines; a blank one is no answer.
    fn write(&self) -> anyhow::Result<Option<String>> {
        let (mut desk, mut text) = (self.desk(), String::new());
        ask::show(&[ask::hint()], self.paint);
        loop {
            text = match ask::text(&text, self.paint)? {
                Reply::Left(by) => {
                    by.end();
                    return Ok(None);
                }
                Reply::Text(blank) if blank.trim().is_empty() => String::new(),
                Reply::Text(text) => return Ok(Some(text)),
                Reply::Editor(written) => desk.in_editor(&written),
            }
        }
    }

    /// Returns the terminal with the programs that can be chosen from.
    fn desk(&self) -> Terminal {
        Terminal {
            choices: self.wishes.choices.clone(),
            paint: self.paint,
        }
    }
}

impl User for Person {
    fn review(&mut self, proposal: &ReviewRequest<'_>) -> anyhow::Result<Decision> {
        self.progress.clear();
        if self.wishes.approve_all {
            // Nothing is asked, so that these are words as any others: they go where stderr goes.
            let room = if screen::is_stderr() {
                terminal::room()
            } else {
                TextArea::UNLIMITED
            };

            self.progress.lines(summary::lines(proposal, room));
            return Ok(Decision::Run(Approved::all(proposal.plan)));
        }

        self.decide(proposal)
    }

    fn approves_unseen(&self) -> bool {
        self.wishes.approve_all
    }

    fn ask(&mut self, question: &Question<'_>) -> anyhow::Result<Option<String>> {
        self.progress.clear();
        let _raw = RawMode::enter()?;
        ask::show(&asked(question), self.paint);
        self.write()
    }

    fn confirm(&mut self, question: &str, flag: &str) -> anyhow::Result<bool> {
        self.progress.clear();
        if self.wishes.approve_all && flag == APPROVE_ALL {
            return Ok(true);
        }
        Ok(ask::yes_or_end(question)?)
    }

    fn choose(&mut self, question: &str, choices: &[Choice<'_>]) -> anyhow::Result<Option<usize>> {
        self.progress.clear();
        let labels: Vec<&str> = choices
            .iter()
            .map(|choice| choice.label)
            .chain(["(q)uit"])
            .collect();
        let keys: Vec<char> = choices
            .iter()
            .map(|choice| choice.key)
            .chain(['q'])
            .collect();
        let key = ask::key_or_end(&format!("{question} {} › ", labels.join(" / ")), &keys, 'q')?;

        Ok(choices.iter().position(|choice| choice.key == key))
    }

    fn tell(&mut self, event: Event<'_>) {
        self.progress.tell(&event);
    }
}

/// Returns what to know of changes that are not run yet, and of what no longer fits, where that is
/// so.
fn kept(modify: &Modify, misfits: Option<&Vec<String>>) -> Vec<StyledLine> {
    let Some(misfits) = misfits else {
        let changed = modify.is_changed();
        let kept = changed.then(|| StyledLine::of(Tone::Warning, KEPT));
        return kept.into_iter().collect();
    };

    let what_runs = if modify.approved().is_empty() {
        NOTHING_FITS
    } else {
        REST_FITS
    };

    let heading = StyledLine::of(
        Tone::Warning,
        "Switched off, because it no longer fits your files:",
    );
    let listed = misfits
        .iter()
        .flat_map(|misfit| block(Tone::Warning, misfit));
    let end = StyledLine::of(Tone::Warning, what_runs);

    [heading].into_iter().chain(listed).chain([end]).collect()
}

/// Returns what is shown before a message is written.
fn asked(question: &Question<'_>) -> Vec<StyledLine> {
    match question {
        Question::NextTurn { session, turn } => {
            vec![StyledLine::of(Tone::Strong, session).with(
                Tone::Plain,
                &format!(" · turn {turn}: what should be done?"),
            )]
        }
        Question::Instead { title } => {
            vec![
                StyledLine::plain("Skipped ")
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
        Question::Answer { message } => {
            let mut lines = markdown::quoted(message);
            lines.extend(block(Tone::Strong, "Your answer:"));
            lines
        }
    }
}
