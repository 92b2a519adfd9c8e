//! `teddy init`

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;

use super::app::App;
use super::exit;
use crate::git::repository::{OpenError, Repository};

/// Prepare a project: `.teddy/` with a commented configuration; `git init` where there is no repository
///
/// Nothing that exists is changed.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  teddy init")]
pub(super) struct Args {}

/// The configuration that a project starts with: all of it comments.
const CONFIG: &str = include_str!("../../prompts/config.yaml");
/// The list of every session that a project starts with.
const GLOBAL: &str = "# Files, folders, patterns and pages that every session shows the model, one a line.\n";

/// Makes what is missing and says what.
pub(super) fn run(_args: Args, app: &mut App) -> anyhow::Result<ExitCode> {
    let folder = app.folder()?;
    let places = app.places()?;
    let repository = match Repository::discover(&folder, places.home.as_deref()) {
        Ok(repository) => repository,
        Err(OpenError::None(_)) => {
            let made = Repository::init(&folder, places.home.as_deref())?;
            app.say(&format!("Made a git repository in {}.", folder.display()));
            made
        }
        Err(error) => return Err(error.into()),
    };
    let teddy = repository.workdir().join(".teddy");
    let mut made = Vec::new();
    for (name, text) in [("config.yaml", CONFIG), ("global.context", GLOBAL)] {
        if create(&teddy.join(name), text)? {
            made.push(format!(".teddy/{name}"));
        }
    }
    if app.global.json {
        app.print_json(&serde_json::json!({ "folder": repository.workdir(), "made": made }))?;
    } else {
        made.iter().for_each(|path| app.say(&format!("Made {path}.")));
        let config = places.config_file.display();
        app.say(&format!("Next: set `model:` in {config} (see .teddy/config.yaml), then teddy new <name>"));
    }
    Ok(exit::DONE.into())
}

/// Makes a file unless it is there.
fn create(path: &Path, text: &str) -> anyhow::Result<bool> {
    let folder = path.parent().expect("a file has a folder");
    std::fs::create_dir_all(folder).with_context(|| format!("making `{}`", folder.display()))?;
    match std::fs::OpenOptions::new().write(true).create_new(true).open(path) {
        Ok(mut file) => {
            use std::io::Write as _;
            file.write_all(text.as_bytes()).with_context(|| format!("writing `{}`", path.display()))?;
            Ok(true)
        }
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error).with_context(|| format!("making `{}`", path.display())),
    }
}
