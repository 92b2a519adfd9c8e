//! `verify --rerun`: runs a recorded plan again and compares the result.

use std::process::ExitCode;

use crate::cli::app::App;
use crate::cli::exit;
use crate::text::sanitize::sanitize_line;
use crate::workflow::rerun::{Unseen, rerun};

fn exit_code(code: Option<i32>) -> String {
    code.map_or_else(|| "none".to_owned(), |code| code.to_string())
}

/// Runs the plan and says whether the tree is the same.
pub(super) fn run(turn: &str, is_approved: bool, app: &App) -> anyhow::Result<ExitCode> {
    let project = app.project()?;
    let mut user = app.user(&project, is_approved);
    let result = rerun(&project, turn, user.as_mut())?;
    drop(user);
    let same = result.is_same();

    if app.global.json {
        app.print_json(&serde_json::json!({
            "turn": result.turn,
            "same": same,
            "expected": result.expected,
            "tree": result.tree,
            "differences": result.differences,
            "exit_codes": result.exit_codes,
            "unseen": result.unseen,
        }))?;
    } else {
        let word = if same { "same" } else { "different" };
        app.print(format!("turn {} {word} {}\n", result.turn, result.tree))?;
        result
            .differences
            .iter()
            .for_each(|path| app.note(&format!("  {}", sanitize_line(path))));
        for code in &result.exit_codes {
            app.note(&format!(
                "  action {}: exit code {}, in the turn {}",
                code.action,
                exit_code(code.found),
                exit_code(code.expected)
            ));
        }
        for unseen in &result.unseen {
            app.note(match unseen {
                Unseen::FilesInNoSnapshot => {
                    "The rerun cannot see files that are in no snapshot, such as ignored ones; the turn could."
                }
                Unseen::Network => "The rerun has no network; the turn could have had it.",
            });
        }
    }

    Ok(if same { exit::SUCCESS } else { exit::FAILED }.into())
}
