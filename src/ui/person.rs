//! `Person`: the user at a terminal.

use std::io::{self, Stderr, Write};

use super::ask::{self, Reply};
use super::editor::{Choices, Editor, Opened};
use super::progress::{Manner, Progress};
use super::quiet::APPROVE_ALL;
use super::style::{Line, Paint, Tone, block};
use super::summary;
use super::terminal::{self, Full};
use super::viewer::Viewer;
use super::{draw, markdown};
use crate::text::visible::visible_block;
use crate::workflow::user::{Approved, Decision, Event, Proposal, Question, User};

/// What the person said beforehand.
#[derive(Debug, Clone, Default)]
pub struct Wishes {
    /// `-y`: plans run without a question; messages are still asked for.
    pub approve_all: bool,
    /// `preview_command` of the configuration.
    pub preview_command: Option<String>,
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
    /// Returns the user at the terminal; [`terminal::is_there`] says whether there is one.
    pub fn new(wishes: Wishes, manner: Manner) -> Person {
        Person { wishes, paint: manner.paint, progress: Progress::new(io::stderr(), manner) }
    }

    /// Shows the summary and asks until something is decided.
    fn decide(&mut self, proposal: &Proposal<'_>) -> anyhow::Result<Decision> {
        loop {
            ask::show(&summary::lines(proposal, terminal::room()), self.paint);
            match ask::key(&Line::plain(summary::PROMPT), &['a', 'r', 'm', 's', 'q'], 'q')? {
                'a' => return Ok(Decision::Run(Approved::all(proposal.plan))),
                'r' => self.read("plan.md", proposal.text)?,
                's' => return Ok(Decision::Skip(None)),
                'q' => return Ok(Decision::Quit),
                _ => {}
            }
        }
    }

    /// Shows a text in the configured program, or on a full screen.
    fn read(&self, name: &str, text: &str) -> anyhow::Result<()> {
        if let Some(reader) = self.choices().reader() {
            let folder = tempfile::tempdir()?;
            let path = folder.path().join(name);
            std::fs::write(&path, visible_block(text).as_bytes())?;
            match reader.open(&path) {
                Ok(Opened::Ended) => return Ok(()),
                Ok(Opened::Beside) => {
                    ask::key(&Line::plain(&format!("{} shows the plan. (c)lose › ", reader.name())), &['c'], 'c')?;
                    return Ok(());
                }
                Err(error) => ask::show(&[Line::of(Tone::Warning, &format!("cannot open `{}`: {error}", reader.name()))], self.paint),
            }
        }
        let mut full = Full::enter()?;
        draw::read(&mut full, Viewer::new(name, markdown::lines(text)), self.paint)?;
        Ok(())
    }

    /// Asks for a text of one or more lines.
    fn write(&self) -> anyhow::Result<Option<String>> {
        ask::show(&[ask::hint()], self.paint);
        let mut start = String::new();
        loop {
            match ask::text(&start, self.paint)? {
                Reply::Left => return Ok(None),
                Reply::Text(text) if text.trim().is_empty() => start = String::new(),
                Reply::Text(text) => return Ok(Some(text)),
                Reply::Editor(text) => start = self.in_editor(&text),
            }
        }
    }

    /// Lets the person go on in an editor; what cannot be edited stays as it is.
    fn in_editor(&self, text: &str) -> String {
        let edited = self.choices().message().map(|editor| edit_message(&editor, text));
        let problem = match edited {
            Some(Ok(text)) => return text,
            Some(Err(error)) => error.to_string(),
            None => "no editor is known: set `EDITOR`".to_owned(),
        };
        ask::show(&[Line::of(Tone::Warning, &problem)], self.paint);
        text.to_owned()
    }

    /// Returns the programs that can be chosen from.
    fn choices(&self) -> Choices {
        Choices::here(self.wishes.preview_command.as_deref())
    }
}

impl User for Person {
    fn review(&mut self, proposal: &Proposal<'_>) -> anyhow::Result<Decision> {
        self.progress.clear();
        if self.wishes.approve_all {
            ask::show(&summary::lines(proposal, terminal::room()), self.paint);
            return Ok(Decision::Run(Approved::all(proposal.plan)));
        }
        self.decide(proposal)
    }

    fn ask(&mut self, question: &Question<'_>) -> anyhow::Result<Option<String>> {
        self.progress.clear();
        ask::show(&asked(question), self.paint);
        self.write()
    }

    fn confirm(&mut self, question: &str, flag: &str) -> anyhow::Result<bool> {
        self.progress.clear();
        if self.wishes.approve_all && flag == APPROVE_ALL {
            return Ok(true);
        }
        Ok(ask::yes(question)?)
    }

    fn tell(&mut self, event: Event<'_>) {
        self.progress.tell(&event);
    }
}

/// Returns what is shown before a message is written.
fn asked(question: &Question<'_>) -> Vec<Line> {
    match question {
        Question::NextTurn { session, turn } => {
            vec![Line::of(Tone::Strong, session).with(Tone::Plain, &format!(" · turn {turn}: what shall be done?"))]
        }
        Question::Instead { title } => {
            vec![Line::plain("Skipped ").with(Tone::Strong, title).with(Tone::Plain, ". What shall be done instead?")]
        }
        Question::Answer { message } => {
            let bar = |line: Line| Line::of(Tone::Faint, "▌ ").join(line);
            let mut lines: Vec<Line> = markdown::lines(message).into_iter().map(bar).collect();
            lines.extend(block(Tone::Strong, "Your answer:"));
            lines
        }
    }
}

/// Edits a message in a file of its own.
fn edit_message(editor: &Editor, text: &str) -> io::Result<String> {
    let mut file = tempfile::Builder::new().prefix("teddy-").suffix(".md").tempfile()?;
    file.write_all(text.as_bytes())?;
    if editor.open(file.path())? == Opened::Beside {
        ask::yes("Have you finished writing and saved the file?")?;
    }
    Ok(std::fs::read_to_string(file.path())?.trim_end().to_owned())
}
