//! `teddy du`: shows disk usage.

use std::process::ExitCode;

use super::app::App;
use super::exit;
use crate::text::sanitize::sanitize_line;
use crate::text::sized;
use crate::workflow::du::du;

/// Show the disk space that TeDDy uses
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  teddy du\n  teddy du --json")]
pub(super) struct Args {}

pub(super) fn run(_args: Args, app: &mut App) -> anyhow::Result<ExitCode> {
    let project = app.project()?;
    let usage = du(&project.repository)?;
    if app.global.json {
        app.print_json(&usage)?;
        return Ok(exit::SUCCESS.into());
    }

    let archive = project.repository.teddy_dir().join("archive");
    let mut text = format!(
        "{:>9}  objects that only TeDDy's refs reach\n",
        sized(usage.objects)
    );
    for worktree in &usage.worktrees {
        text.push_str(&format!(
            "{:>9}  worktree {} {}\n",
            sized(worktree.bytes),
            worktree.session,
            sanitize_line(&worktree.path)
        ));
    }

    text.push_str(&format!(
        "{:>9}  undo data\n{:>9}  state and caches\n",
        sized(usage.undo),
        sized(usage.state)
    ));
    if usage.archives > 0 {
        text.push_str(&format!(
            "{:>9}  bundles of deleted sessions, in {}\n",
            sized(usage.archives),
            sanitize_line(&archive.display().to_string())
        ));
    }

    app.print(text)?;
    for path in &usage.rescued {
        app.warn(&format!("a file that you saved is kept in: {path}"));
    }

    Ok(exit::SUCCESS.into())
}
