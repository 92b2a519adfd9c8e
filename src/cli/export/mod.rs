//! `teddy export`

mod bundle;
mod folder;

use std::path::PathBuf;
use std::process::ExitCode;

use super::app::App;
use super::complete;

/// Write sessions to files: directories of turns, or a bundle
///
/// Without an option, the turns of the session in use go to directories `NN/`, one file per
/// artifact.
///
/// A bundle is one file with whole sessions and the history that they build on. `teddy import`
/// brings them back, here or anywhere, and git reads it too. It has snapshots of files, inputs and
/// outputs as they are: give it to those who may see them.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  teddy export                             into ./<session>/\n  teddy export /tmp/review\n  teddy export --bundle add-auth.bundle    the session in use, to keep or to pass on\n  teddy export --bundle all.bundle --all\n  teddy export --bundle - add-auth | ssh host 'cat > add-auth.bundle'\n  git bundle list-heads add-auth.bundle"
)]
pub(super) struct Args {
    /// The directory, created if it does not exist; with `--bundle`, the sessions
    #[arg(value_name = "DIR|SESSION", add = complete::with(complete::sessions))]
    names: Vec<String>,
    /// Write sessions with all that they need to one file; `-` is standard output
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    bundle: Option<PathBuf>,
    /// Put all sessions into the bundle
    #[arg(long, requires = "bundle", conflicts_with = "names")]
    all: bool,
    /// Put turns in progress into the bundle, too: messages and plans that wait
    #[arg(long, requires = "bundle")]
    drafts: bool,
    /// Replace the file of the bundle if there is one
    #[arg(long, requires = "bundle")]
    force: bool,
}

/// Writes what is asked for.
pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<ExitCode> {
    match &args.bundle {
        Some(file) => bundle::run(file, &args, app),
        None => folder::run(&args.names, app),
    }
}
