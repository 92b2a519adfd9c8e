//! Shell completion of names that only the project knows: sessions, turns, agents, models.
//! Commands, options and their values come from the parser.
//!
//! The project is the one that the command line names so far (`-C`, `-s`). Nothing is written, and
//! errors result in no candidates.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::path::Path;
use std::sync::OnceLock;

use clap::{Command, ValueHint};
use clap_complete::engine::{
    self, ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter as _,
};
use clap_complete::env::{Bash, Elvish, EnvCompleter, Fish, Powershell, Shells, Zsh};

use crate::config::unknown;
use crate::git::remote;
use crate::host::env;
use crate::project::Project;
use crate::session::input::ListScope;
use crate::session::name::SessionName;
use crate::session::store::DRAFT;
use crate::text::context_list;
use crate::text::resource::is_url;
use crate::text::sanitize::sanitize_line;
use crate::workflow::change::status;
use crate::workflow::context::edit;
use crate::workflow::model::{agents, pipelines as known_pipelines};

/// Variable in which a completion script names the shell.
pub(super) const VARIABLE: &str = "TEDDY_COMPLETE";
/// Variable with the index of the word to complete; by default the last one.
const INDEX: &str = "_CLAP_COMPLETE_INDEX";
/// Variable with the separator between candidates.
const SEPARATOR: &str = "_CLAP_IFS";
const MAX_TURNS: usize = 50;

/// Candidates, each with a description.
type Offers = Vec<(String, String)>;
/// Returns a project's candidates for an incomplete word.
type Offer = fn(&Project, &str) -> anyhow::Result<Offers>;

/// Opens the project that a command line is about.
type OpenProject = fn(Vec<OsString>) -> Option<Project>;
/// How to open the project. Set at startup to avoid an import cycle: the global options use the
/// completers of this module.
static OPEN: OnceLock<OpenProject> = OnceLock::new();
/// Whether bash asks. Set at startup, because clap removes the variable.
static IS_BASH: OnceLock<bool> = OnceLock::new();

/// Answers a completion request and exits, if this process was started by a completion script.
pub(super) fn answer(open: OpenProject) {
    let _ = OPEN.set(open);
    let _ = IS_BASH.set(env::var(VARIABLE).is_some_and(|shell| shell == "bash"));
    clap_complete::CompleteEnv::with_factory(parser)
        .shells(SHELLS)
        .var(VARIABLE)
        .complete();
}

/// Returns the parser. Options are offered only if the word starts with `-`, or if there is nothing
/// else.
fn parser() -> Command {
    let (line, at) = typed(env::args());
    let is_option = line
        .get(at)
        .is_some_and(|word| word.as_encoded_bytes().starts_with(b"-"));

    // The engine offers only one of a command and its visible alias.
    let one_name = |command: Command| match command.get_name() {
        "resume" => command.visible_alias(None).alias("continue"),
        _ => command,
    };
    let before = line.get(..at).unwrap_or_default();
    let mut parser = super::parser_of(before).mut_subcommands(one_name);
    if before.iter().any(|word| word == "--") {
        parser = parser.mut_subcommands(with_paths);
    }

    if is_option {
        parser
    } else {
        without_options(parser)
    }
}

/// Offers paths for every word of a command that takes paths after `--`: the engine counts these
/// words as if they came before it.
fn with_paths(command: Command) -> Command {
    let takes_paths =
        |arg: &clap::Arg| arg.is_last_set() && arg.get_value_hint() == ValueHint::AnyPath;
    if !command.get_positionals().any(takes_paths) {
        return command;
    }

    command.mut_args(|arg| match arg.is_positional() {
        true => arg.add(ArgValueCompleter::new(PathCompleter::any())),
        false => arg,
    })
}

/// Hides the options of a command and its subcommands.
fn without_options(command: Command) -> Command {
    let hidden = |arg: clap::Arg| {
        if arg.is_positional() {
            arg
        } else {
            arg.hide(true)
        }
    };
    command
        .disable_help_flag(true)
        .disable_version_flag(true)
        .mut_args(hidden)
        .mut_subcommands(without_options)
}

/// Returns the arguments typed so far, and the index of the one to complete.
fn typed(args: Vec<OsString>) -> (Vec<OsString>, usize) {
    let line: Vec<OsString> = args
        .into_iter()
        .skip_while(|word| word != "--")
        .skip(1)
        .map(|word| match word.to_str() {
            Some(text) if IS_BASH.get() == Some(&true) => unquoted(text).into(),
            _ => word,
        })
        .collect();
    let last = line.len().saturating_sub(1);
    let at = env::var(INDEX)
        .and_then(|index| index.parse().ok())
        .unwrap_or(last);

    (line, at)
}

/// bash passes words as they are typed: with escapes, and with a quote that is still open.
fn unquoted(word: &str) -> String {
    let (mut plain, mut quote) = (String::new(), None);
    let mut rest = word.chars();
    while let Some(c) = rest.next() {
        match c {
            '\\' if quote != Some('\'') => plain.extend(rest.next()),
            '\'' | '"' if quote.is_none() => quote = Some(c),
            _ if quote == Some(c) => quote = None,
            _ => plain.push(c),
        }
    }
    plain
}

fn project() -> Option<Project> {
    let (mut line, at) = typed(env::args());
    line.truncate(at);
    OPEN.get()?(line)
}

pub(super) const SHELLS: Shells<'_> = Shells(&[
    &Quoting {
        shell: &Bash,
        escape: '\\',
    },
    &Elvish,
    &Fish,
    &Quoting {
        shell: &Powershell,
        escape: '`',
    },
    &Zsh,
]);

/// A shell that inserts candidates into the command line verbatim, so that they must be quoted: a
/// file can be named `$(rm -rf ~)`.
struct Quoting {
    shell: &'static (dyn EnvCompleter + Sync),
    /// The shell's escape character.
    escape: char,
}

impl EnvCompleter for Quoting {
    fn name(&self) -> &'static str {
        self.shell.name()
    }

    fn is(&self, name: &str) -> bool {
        self.shell.is(name)
    }

    fn write_registration(
        &self,
        var: &str,
        name: &str,
        bin: &str,
        completer: &str,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        self.shell
            .write_registration(var, name, bin, completer, out)
    }

    fn write_complete(
        &self,
        command: &mut Command,
        args: Vec<OsString>,
        dir: Option<&Path>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let (line, at) = typed(env::args());
        let current = args.get(at).and_then(|word| word.to_str());
        let current = current.unwrap_or_default().to_owned();
        let offers = engine::complete(command, line, at, dir)?;
        let values: Vec<String> = offers
            .iter()
            .filter_map(|offer| quoted(offer.get_value().to_str()?, &current, self.escape))
            .collect();

        write!(
            out,
            "{}",
            values.join(&env::var(SEPARATOR).unwrap_or_else(|| "\n".to_owned()))
        )
    }
}

/// Quotes a word for a shell as far as `current`, the typed part, does not; `None` for a word with
/// control characters, or with one that a quote does not hold.
fn quoted(word: &str, current: &str, escape: char) -> Option<String> {
    // A user would not type such a word.
    if sanitize_line(word) != word {
        return None;
    }
    if current.starts_with(['\'', '"']) {
        return (!word.contains(['\'', '"', '$', '`', '\\', '!'])).then(|| word.to_owned());
    }

    let plain = |c: char| c.is_alphanumeric() || "-_./:=@%+,".contains(c);
    // The shell expands it.
    let home = match current.starts_with('~') && word.starts_with("~/") {
        true => "~",
        false => "",
    };
    let rest = word[home.len()..].chars();
    let escaped = rest.flat_map(|c| (!plain(c)).then_some(escape).into_iter().chain([c]));
    Some(format!("{home}{}", escaped.collect::<String>()))
}

/// Completes with the project's candidates that start with the current word.
pub(super) fn with(offer: Offer) -> ArgValueCompleter {
    let candidate = |(value, help): (String, String)| {
        let help = Some(sanitize_line(&help).into_owned()).filter(|help| !help.is_empty());
        CompletionCandidate::new(value).help(help.map(Into::into))
    };
    ArgValueCompleter::new(move |current: &OsStr| {
        let Some(current) = current.to_str() else {
            return Vec::new();
        };
        let offers = project()
            .and_then(|project| offer(&project, current).ok())
            .unwrap_or_default();
        let fits = |value: &str| value.starts_with(current) && sanitize_line(value) == value;

        offers
            .into_iter()
            .filter(|(value, _)| fits(value))
            .map(candidate)
            .collect::<Vec<_>>()
    })
}

/// Completes the name of a setting. Needs no project.
pub(super) fn settings() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let keys = unknown::keys().into_iter().map(|key| format!("{key}="));
        let fits = |key: &String| current.to_str().is_some_and(|typed| key.starts_with(typed));
        let candidates: Vec<_> = keys.filter(fits).map(CompletionCandidate::new).collect();
        candidates
    })
}

/// Completes directories, or sessions if one of these options is present.
pub(super) fn dirs_or_sessions(options: &'static [&'static str]) -> ArgValueCompleter {
    let session_completer = with(sessions);
    ArgValueCompleter::new(move |current: &OsStr| {
        let (line, _) = typed(env::args());
        let is_option = |word: &OsString| {
            let word = word.to_string_lossy();
            let name = word.split_once('=').map_or(&*word, |(name, _)| name);
            options.contains(&name)
        };
        match line.iter().any(is_option) {
            true => session_completer.complete(current),
            false => PathCompleter::dir().complete(current),
        }
    })
}

/// Returns matching sessions, most recently changed first.
pub(super) fn sessions(project: &Project, current: &str) -> anyhow::Result<Offers> {
    let mut sessions = project.store().sessions()?;
    // There can be thousands, so only matching ones are read.
    sessions.retain(|(name, _)| name.to_string().starts_with(current));
    let tips = project.store().newest(sessions)?.into_iter();
    Ok(tips
        .map(|tip| (tip.session.to_string(), tip.title))
        .collect())
}

/// Returns the sessions, including those of remotes.
pub(super) fn all_sessions(project: &Project, current: &str) -> anyhow::Result<Offers> {
    let remote = project.store().remote_sessions(None)?.into_iter();
    let remote = undescribed(remote.map(|(name, _)| name.to_string()));
    Ok([sessions(project, current)?, remote].concat())
}

fn undescribed(names: impl Iterator<Item = String>) -> Offers {
    names.map(|name| (name, String::new())).collect()
}

pub(super) fn remotes(project: &Project, _current: &str) -> anyhow::Result<Offers> {
    let names = remote::names(&project.repository).into_iter();
    Ok(undescribed(names.map(|name| name.to_string())))
}

/// Returns the turns as [`numbers`] does, and for a nonempty word also the sessions whose turns it
/// could name.
pub(super) fn turns(project: &Project, current: &str) -> anyhow::Result<Offers> {
    let mut offers = numbers(project, current).unwrap_or_default();
    if !current.is_empty() && !current.contains(':') {
        offers.extend(before_a_colon(all_sessions(project, current)?));
    }
    Ok(offers)
}

/// Returns the other sessions, or after `<session>:` the turns of that session.
pub(super) fn turns_of_others(project: &Project, current: &str) -> anyhow::Result<Offers> {
    if current.contains(':') {
        return numbers(project, current);
    }
    let in_use = project.session().map(|name| name.to_string()).ok();
    let mut others = all_sessions(project, current)?;
    others.retain(|(name, _)| Some(name) != in_use.as_ref());
    Ok(before_a_colon(others))
}

/// Returns the turns of the session in use, and all sessions.
pub(super) fn turns_and_sessions(project: &Project, current: &str) -> anyhow::Result<Offers> {
    let turns = numbers(project, current).unwrap_or_default();
    Ok([turns, all_sessions(project, current)?].concat())
}

fn before_a_colon(sessions: Offers) -> Offers {
    let with_colon = |(name, title): (String, String)| (format!("{name}:"), title);
    sessions.into_iter().map(with_colon).collect()
}

/// Returns the turns of the session in use, or after `<session>:` of that session, newest first.
pub(super) fn numbers(project: &Project, current: &str) -> anyhow::Result<Offers> {
    let (session, before) = match current.split_once(':') {
        Some((name, _)) => (SessionName::from_address(name)?, format!("{name}:")),
        None => (project.session()?, String::new()),
    };
    let tip = project.store().tip(&session)?;
    let turns = tip.titles(&project.repository).take(MAX_TURNS);

    Ok(turns
        .map(|(number, title)| (format!("{before}{number}"), title))
        .collect())
}

/// Returns the turns, and the turn in progress.
pub(super) fn turns_and_draft(project: &Project, current: &str) -> anyhow::Result<Offers> {
    let waits = draft(project).unwrap_or_default();
    Ok(waits.into_iter().chain(turns(project, current)?).collect())
}

fn draft(project: &Project) -> anyhow::Result<Option<(String, String)>> {
    let tip = project.store().tip(&project.session()?)?;
    Ok(project.store().saved_draft(&tip)?.map(|_| {
        let description = format!("turn {}, in progress", tip.number() + 1);
        (DRAFT.to_owned(), description)
    }))
}

/// Returns the files of the turn that the previous word names.
pub(super) fn artifacts(project: &Project, _current: &str) -> anyhow::Result<Offers> {
    let (line, at) = typed(env::args());
    let turn = at.checked_sub(1).and_then(|before| line[before].to_str());
    artifacts_of(project, turn.unwrap_or_default())
}

fn artifacts_of(project: &Project, turn: &str) -> anyhow::Result<Offers> {
    let turn = project
        .store()
        .turn_or_draft(&project.session_of(turn)?, turn)?;
    let leaves = project.repository.leaves(turn.tree)?.into_iter();
    let names = leaves.filter_map(|leaf| String::from_utf8(leaf.path).ok());
    Ok(undescribed(names))
}

/// Returns the turns, and the files of the newest one.
pub(super) fn turns_and_artifacts(project: &Project, current: &str) -> anyhow::Result<Offers> {
    let artifacts = artifacts_of(project, "@").unwrap_or_default();
    Ok([turns_and_draft(project, current)?, artifacts].concat())
}

pub(super) fn agents(project: &Project, _current: &str) -> anyhow::Result<Offers> {
    Ok(agents::prompts(project)
        .all()
        .into_iter()
        .map(|prompt| (prompt.name, prompt.description))
        .collect())
}

pub(super) fn models(project: &Project, _current: &str) -> anyhow::Result<Offers> {
    Ok(project
        .settings
        .models
        .iter()
        .map(|(name, model)| (name.clone(), model.kind.name().to_owned()))
        .collect())
}

pub(super) fn pipelines(project: &Project, _current: &str) -> anyhow::Result<Offers> {
    let names = known_pipelines::list_pipelines(project);
    Ok(undescribed(names.into_iter()))
}

/// Returns the changes, including archived ones.
pub(super) fn changes(project: &Project, _current: &str) -> anyhow::Result<Offers> {
    Ok(status::change_rows(project, true)?
        .0
        .into_iter()
        .map(|row| (row.change.to_string(), row.title))
        .collect())
}

/// Returns the entries of the context lists. Below the project root, each path gets a leading `/`.
pub(super) fn entries(project: &Project, _current: &str) -> anyhow::Result<Offers> {
    let is_root =
        env::current_dir()?.canonicalize()? == project.repository.workdir().canonicalize()?;
    let mut offers = Offers::new();
    for scope in [ListScope::Session, ListScope::Turn, ListScope::Global] {
        let from_root = |entry: &str| {
            if is_root || is_url(entry) {
                entry.to_owned()
            } else {
                format!("/{}", entry.trim_start_matches('/'))
            }
        };

        let list = edit::read_context(project, scope).unwrap_or_default();
        let entries = context_list::read(&list).entries;
        offers.extend(
            entries
                .iter()
                .map(|entry| (from_root(&entry.name()), scope.title().to_lowercase())),
        );
    }

    Ok(offers)
}
