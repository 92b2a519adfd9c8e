//! `teddy du`

use std::process::ExitCode;

use super::app::App;
use super::exit;
use crate::text::visible::visible;
use crate::workflow::du::du;

/// Show the disk space that TeDDy uses
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  teddy du\n  teddy du --json")]
pub(super) struct Args {}

/// Measures and prints.
pub(super) fn run(_args: Args, app: &mut App) -> anyhow::Result<ExitCode> {
    let usage = du(&app.project()?.repository)?;
    if app.global.json {
        app.print_json(&usage)?;
        return Ok(exit::DONE.into());
    }

    let mut text = format!(
        "{:>9}  objects that only TeDDy's refs reach\n",
        shown(usage.objects)
    );
    for worktree in &usage.worktrees {
        text.push_str(&format!(
            "{:>9}  worktree {} {}\n",
            shown(worktree.bytes),
            worktree.session,
            visible(&worktree.path)
        ));
    }

    text.push_str(&format!(
        "{:>9}  undo data\n{:>9}  state and caches\n",
        shown(usage.undo),
        shown(usage.state)
    ));
    app.print(text)?;
    for path in &usage.rescued {
        app.warn(&format!("a save of yours was set aside: {path}"));
    }

    Ok(exit::DONE.into())
}

/// Returns a size for a person.
fn shown(bytes: u64) -> String {
    let mut size = bytes as f64;
    for unit in ["B", "KiB", "MiB"] {
        if size < 1024.0 {
            return if unit == "B" {
                format!("{bytes} B")
            } else {
                format!("{size:.1} {unit}")
            };
        }
        size /= 1024.0;
    }

    format!("{size:.1} GiB")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_shown_in_the_unit_that_fits() {
        assert_eq!(
            [0, 1023, 1536, 5 << 20, 3 << 40].map(shown),
            ["0 B", "1023 B", "1.5 KiB", "5.0 MiB", "3072.0 GiB"]
        );
    }
}
