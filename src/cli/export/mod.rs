//! `teddy export`: writes sessions as directories, pages, a bundle or a summary.

mod bundle;
mod dir;
mod html;
mod summary;

use std::path::PathBuf;
use std::process::ExitCode;

use super::app::App;
use super::complete;
use crate::workflow::hint::with_hint;

/// Write a session out: directories of turns, pages, a bundle, or a summary
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
/// A bundle is one file with whole sessions and the history that they build on. `teddy import`
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

pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<ExitCode> {
    if let Some(dir) = &args.html {
        return html::export_html(dir, &args, app);
    }

    match (&args.bundle, args.format) {
        (Some(file), _) => bundle::export_bundle(file, &args, app),
        (None, Some(format)) => summary::export_summary(&args.names, format, app),
        (None, None) => dir::export_dir(&args.names, app),
    }
}

/// Adds a hint to the error of a directory that cannot be written.
fn elsewhere(error: std::io::Error) -> anyhow::Error {
    match error.kind() {
        std::io::ErrorKind::AlreadyExists => with_hint(error.into(), "name another directory"),
        _ => error.into(),
    }
}
