//! `teddy export`: writes sessions as directories, pages, a bundle or a summary.

use std::fs::File;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};

use super::app::App;
use super::complete;
use crate::cli::failure::InvalidArgument;
use crate::host::file::{OutputDir, Root};
use crate::project::{Project, project_name};
use crate::query::summary::{render_markdown, summary};
use crate::query::view::redaction;
use crate::session::artifact;
use crate::session::name::SessionName;
use crate::session::turn::Turn;
use crate::text::hint::{error_with_hint, with_hint};
use crate::text::sanitize::{excerpt, sanitize_line};
use crate::text::{counted, sized};
use crate::ui::web::files::PageFiles;
use crate::workflow::archive::{Drafts, Existing, SessionBundle, collect_sessions};

/// Write a session as directories, pages, bundle or summary
///
/// Without an option, the turns of the session in use go to directories `NN/`, one file per
/// artifact.
///
/// A summary (`--format md`) is for the description or a comment of a pull request: the request,
/// the files, the turns, the commands that ran, what people decided, models and cost. Nothing in it
/// mentions a user or links to anything.
///
/// Pages (`--html`) are those of `teddy web` as files, for a forge's page hosting or an attachment.
/// What looks like a key, and names in paths, are taken out as `push --redact` does.
///
/// A bundle is one file with whole sessions and the history that they build on. `teddy fetch`
/// restores them in any repository, and git can read it too. It contains snapshots of files, inputs
/// and outputs unredacted, so share it only with people who are allowed to see them.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  teddy export                             into ./<session>/\n  teddy export /tmp/review\n  teddy export --format md                 a summary, on standard output\n  teddy export --format json add-auth | jq .cost\n  teddy export --html public add-auth      pages that work without a server\n  teddy export --bundle add-auth.bundle    the session in use, to keep or to pass on\n  teddy export --bundle all.bundle --all\n  teddy export --bundle - add-auth | ssh host 'cat > add-auth.bundle'\n  git bundle list-heads add-auth.bundle"
)]
pub(super) struct Args {
    /// The directory, created if it does not exist; with `--bundle` and `--html`, the sessions; with
    /// `--format`, the session
    #[arg(value_name = "DIR|SESSION", add = complete::dirs_or_sessions(&["--format", "--bundle", "--html"]))]
    names: Vec<String>,
    /// Print a summary of a session
    #[arg(long, value_name = "FORMAT", conflicts_with = "several")]
    format: Option<SummaryFormat>,
    /// Write sessions with all that they need to one file; `-` is standard output
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath, group = "several")]
    bundle: Option<PathBuf>,
    /// Write sessions as pages to this directory; only pages that were written so are replaced
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath, group = "several")]
    html: Option<PathBuf>,
    /// Put all sessions into the bundle or the pages
    #[arg(long, requires = "several", conflicts_with = "names")]
    all: bool,
    /// Put turns in progress into the bundle, too: messages and plans that wait
    #[arg(long, requires = "bundle")]
    drafts: bool,
    /// Replace the file of the bundle if there is one
    #[arg(long, requires = "bundle")]
    force: bool,
}

/// What a summary is written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum SummaryFormat {
    /// Markdown, safe to paste
    Md,
    /// JSON, with everything in full
    Json,
}

pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<()> {
    if let Some(dir) = &args.html {
        return export_html(dir, &args, app);
    }

    match (&args.bundle, args.format) {
        (Some(file), _) => export_bundle(file, &args, app),
        (None, Some(format)) => export_summary(&args.names, format, app),
        (None, None) => export_dir(&args.names, app),
    }
}

/// Adds a hint to the error of a directory that cannot be written.
fn elsewhere(error: std::io::Error) -> anyhow::Error {
    match error.kind() {
        std::io::ErrorKind::AlreadyExists => with_hint(error.into(), "name another directory"),
        _ => error.into(),
    }
}

fn export_bundle(file: &Path, args: &Args, app: &App) -> anyhow::Result<()> {
    let project = app.record()?;
    let sessions = requested_sessions(&project, args)?;
    let drafts = match args.drafts {
        true => Drafts::Included,
        false => Drafts::LeftOut,
    };
    let bundle = collect_sessions(&project, &sessions, drafts)?;

    if file == Path::new("-") {
        return bundle_to_stdout(&project, &bundle, app);
    }

    let path = app.global.resolve(file);
    let existing = match args.force {
        true => Existing::Replaced,
        false => Existing::Stays,
    };
    let bytes = bundle.save(&project, &path, existing)?;
    if app.global.json {
        return app.print_json(&serde_json::json!({
            "file": app.dir()?.join(file),
            "bytes": bytes,
            "sessions": bundle.manifest.sessions,
        }));
    }

    app.print(format!("{}\n", file.display()))?;
    app.note(&format!(
        "{} in {}. It holds snapshots, inputs and outputs as they are.",
        counted(sessions.len(), "session"),
        sized(bytes)
    ));
    Ok(())
}

fn requested_sessions(project: &Project, args: &Args) -> anyhow::Result<Vec<SessionName>> {
    if args.all {
        let all = project.store().sessions()?;
        anyhow::ensure!(!all.is_empty(), "there are no sessions");
        return Ok(all.into_iter().map(|(name, _)| name).collect());
    }

    if args.names.is_empty() {
        return Ok(vec![project.session()?]);
    }
    let mut sessions = args
        .names
        .iter()
        .map(|name| SessionName::from_address(name))
        .collect::<Result<Vec<_>, _>>()?;
    sessions.sort();
    sessions.dedup();

    Ok(sessions)
}

/// Writes the bundle to stdout, which must be a pipe or a file.
fn bundle_to_stdout(project: &Project, bundle: &SessionBundle, app: &App) -> anyhow::Result<()> {
    if app.global.json {
        return Err(error_with_hint(
            "standard output cannot have both the bundle and JSON",
            "name a file",
        ));
    }
    anyhow::ensure!(
        !crate::host::screen::is_stdout(),
        "a bundle is nothing to look at: name a file, or redirect standard output"
    );

    let out = std::io::stdout().as_fd().try_clone_to_owned()?;
    bundle.write(project, File::from(out))?;
    let count = bundle.manifest.sessions.len();
    app.note(&format!(
        "{}. It holds snapshots, inputs and outputs as they are.",
        counted(count, "session")
    ));
    Ok(())
}

// `teddy export DIR`: writes the turns of a session to directories.
//
// A session can come from an untrusted source. Entries of a turn other than its known files are
// reported and not written: they could contain a git repository, which git would then use.

/// Characters shown of a name that was not written.
const MAX_EXCERPT: usize = 200;

fn session_for_directory(name: &str, session: &SessionName) -> anyhow::Error {
    let name = sanitize_line(name);
    InvalidArgument::error(
        format!("`{name}` is a session, and its turns need a directory"),
        format!(
            "`teddy -s {name} export` exports it; `teddy export ./{name}` makes a directory for \
             session `{session}`"
        ),
    )
}

fn warn_left_out(app: &App, left_out: &[String]) {
    if let [first, ..] = left_out {
        let first = sanitize_line(first);
        app.warn(&format!(
            "left out {} that a turn of TeDDy cannot have, such as `{}`",
            counted(left_out.len(), "file"),
            excerpt(&first, MAX_EXCERPT)
        ));
    }
}

fn export_dir(names: &[String], app: &App) -> anyhow::Result<()> {
    if names.len() > 1 {
        let message = "the turns of a session are written to one directory";
        let hint = "`--bundle <file>` and `--html <directory>` take several sessions";
        return Err(InvalidArgument::error(message, hint));
    }

    let project = app.record()?;
    let session = project.session()?;
    let here = app.dir()?;
    let name = names.first().map_or(session.as_str(), String::as_str);
    let target = here.join(name);
    if names.is_empty() {
        check_reachable(&here, name)?;
    }
    if !target.is_dir() && is_another_session(&project, &session, name) {
        return Err(session_for_directory(name, &session));
    }

    let turns: Vec<_> = project
        .store()
        .history(project.store().tip(&session)?)
        .collect::<anyhow::Result<_>>()?;

    let mut dir = OutputDir::begin(&target, None).map_err(elsewhere)?;
    let left_out = write_turns(&project, &turns, &mut dir)?;
    dir.finish().map_err(elsewhere)?;

    warn_left_out(app, &left_out);
    if app.global.json {
        app.print_json(&serde_json::json!({ "folder": target, "turns": turns.len() }))
    } else {
        app.print(format!("{name}\n"))
    }
}

/// Returns whether a word names another session than the exported one.
fn is_another_session(project: &Project, session: &SessionName, word: &str) -> bool {
    let name = SessionName::from_address(word);
    name.is_ok_and(|name| name != *session && project.store().tip_id(&name).is_ok())
}

/// Checks that the default directory is below the current one. In an untrusted project, a link
/// could lead elsewhere.
fn check_reachable(here: &Path, name: &str) -> anyhow::Result<()> {
    let kind = Root::open(here)?.kind(Path::new(name));
    kind.map_err(|error| error_with_hint(error.to_string(), "name another directory"))?;
    Ok(())
}

/// Writes the files of turns, newest first, and returns the omitted ones.
fn write_turns(
    project: &Project,
    turns: &[Turn],
    dir: &mut OutputDir,
) -> anyhow::Result<Vec<String>> {
    let width = turns
        .first()
        .map_or(2, |tip| tip.number().to_string().len().max(2));
    let mut left_out = Vec::new();

    for turn in turns {
        for (name, bytes) in project.repository.files(turn.tree)? {
            let path = format!("{:0width$}/{name}", turn.number());
            if artifact::is_known(&name) {
                dir.write(&path, &bytes)?;
            } else {
                left_out.push(path);
            }
        }
    }
    Ok(left_out)
}

/// Directory below `.git/teddy` with the records of exported pages.
const EXPORT_RECORDS: &str = "exports";

fn export_html(dir: &Path, args: &Args, app: &App) -> anyhow::Result<()> {
    let project = app.record()?;
    let files = PageFiles {
        project: &project,
        name: &project_name(&project),
        sessions: &requested_sessions(&project, args)?,
        redaction: &redaction(project.user_dirs.home.as_deref()),
    };
    for session in files.sessions {
        project.store().tip_id(session)?;
    }

    let records = project.repository.teddy_dir().join(EXPORT_RECORDS);
    let mut written =
        OutputDir::begin(&app.global.resolve(dir), Some(&records)).map_err(elsewhere)?;
    files.write(&mut |name, text| Ok(written.write(name, text.as_bytes())?))?;
    let pages = written.finish()?;

    let names = files.sessions;
    if app.global.json {
        return app.print_json(&serde_json::json!({
            "folder": app.dir()?.join(dir),
            "sessions": names,
            "pages": pages,
        }));
    }

    app.print(format!("{}\n", dir.display()))?;
    app.note(&format!(
        "{} of {}, without what looks like a key or a home directory. Read them before you share them.",
        counted(u32::try_from(pages).unwrap_or(u32::MAX), "file"),
        counted(u32::try_from(names.len()).unwrap_or(u32::MAX), "session"),
    ));
    Ok(())
}

fn export_summary(names: &[String], format: SummaryFormat, app: &App) -> anyhow::Result<()> {
    anyhow::ensure!(names.len() < 2, "a summary is of one session");
    let project = app.record()?;
    let session = match names.first() {
        Some(name) => SessionName::from_address(name)?,
        None => project.session()?,
    };
    let summary = summary(&project, &session)?;

    match (format, app.global.json) {
        (SummaryFormat::Json, _) => app.print_json(&summary)?,
        (SummaryFormat::Md, true) => app.print_json(&serde_json::json!({
            "session": session,
            "markdown": render_markdown(&summary),
        }))?,
        (SummaryFormat::Md, false) => app.print(render_markdown(&summary))?,
    }
    Ok(())
}
