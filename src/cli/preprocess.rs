//! `teddy preprocess`: repairs the code fences of a plan.

use std::path::Path;

use anyhow::Context as _;

use super::app::App;
use super::exit::{self, ExitStatus};
use super::failure::Unfinished;
use super::source;
use crate::host::clipboard::Copied;
use crate::host::{clipboard, file};
use crate::plan::reading::{Preprocessed, preprocess};
use crate::plan::repair::{Level, Repaired};
use crate::text::hint::error_with_hint;

/// Repair the code fences of a plan
///
/// Rewrites only code fences and the spelling of headings, labels and fields, never the content; a
/// plan that is already valid stays the same, byte for byte.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  teddy preprocess plan.md          in place\n  teddy preprocess - < plan.md      standard input to standard output\n  teddy preprocess                  the clipboard, to standard output and back"
)]
pub(super) struct Args {
    /// The plan, rewritten in place; `-` for standard input; the clipboard if omitted
    #[arg(value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    file: Option<String>,
    /// Don't write the result to the clipboard
    #[arg(long)]
    no_copy: bool,
}

pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<ExitStatus> {
    let Preprocessed { repaired, is_sure } = match args.file.as_deref() {
        None => from_clipboard(app, args.no_copy)?,
        Some(source::STDIN) => {
            let result = preprocess(&source::stdin()?);
            print(app, &result.repaired)?;
            result
        }
        Some(name) => in_place(app, name)?,
    };
    for note in &repaired.notes {
        app.note(&format!("line {}: {}", note.line, note.message));
    }

    let spelled = repaired.notes.iter().any(|note| note.spelling);
    match repaired.level {
        Level::Hopeless => app.warn("it is unclear where the blocks end; the plan is unchanged"),
        _ if repaired.asides().next().is_some() => {
            app.warn("there are words beside a command, which may say not to run it; the plan is unchanged");
        }
        _ if !is_sure => {
            app.warn("another reading is about as likely; the plan is unchanged");
        }
        Level::Clean => app.note("There is nothing to repair."),
        Level::Refenced | Level::Repaired if spelled => {
            app.note("The plan is in the format's spelling.");
        }
        _ => app.note("The fences are repaired."),
    }

    Ok(exit::success_or(is_sure, exit::REJECTED))
}

fn print(app: &App, repaired: &Repaired) -> anyhow::Result<()> {
    if app.global.json {
        return app.print_json(&json(repaired));
    }
    app.print_foreign(&repaired.text)
}

/// Returns the result for text that does not come from a file as JSON.
fn json(repaired: &Repaired) -> serde_json::Value {
    serde_json::json!({ "level": repaired.level, "notes": repaired.notes, "text": repaired.text })
}

fn from_clipboard(app: &App, no_copy: bool) -> anyhow::Result<Preprocessed> {
    let copied = clipboard::paste().context("reading the clipboard")?;
    anyhow::ensure!(
        !copied.trim().is_empty(),
        "the clipboard is empty; name a file, or `-` for standard input"
    );
    let result = preprocess(&copied);
    let repaired = &result.repaired;
    if !app.global.json {
        app.print_foreign(&repaired.text)?;
    }

    if !no_copy {
        let copied = clipboard::copy(&repaired.text).context("writing the clipboard");
        let copied = copied.map_err(|error| Unfinished {
            partial: json(repaired),
            error,
        })?;
        app.note(match copied {
            Copied::ToClipboard => "Output copied to clipboard.",
            Copied::ToTerminal => "Output was sent to the clipboard of your terminal.",
        });
    }

    if app.global.json {
        app.print_json(&json(repaired))?;
    }

    Ok(result)
}

/// Repairs a file; one that needs nothing is not written.
fn in_place(app: &App, name: &str) -> anyhow::Result<Preprocessed> {
    let before = source::file(app, name).map_err(|error| {
        if !source::is_missing(&error) {
            return error;
        }
        let near = source::near(app, name).map(|near| format!("did you mean `{near}`?"));
        let hint = near.unwrap_or_else(|| "`teddy preprocess -` reads standard input".to_owned());
        error_with_hint(format!("plan file not found at `{name}`"), hint)
    })?;
    let result = preprocess(&before);
    let repaired = &result.repaired;
    if repaired.text != before {
        write(&app.dir()?.join(name), repaired.text.as_bytes())
            .with_context(|| format!("writing `{name}`"))?;
    }

    if app.global.json {
        app.print_json(&serde_json::json!({ "level": repaired.level, "notes": repaired.notes }))?;
    }

    Ok(result)
}

/// Replaces a file atomically and keeps its permissions.
fn write(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    // Follow a link: the user means its target.
    let path = path.canonicalize()?;
    let permissions = path.metadata()?.permissions();
    // Renaming would replace even a read-only file.
    if permissions.readonly() {
        let hint = "`teddy preprocess - < <file>` prints the repaired plan";
        return Err(error_with_hint("the file is read-only", hint));
    }
    file::write_atomic(&path, bytes)?;
    Ok(std::fs::set_permissions(&path, permissions)?)
}
