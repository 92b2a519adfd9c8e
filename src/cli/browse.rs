//! `teddy browse`: browses sessions and turns in a full-screen view.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::path::Path;
use std::sync::Arc;

use tempfile::TempDir;

use super::app::App;
use super::begin::no_sessions;
use super::complete;
use super::exit::{self, ExitStatus};
use crate::cli::app::choices;
use crate::cli::run_nested;
use crate::host::file::prefixed_temporary_dir;
use crate::host::{clipboard, screen};
use crate::project::{Project, project_name};
use crate::query::view::timeline::timeline;
use crate::query::view::turn_page::{ChangedFile, FileView};
use crate::session::name::SessionName;
use crate::ui::ask;
use crate::ui::browse::linear::LinearBrowser;
use crate::ui::browse::screen::browse;
use crate::ui::browse::source::{BrowseSource, Opener};
use crate::ui::browse::{BrowseAction, TurnAddress};
use crate::ui::editor::{self, EditorUse};
use crate::ui::style::{StyledLine, Tone};
use crate::ui::terminal::{self, RawMode};
use crate::workflow::restore::steps::steps_to;
use crate::workflow::user::NobodyToAsk;

/// Browse sessions and turns full-screen
///
/// To the left is the tree of sessions, branches and turns, to the right the turn: request and
/// answer, differences, outputs, input and facts. Turns that are made elsewhere appear. From here
/// you can search, compare, branch, undo, restore and land; whatever changes something shows it
/// first and asks. `?` lists the keys.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  teddy browse\n  teddy browse add-auth             only this session, and work on it\n  teddy browse origin/add-auth      a session that was fetched\n  teddy browse --linear             line by line, for screen readers and simple terminals\n  teddy browse --json               all sessions with their turns"
)]
pub(super) struct Args {
    /// Show only this session, and work on it
    #[arg(value_name = "SESSION", add = complete::with(complete::sessions))]
    of: Option<String>,
    /// Read line by line, without a full screen; `help` lists the commands
    #[arg(long, conflicts_with = "json")]
    linear: bool,
}

pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<ExitStatus> {
    let of = args.of.as_deref().map(SessionName::from_address);
    let only = of.transpose()?;
    if let Some(own) = only.as_ref().filter(|only| only.remote().is_none()) {
        app.global.session = Some(own.to_string());
    }
    let project = app.record()?;
    if let Some(only) = &only {
        project.store().tip_id(only)?;
    }

    if app.global.json {
        app.print_json(&timeline(&project, only.as_ref())?)?;
        return Ok(exit::SUCCESS);
    }
    if project.store().sessions()?.is_empty() && only.is_none() {
        app.note(no_sessions(&project));
        return Ok(exit::SUCCESS);
    }
    match args.linear {
        true => read(app, &project, only)?,
        false => show(app, &project, only)?,
    }

    Ok(exit::SUCCESS)
}

/// Opens the full-screen browser.
fn show(app: &App, project: &Project, only: Option<SessionName>) -> anyhow::Result<()> {
    if !screen::can_prompt() {
        let hint = "`teddy browse --linear` reads line by line; `teddy log --all` lists the turns";
        return Err(NobodyToAsk::new("a full screen needs a terminal", hint).into());
    }

    let (dir, user_dirs, options) = (app.dir()?, app.user_dirs()?, app.project_options()?);
    let open: Opener =
        Arc::new(move || Project::open_record(&dir, user_dirs.clone(), options.clone()));
    let source = BrowseSource::start(&open, only)?;
    let mut actions = Actions::new(app, project);
    actions.is_hidden = true;
    let paint = app.paint(screen::is_screen());
    let mut carry_out = |action| actions.carry_out(action);
    let title = format!("Sessions of {}", project_name(project));
    Ok(browse(&source, &mut carry_out, &title, paint)?)
}

/// Runs the line-by-line browser.
fn read(app: &App, project: &Project, only: Option<SessionName>) -> anyhow::Result<()> {
    let mut actions = Actions::new(app, project);
    let mut carry_out = |action| actions.carry_out(action);
    let (mut out, paint) = (io::stdout(), app.paint_results());
    let mut browser = LinearBrowser::new(project, only, &mut carry_out, &mut out, paint);
    let read = browser.run(
        &mut io::BufReader::new(io::stdin()),
        io::stdin().is_terminal(),
    );
    // The reader closed the pipe.
    let has_left = |error: &anyhow::Error| {
        let why = error.downcast_ref::<io::Error>().map(io::Error::kind);
        why == Some(io::ErrorKind::BrokenPipe)
    };
    match read {
        Err(error) if has_left(&error) => Ok(()),
        read => read,
    }
}

const OVERLAP_QUESTION: &str = "Your edits overlap with the turns': keep (y)ours / take (t)heirs / write \
                       (m)arkers / make the files (e)qual to the turn / (q)uit › ";

/// Answers to [`OVERLAP_QUESTION`].
const OVERLAP_KEYS: [(char, &str); 5] = [
    ('y', "keep your side"),
    ('t', "take the side of the turns"),
    ('m', "write conflict markers"),
    (
        'e',
        "make the files equal to the turn; your edits are recorded first",
    ),
    ('q', "change nothing"),
];

/// Carries out actions for the browser.
struct Actions<'a> {
    app: &'a App,
    project: &'a Project,
    /// Directories of opened files. Kept because a window can still show them.
    opened: Vec<TempDir>,
    /// Whether to wait for a key after output, before the full screen hides it.
    is_hidden: bool,
}

impl Actions<'_> {
    fn carry_out(&mut self, action: BrowseAction) -> String {
        let is_shown = match &action {
            BrowseAction::Copy(_) | BrowseAction::Open(_) => false,
            BrowseAction::Review(session) => self.has_plan(session),
            _ => true,
        };
        let result = match action {
            BrowseAction::Copy(id) => clipboard::copy(&id)
                .map(|copied| format!("{id} {}", copied.predicate()))
                .map_err(Into::into),
            BrowseAction::Open(file) => self.open(&file),
            BrowseAction::Branch(turn) => self.branch(&turn),
            BrowseAction::Undo(turn) => self.undo(&turn),
            BrowseAction::Restore(turn) => self.restore(&turn),
            BrowseAction::Land(turn) => self.land(&turn),
            BrowseAction::Review(session) => self.review(&session),
        };

        let message = result.unwrap_or_else(|error| {
            let message = format!("{error:#}");
            if is_shown {
                self.app.fail(error);
            }
            message
        });
        if is_shown {
            self.pause();
        }
        message
    }
}

impl<'a> Actions<'a> {
    fn new(app: &'a App, project: &'a Project) -> Actions<'a> {
        Actions {
            app,
            project,
            opened: Vec::new(),
            is_hidden: false,
        }
    }

    /// Runs a `teddy` command in this process.
    fn run(&self, args: &[&str]) -> anyhow::Result<ExitStatus> {
        let command_line = format!("teddy {}", args.join(" "));
        self.show_line(StyledLine::of(Tone::Accent, "▶ ").with(Tone::Strong, &command_line));
        run_nested(
            self.app,
            args.iter().map(|word| (*word).to_owned()).collect(),
        )
    }

    fn show_line(&self, line: StyledLine) {
        self.app.eprint_lines(&[line]);
    }

    /// Restores the files to a turn, after a preview.
    fn restore(&self, turn: &TurnAddress) -> anyhow::Result<String> {
        let name = turn.to_string();
        let question = format!("Take your files back to turn {name}?");
        self.run_with_preview(&["restore", &name], &question)
    }

    /// Undoes the turns after the given one.
    fn undo(&self, turn: &TurnAddress) -> anyhow::Result<String> {
        let mut user = self.app.user(self.project, true);
        let steps = steps_to(self.project, turn.number, user.as_mut())?;
        drop(user);
        if steps == 0 {
            let text = format!("Nothing to undo: no turn after {turn} has changes in your files.");
            self.app.note(&text);
            return Ok(text);
        }
        let question = format!("Undo what came after turn {turn}?");
        self.run_with_preview(&["undo", &steps.to_string()], &question)
    }

    /// Previews a restore or an undo, asks, and runs it.
    fn run_with_preview(&self, args: &[&str], question: &str) -> anyhow::Result<String> {
        let preview = self.run(&[args, &["-n"]].concat())?;
        let options: &[&str] = if preview == exit::OVERLAP {
            match self.choose(OVERLAP_QUESTION, &OVERLAP_KEYS)? {
                'y' => &["--ours"],
                't' => &["--theirs"],
                'm' => &["--markers"],
                // The user has just confirmed the loss.
                'e' => &["--exact", "-y"],
                _ => return Ok(NOTHING_CHANGED.to_owned()),
            }
        } else if self.is_wanted(question)? {
            &[]
        } else {
            return Ok(NOTHING_CHANGED.to_owned());
        };

        let code = self.run(&[args, options].concat())?;
        Ok(describe_outcome(code, &args.join(" ")))
    }

    /// Commits turns, after a preview of the commit.
    fn land(&self, turn: &TurnAddress) -> anyhow::Result<String> {
        let only = format!("only turn {}", turn.number);
        let question = format!(
            "Land (a)ll turns that have not landed / only (t)urn {} / (q)uit › ",
            turn.number
        );
        let keys = [
            ('a', "all that have not landed"),
            ('t', only.as_str()),
            ('q', "commit nothing"),
        ];
        let number = turn.number.to_string();
        let args: &[&str] = match self.choose(&question, &keys)? {
            'a' => &["land"],
            't' => &["land", &number],
            _ => return Ok(NOTHING_CHANGED.to_owned()),
        };

        let preview = self.run(&[args, &["-n"]].concat())?;
        if preview != exit::SUCCESS || !self.is_wanted("Commit this?")? {
            return Ok(NOTHING_CHANGED.to_owned());
        }
        let code = self.run(args)?;
        Ok(describe_outcome(code, &args.join(" ")))
    }

    fn has_plan(&self, session: &SessionName) -> bool {
        let store = self.project.store();
        let tip = store.tip(session);
        tip.and_then(|tip| store.draft(&tip))
            .is_ok_and(|draft| draft.is_planned())
    }

    /// Reviews the plan that waits in a session. Its screen of differences takes the comments.
    fn review(&self, session: &SessionName) -> anyhow::Result<String> {
        if !self.has_plan(session) {
            return Ok(format!(
                "comments are for a plan before it runs, and none waits in {session}"
            ));
        }
        let code = self.run(&["--session", session.as_str(), "execute"])?;
        Ok(describe_outcome(code, "execute"))
    }

    /// Starts a session at a turn.
    fn branch(&self, turn: &TurnAddress) -> anyhow::Result<String> {
        let free = self
            .project
            .free_name(SessionName::parse(turn.session.own().as_str())?)?;
        let question = format!("Start a session at turn {turn}. Its name:");
        self.show_line(StyledLine::of(Tone::Strong, &question));
        let Some(name) = self.text(free.as_str())? else {
            return Ok(NOTHING_CHANGED.to_owned());
        };
        let code = self.run(&["branch", &turn.to_string(), "--", name.trim()])?;
        Ok(describe_outcome(code, &format!("branch {}", name.trim())))
    }

    /// Opens a file as of a turn. Changes to the opened copy are discarded.
    fn open(&mut self, file: &ChangedFile) -> anyhow::Result<String> {
        let version = match file.after(&self.project.repository) {
            FileView::Absent => file.before(&self.project.repository),
            version => version,
        };
        let FileView::Text(text) = version else {
            return Ok(format!("`{}` is no text that can be opened", file.path));
        };

        let dir = prefixed_temporary_dir("teddy-browse-")?;
        let name = Path::new(&file.path).file_name();
        let path = dir.path().join(name.unwrap_or("file".as_ref()));
        std::fs::write(&path, text)?;
        let mut mode = std::fs::metadata(&path)?.permissions();
        mode.set_readonly(true);
        std::fs::set_permissions(&path, mode)?;

        let program = choices(self.project).message()?;
        let used = editor::open(&program, &path)?;
        if used == EditorUse::Window {
            self.opened.push(dir);
        }
        Ok(format!("`{}` was opened as it was then", file.path))
    }

    /// Asks a question answered by a key, or by a line without a full screen.
    fn choose(&self, question: &str, keys: &[(char, &str)]) -> anyhow::Result<char> {
        if screen::can_prompt() {
            return Ok(ask::key_or_end(question, keys)?);
        }
        let last = keys.last().map_or('q', |(key, _)| *key);
        let answer = self.line(question)?.trim().to_lowercase().chars().next();
        let is_known = |key: &char| keys.iter().any(|(other, _)| other == key);
        Ok(answer.filter(is_known).unwrap_or(last))
    }

    fn is_wanted(&self, question: &str) -> anyhow::Result<bool> {
        let keys = [('y', "yes"), ('n', "no, change nothing")];
        Ok(self.choose(&format!("{question} (y/n) › "), &keys)? == 'y')
    }

    /// Asks for a text, with an initial value.
    fn text(&self, start: &str) -> anyhow::Result<Option<String>> {
        if screen::can_prompt() {
            let paint = self.app.paint(screen::is_screen());
            return Ok(match ask::text(start, None, paint)? {
                ask::Reply::Text(text) => Some(text).filter(|text| !text.trim().is_empty()),
                ask::Reply::Editor(_) | ask::Reply::Quit(_) => None,
            });
        }
        let text = self.line(&format!("({start}) › "))?;
        Ok(match text.trim() {
            "" => Some(start.to_owned()),
            text => Some(text.to_owned()),
        })
    }

    /// Reads an answer as a line; empty if stdin is not a terminal.
    fn line(&self, question: &str) -> anyhow::Result<String> {
        if !io::stdin().is_terminal() {
            self.app.note("No terminal to ask in, so nothing is done.");
            return Ok(String::new());
        }
        write!(io::stderr(), "{question}")?;
        let mut line = String::new();
        io::stdin().lock().read_line(&mut line)?;
        Ok(line)
    }

    /// Waits for a key if the full screen would hide the output.
    fn pause(&self) {
        if !self.is_hidden {
            return;
        }
        self.show_line(StyledLine::of(
            Tone::Faint,
            "Press a key to go back to the browser.",
        ));
        if let Ok(_raw) = RawMode::enter() {
            let _ = terminal::next_key();
        }
    }
}

/// Status after an action that changed nothing.
const NOTHING_CHANGED: &str = "Nothing was changed.";

fn describe_outcome(code: ExitStatus, command: &str) -> String {
    match code == exit::SUCCESS {
        // A review that is left has run nothing.
        true if command == "execute" => "back from the review".to_owned(),
        true => format!("done: {command}"),
        false => format!("not done: {command}"),
    }
}
