//! `teddy demo`: plays a recorded session in a scratch repository.

use std::path::PathBuf;

use super::app::App;
use crate::host::file::prefixed_temporary_dir;
use crate::text::sanitize::sanitize_block;
use crate::text::shell_word::shell_word;
use crate::ui::style::{StyledLine, Tone};
use crate::workflow::demo::{DemoStage, demo};

/// Play a complete session with recorded answers, offline
///
/// Needs no API key, and works in a scratch repository. Prints the command for each step. The
/// directory is kept, so you can look around.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  teddy demo\n  teddy demo /tmp/look")]
pub(super) struct Args {
    /// The directory; a new temporary one if omitted
    #[arg(value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    folder: Option<PathBuf>,
}

pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<()> {
    let dir = match args.folder {
        Some(dir) => app.dir()?.join(dir),
        None => prefixed_temporary_dir("teddy-demo-")?.keep(),
    };
    let project = demo(&dir, &mut Printed { app })?;
    if app.global.json {
        app.print_json(&serde_json::json!({ "folder": project }))?;
    } else {
        app.print(format!("\nThe session is in {}\n", project.display()))?;
        app.note(&format!(
            "To explore it: cd {} && export TEDDY_CONFIG={}",
            shell_word(project.as_os_str().as_encoded_bytes()),
            shell_word(
                project
                    .with_file_name("teddy.yaml")
                    .as_os_str()
                    .as_encoded_bytes()
            )
        ));
    }

    Ok(())
}

struct Printed<'a> {
    app: &'a App,
}

impl Printed<'_> {
    /// Prints a line, wrapped at a terminal. Does nothing with `--json`.
    fn line(&self, tone: Tone, text: &str) {
        if !self.app.global.json {
            // A closed pipe is not an error.
            let _ = self.app.print_lines(vec![StyledLine::of(tone, text)]);
        }
    }
}

impl DemoStage for Printed<'_> {
    fn heading(&mut self, text: &str) {
        self.line(Tone::Plain, "");
        self.line(Tone::Strong, &format!("# {text}"));
    }

    fn command(&mut self, text: &str) {
        self.line(Tone::Accent, &format!("$ {text}"));
    }

    fn output(&mut self, text: &str) {
        sanitize_block(text)
            .lines()
            .for_each(|line| self.line(Tone::Plain, line));
    }
}
