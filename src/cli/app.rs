//! Context of every command: global options, project, user, output.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Context as _;
use clap::ValueHint;
use serde_json::Value;

use super::complete;
use super::exit::{self, ExitStatus};
use super::failure::{Diagnosis, InvalidArgument, Unfinished, classify, question};
use super::in_use::{self, describe_in_use};
use crate::cli::failure::unreadable_rather_than_missing;
use crate::host::{env, output, screen};
use crate::project::{Project, ProjectOptions, UserDirs};
use crate::query::paths;
use crate::session::name::SessionName;
use crate::text::hint::{name_session, with_session};
use crate::text::sanitize::{sanitize_block, sanitize_json};
use crate::text::shell_word::shell_word;
use crate::ui::editor::Choices;
use crate::ui::flag_user::{FlagUser, Unapproved};
use crate::ui::progress::OutputStyle;
use crate::ui::prompt::PromptHelp;
use crate::ui::style::{self, Paint, StyledLine, Tone, block};
use crate::ui::terminal_user::{TerminalUser, UserOptions};
use crate::ui::{manual, markdown, terminal};
use crate::workflow::user::User;

/// The running program.
pub(super) struct App {
    pub(super) global: Global,
    start: Instant,
}

impl App {
    pub(super) fn new(global: Global) -> App {
        App {
            global,
            start: Instant::now(),
        }
    }

    /// Opens the project of the current directory.
    pub(super) fn project(&self) -> anyhow::Result<Project> {
        Ok(self.introduce(self.open()?))
    }

    /// Like [`App::project`], for commands that only read: a broken `.teddy/config.yaml` is only
    /// a warning.
    pub(super) fn project_for_reading(&self) -> anyhow::Result<Project> {
        Ok(self.introduce(self.open_with(self.options_for_reading()?)?))
    }

    /// Opens the project of the current directory to read its sessions only. Works in a bare
    /// repository.
    pub(super) fn record(&self) -> anyhow::Result<Project> {
        let options = self.options_for_reading()?;
        let project = Project::open_record(&self.dir()?, self.user_dirs()?, options)?;
        Ok(self.introduce(project))
    }

    fn options_for_reading(&self) -> anyhow::Result<ProjectOptions> {
        let reads_only = true;
        Ok(ProjectOptions {
            reads_only,
            ..self.project_options()?
        })
    }

    /// Has hints name a session, unless the next command uses it anyway.
    pub fn name_session_in_hints(&self, project: &Project, session: &str) {
        let used = project.session_in_use();
        let is_used = used.is_ok_and(|used| used.as_str() == session)
            || env::var("TEDDY_SESSION").as_deref() == Some(session);
        if !is_used {
            name_session(Some(shell_word(session)));
        }
    }

    /// Warns about ignored settings, and with `-v` describes what is in use.
    fn introduce(&self, mut project: Project) -> Project {
        if let Some(error) = &project.broken {
            self.warn(&format!("{error}; the settings in it are ignored"));
        }
        let ignored = in_use::untrusted_settings(&project)
            .into_iter()
            .chain(in_use::forbidden_settings(&project));
        ignored.for_each(|warning| self.warn(&warning));

        if let Some(session) = self
            .global
            .session
            .as_deref()
            .filter(|name| !name.is_empty())
        {
            self.name_session_in_hints(&project, session);
        }
        if self.global.verbose {
            self.note(&describe_in_use(&project));
        }

        let dir = project.repository.teddy_dir().join("manual");
        project.manual_io =
            manual::manual_io(dir, choices(&project), self.paint(screen::is_screen()));
        project
    }

    /// Opens the project of the current directory without telling the user anything about it.
    pub(super) fn open(&self) -> anyhow::Result<Project> {
        self.open_with(self.project_options()?)
    }

    fn open_with(&self, options: ProjectOptions) -> anyhow::Result<Project> {
        if let Some(session) = &options.session {
            session.writable()?;
        }
        Project::open(&self.dir()?, self.user_dirs()?, options)
    }

    /// Returns the current directory, or the one given with `-C`.
    pub(super) fn dir(&self) -> anyhow::Result<PathBuf> {
        let here = env::current_dir().context("the current directory no longer exists")?;
        match &self.global.directory {
            // Without `..`: the parent by name can differ from the actual parent if a link is
            // involved.
            Some(dir) if dir.is_dir() => here
                .join(dir)
                .canonicalize()
                .with_context(|| format!("cannot use `{}`", dir.display())),
            Some(dir) => anyhow::bail!("`{}` is not a directory", dir.display()),
            None => Ok(here),
        }
    }

    /// Returns the current directory, relative to the project's root. Empty if it is outside.
    pub(super) fn dir_in(&self, project: &Project) -> anyhow::Result<PathBuf> {
        paths::prefix(&project.repository, &self.dir()?)
    }

    /// Returns the user's directories outside any project.
    pub(super) fn user_dirs(&self) -> anyhow::Result<UserDirs> {
        let config = env::config_home().context("neither HOME nor XDG_CONFIG_HOME is set")?;
        let config = config.join("teddy");
        let cache_home = env::cache_home().context("neither HOME nor XDG_CACHE_HOME is set")?;
        let config_file =
            env::var_os("TEDDY_CONFIG").map_or_else(|| config.join("config.yaml"), PathBuf::from);

        Ok(UserDirs {
            home: env::home(),
            config,
            config_file,
            cache: cache_home.join("teddy"),
        })
    }

    /// Says that the environment still names another session than the one now in use.
    pub(super) fn warn_of_other_session(&self, used: &str) {
        let session = env::var("TEDDY_SESSION").filter(|session| session != used);
        if let Some(session) = session {
            self.warn(&format!(
                "TEDDY_SESSION={} is set, so commands here still use that session; `unset TEDDY_SESSION` lets them use {used}",
                shell_word(session.as_bytes())
            ));
        }
    }

    /// Returns the project options given on the command line and in the environment.
    pub(super) fn project_options(&self) -> anyhow::Result<ProjectOptions> {
        // Clap treats a variable set to the empty string as a name.
        let unset = env::is_set("TEDDY_SESSION") && env::var_os("TEDDY_SESSION").is_none();
        let session = self
            .global
            .session
            .as_deref()
            .filter(|name| !(unset && name.is_empty()));
        let session = session.map(SessionName::from_address).transpose()?;
        let pair = |text: &String| match text.split_once('=') {
            Some((key, value)) => Ok((key.trim().to_owned(), value.to_owned())),
            None => Err(InvalidArgument {
                message: format!("`-c {text}`: write `key=value`"),
                hint: None,
            }
            .into()),
        };

        Ok(ProjectOptions {
            session,
            settings: self
                .global
                .setting
                .iter()
                .map(pair)
                .collect::<anyhow::Result<_>>()?,
            reads_only: false,
        })
    }

    /// Returns the user: interactive at a terminal, otherwise one that answers by flags.
    pub(super) fn user(&self, project: &Project, approve_all: bool) -> Box<dyn User> {
        self.helped_user(project, approve_all, PromptHelp::default())
    }

    /// Like [`App::user`], with completion and history for messages.
    pub(super) fn helped_user(
        &self,
        project: &Project,
        approve_all: bool,
        prompt: PromptHelp,
    ) -> Box<dyn User> {
        self.user_with(UserOptions {
            approve_all,
            choices: choices(project),
            prompt,
        })
    }

    /// Like [`App::user`], for commands that don't need a project.
    pub(super) fn user_of_no_project(&self) -> Box<dyn User> {
        self.user_with(UserOptions::default())
    }

    fn user_with(&self, options: UserOptions) -> Box<dyn User> {
        if self.is_attended() {
            return Box::new(TerminalUser::new(
                options,
                self.output_style(),
                self.paint(screen::is_screen()),
            ));
        }

        Box::new(FlagUser::new(options.approve_all, self.output_style()))
    }

    /// Returns whether questions can be asked: there is a terminal, and no `--json`.
    pub(super) fn is_attended(&self) -> bool {
        screen::can_prompt() && !self.global.json
    }

    /// Returns colors and width for messages on stderr.
    pub(super) fn output_style(&self) -> OutputStyle {
        OutputStyle {
            paint: self.paint(screen::is_stderr()),
            width: terminal::stderr_width,
            moves_cursor: screen::moves_cursor(),
            is_quiet: self.global.quiet,
        }
    }

    /// Returns whether a stream gets colors.
    pub(super) fn paint(&self, is_terminal: bool) -> Paint {
        let takes_colors = is_terminal && screen::takes_colors();
        let no_color = env::var("NO_COLOR");
        self.global.color.paint(takes_colors, no_color.as_deref())
    }

    pub(super) fn paint_results(&self) -> Paint {
        self.paint(screen::is_stdout())
    }

    pub(super) fn print(&self, text: impl AsRef<[u8]>) -> anyhow::Result<()> {
        output::write_stdout(text).context("writing to standard output")
    }

    /// Prints untrusted text: raw to a pipe or file, sanitized at a terminal.
    pub(super) fn print_foreign(&self, text: &str) -> anyhow::Result<()> {
        if screen::is_stdout() {
            self.print(sanitize_block(text).as_ref())
        } else {
            self.print(text)
        }
    }

    /// Prints the model's last message: Markdown source to a pipe or file, rendered at a terminal.
    /// Sanitized in both cases.
    pub(super) fn print_message(&self, text: &str) -> anyhow::Result<()> {
        if !screen::is_stdout() {
            return self.print(format!("{}\n", sanitize_block(text.trim_end())));
        }

        self.print_lines(markdown::quoted(text))
    }

    /// Prints lines, wrapped at a terminal.
    pub(super) fn print_lines(&self, mut lines: Vec<StyledLine>) -> anyhow::Result<()> {
        if let Some(width) = terminal::stdout_width() {
            lines = style::wrap_all(lines, width);
        }
        self.print(style::text(&lines, self.paint_results()))
    }

    /// Prints a long result, through the pager at a terminal.
    pub(super) fn page(&self, project: &Project, lines: &[StyledLine]) -> anyhow::Result<()> {
        self.page_text(project, &style::text(lines, self.paint_results()))
    }

    fn page_text(&self, project: &Project, text: &str) -> anyhow::Result<()> {
        let pager = project.repository.config("core.pager");
        crate::host::output::page(text, pager.as_deref()).context("writing to standard output")
    }

    /// Shows untrusted Markdown: raw to a pipe or file; at a terminal colored, sanitized and
    /// through the pager.
    pub(super) fn page_markdown(&self, project: &Project, text: &[u8]) -> anyhow::Result<()> {
        self.page_as(project, text, markdown::lines)
    }

    /// Like [`App::page_markdown`], for any other text.
    pub(super) fn page_foreign(&self, project: &Project, text: &[u8]) -> anyhow::Result<()> {
        self.page_as(project, text, |text| block(Tone::Plain, text))
    }

    fn page_as(
        &self,
        project: &Project,
        text: &[u8],
        lines: impl Fn(&str) -> Vec<StyledLine>,
    ) -> anyhow::Result<()> {
        if !screen::is_stdout() {
            return self.print(text);
        }
        let text = String::from_utf8_lossy(text);
        self.page_text(
            project,
            &style::long_text(&text, lines, self.paint_results()),
        )
    }

    pub(super) fn print_json(&self, value: &impl serde::Serialize) -> anyhow::Result<()> {
        self.print(json_text(value)?)
    }

    /// Like [`App::print_json`], with notes.
    pub(super) fn print_json_with_notes(
        &self,
        value: &impl serde::Serialize,
        notes: impl Iterator<Item = String>,
    ) -> anyhow::Result<()> {
        let mut value = serde_json::to_value(value)?;
        value["notes"] = notes.collect();
        self.print_json(&value)
    }

    /// Prints a message to stderr, unless `-q`.
    pub(super) fn note(&self, text: &str) {
        if !self.global.quiet {
            eprint(text);
        }
    }

    /// Prints styled lines to stderr, unless `-q`.
    pub(super) fn note_lines(&self, lines: &[StyledLine]) {
        if !self.global.quiet {
            self.eprint_lines(lines);
        }
    }

    /// Prints the elapsed time if `-v`.
    pub(super) fn note_time(&self) {
        if self.global.verbose {
            self.note(&format!(
                "Took {:.2} s.",
                self.start.elapsed().as_secs_f64()
            ));
        }
    }

    pub(super) fn warn(&self, text: &str) {
        eprint(&format!("warning: {text}"));
    }

    /// Prints styled lines to stderr, even with `-q`.
    pub(super) fn eprint_lines(&self, lines: &[StyledLine]) {
        use std::io::Write as _;

        let lines = match terminal::stderr_width() {
            Some(width) => &style::wrap_all(lines.to_vec(), width),
            None => lines,
        };
        let _ = write!(
            std::io::stderr().lock(),
            "{}",
            style::text(lines, self.paint(screen::is_stderr()))
        );
    }

    /// Reports an error with a hint and returns the exit code. With `--json`, also prints it to
    /// stdout for programs.
    pub(super) fn fail(&self, error: anyhow::Error) -> ExitStatus {
        self.fail_with(error, |hint| hint)
    }

    /// Like [`App::fail`], with another wording of the hint.
    pub(super) fn fail_with(
        &self,
        error: anyhow::Error,
        wording: impl Fn(String) -> String,
    ) -> ExitStatus {
        let (partial, error) = match error.downcast::<Unfinished>() {
            Ok(Unfinished { partial, error }) => (partial, error),
            Err(error) => (Value::Null, error),
        };
        let error = unreadable_rather_than_missing(error, self.dir().ok().as_deref());
        let (message, mut diagnosis) = if crate::host::interrupt::requested() {
            ("interrupted".to_owned(), Diagnosis::interrupted())
        } else {
            (
                format!("{error:#}"),
                self.with_detected_models(classify(&error)),
            )
        };

        diagnosis.hint = diagnosis.hint.map(|hint| with_session(&hint).into_owned());

        if self.global.json {
            let partial = with_review(with_question(partial, question(&error)), &error);
            // If stdout is closed, the message is still on stderr.
            let _ = self.print_json(&diagnosis.to_json(&message, partial));
        }

        let code = diagnosis.kind.code();
        if code == exit::INTERRUPTED {
            eprint(&message);
            return code;
        }

        eprint(&format!("error: {message}"));
        if let Some(question) = question(&error) {
            self.eprint_lines(&markdown::quoted(question));
        }

        if let Some(hint) = diagnosis.hint.map(wording) {
            eprint(&format!("hint: {hint}"));
        }

        code
    }
}

/// Writes a text to stderr, wrapped at a terminal. Write errors are ignored.
pub(super) fn eprint(text: &str) {
    use std::io::Write as _;

    let text = &with_session(text);
    let text = match terminal::stderr_width() {
        Some(width) => {
            let lines = style::wrap_all(block(Tone::Plain, text), width);
            style::text(&lines, Paint::Bare)
        }
        None => format!("{}\n", sanitize_block(text)),
    };
    let _ = write!(std::io::stderr().lock(), "{text}");
}

/// Adds the waiting question to the JSON output.
fn with_question(partial: Value, question: Option<&str>) -> Value {
    match question {
        Some(question) if partial.is_null() => serde_json::json!({ "question": question }),
        _ => partial,
    }
}

/// Adds the plan to the error that it was neither approved nor rejected.
fn with_review(mut partial: Value, error: &anyhow::Error) -> Value {
    let Some(Unapproved { review }) = error.downcast_ref() else {
        return partial;
    };
    if partial.is_null() {
        partial = serde_json::json!({
            "session": review["session"],
            "turn": review["turn"],
            "commit": null,
            "status": "planned",
        });
    }
    partial["review"] = review.clone();
    partial
}

/// Formats a value as JSON, with control characters escaped.
pub(super) fn json_text(value: &impl serde::Serialize) -> anyhow::Result<String> {
    let text = serde_json::to_string_pretty(value)?;
    Ok(format!("{}\n", sanitize_json(&text)))
}

/// Returns the programs that the user configured.
pub(super) fn choices(project: &Project) -> Choices {
    Choices {
        preview_command: project.settings.preview_command.clone(),
        core_editor: project.repository.config("core.editor"),
    }
}

/// Global options.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Global options")]
pub(super) struct Global {
    /// Run as if started in this directory
    #[arg(short = 'C', global = true, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(super) directory: Option<PathBuf>,
    /// The session to work on, instead of the one last used here
    #[arg(short, long, global = true, env = "TEDDY_SESSION", hide_env_values = true, value_name = "NAME", add = complete::with(complete::sessions))]
    pub(super) session: Option<String>,
    /// Override a setting for this call, such as `-c replan.max=0`
    #[arg(short = 'c', global = true, value_name = "KEY=VALUE", add = complete::settings())]
    pub(super) setting: Vec<String>,
    /// Print the result as JSON on standard output
    #[arg(long, global = true)]
    pub(super) json: bool,
    /// Print only errors and warnings
    #[arg(short, long, global = true)]
    pub(super) quiet: bool,
    /// Also print the project, session, model and settings in use, and how long it took
    #[arg(short, long, global = true)]
    pub(super) verbose: bool,
    /// When to use colours
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(super) color: Color,
}

impl Global {
    /// Resolves a path typed after these options.
    pub(super) fn resolve(&self, typed: &Path) -> PathBuf {
        match &self.directory {
            Some(dir) => dir.join(typed),
            None => typed.to_owned(),
        }
    }

    /// Merges the options of a command typed while the program runs into these; new values win.
    pub(super) fn merge(&self, typed: Global) -> Global {
        Global {
            directory: typed.directory.or_else(|| self.directory.clone()),
            session: typed.session.or_else(|| self.session.clone()),
            setting: self.setting.iter().cloned().chain(typed.setting).collect(),
            color: self.color,
            quiet: self.quiet || typed.quiet,
            verbose: self.verbose || typed.verbose,
            json: typed.json,
        }
    }
}

/// When to use colours.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(super) enum Color {
    /// On a terminal, unless `NO_COLOR` is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

impl Color {
    /// Resolves the choice for a stream. `no_color` is the value of `NO_COLOR`.
    pub(super) fn paint(self, is_terminal: bool, no_color: Option<&str>) -> Paint {
        // An empty `NO_COLOR` counts as unset, see no-color.org.
        let is_allowed = no_color.is_none_or(str::is_empty);
        match self {
            Color::Always => Paint::Colors,
            Color::Auto | Color::Never if !is_terminal => Paint::Bare,
            Color::Auto if is_allowed => Paint::Colors,
            Color::Auto | Color::Never => Paint::Weights,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_follow_the_choice_and_the_variable() {
        assert_eq!(Color::Auto.paint(true, None), Paint::Colors);
        assert_eq!(Color::Auto.paint(true, Some("1")), Paint::Weights);
        assert_eq!(Color::Auto.paint(true, Some("")), Paint::Colors);
        assert_eq!(Color::Auto.paint(false, None), Paint::Bare);
        assert_eq!(Color::Always.paint(false, Some("1")), Paint::Colors);
        assert_eq!(Color::Never.paint(true, None), Paint::Weights);
        assert_eq!(Color::Never.paint(false, None), Paint::Bare);
    }
}
