//! `teddy init`: creates `.teddy/`.

use std::path::Path;

use super::app::App;
use crate::git::open::OpenError;
use crate::git::repository::Repository;
use crate::host::file::{FileMode, Root};

/// Create `.teddy/` with a commented configuration
///
/// Runs `git init` if there is no repository. Existing files are never changed.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  teddy init")]
pub(super) struct Args {}

const CONFIG: &str = include_str!("../../prompts/config.yaml");
const GLOBAL: &str =
    "# Files, folders, patterns and pages that every session shows the model, one a line.\n";

pub(super) fn run(_args: Args, app: &mut App) -> anyhow::Result<()> {
    let dir = app.dir()?;
    let user_dirs = app.user_dirs()?;
    let repository = match Repository::discover(&dir, user_dirs.home.as_deref()) {
        Ok(repository) => repository,
        Err(OpenError::None(_)) => {
            let initialized = Repository::init(&dir, user_dirs.home.as_deref())?;
            app.note(&format!("Made a git repository in {}.", dir.display()));
            initialized
        }
        Err(error) => return Err(error.into()),
    };

    let root = Root::open(repository.workdir())?;
    let mut created = Vec::new();
    for (path, text) in [
        (".teddy/config.yaml", CONFIG),
        (".teddy/global.context", GLOBAL),
    ] {
        if create(&root, path, text)? {
            created.push(path.to_owned());
        }
    }

    if app.global.json {
        app.print_json(&serde_json::json!({ "folder": repository.workdir(), "made": created }))?;
    } else {
        created
            .iter()
            .for_each(|path| app.note(&format!("Made {path}.")));
        let config = user_dirs.config_file.display();
        app.note(&format!(
            "Next: teddy start '<what you want>'. `teddy setup` finds a model and writes it to {config}."
        ));
    }

    Ok(())
}

/// Creates a file below the project unless it exists. Does not follow links, which a clone can
/// contain.
fn create(root: &Root, path: &str, text: &str) -> anyhow::Result<bool> {
    match root.create_new(Path::new(path), text.as_bytes(), FileMode::Plain) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error.into()),
    }
}
