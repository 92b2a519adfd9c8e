//! Setting up a model: what is there, whether it answers, and the line in the user's configuration.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

use crate::config::edit::NewModel;
use crate::config::layer::MAX_CONFIG;
use crate::host::file::{read_regular_text, write_atomic};
use crate::host::{env, interrupt};
use crate::model::found::server::{self, ServerAddress};
use crate::model::found::{FoundModels, LookPlaces, service};
use crate::model::open::open;
use crate::model::outside::Outside;
use crate::model::settings::ModelConfig;
use crate::model::{ModelError, ModelRequest};

/// What a model is asked to see that it answers.
const QUESTION: &str = "Reply with the single word: ready";
/// How long it may take: a server may have to load it first.
const PATIENCE: Duration = Duration::from_secs(180);
/// The variable that keeps programs from being started and servers from being asked.
const DISCOVERY: &str = "TEDDY_DISCOVERY";
/// The variable that names the servers that are asked.
const SERVERS: &str = "TEDDY_SERVERS";

/// A model answered.
#[derive(Debug, Clone, PartialEq)]
pub struct TriedModel {
    /// What it said.
    pub answer: String,
    /// How long that took.
    pub duration: Duration,
}

/// What became of writing a model down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeptModel {
    /// It is in the file.
    Written,
    /// It was already.
    Unchanged,
    /// The file was left alone, and why.
    ByHand(String),
}

/// Tells whether anything is looked for.
pub fn is_looking() -> bool {
    env::var(DISCOVERY).is_none_or(|value| value != "off")
}

/// Looks for models: in the environment, on the `PATH` outside of the repository (unless that is the
/// user's home), and at servers on this machine and those that are named.
pub fn look(repository: Option<&Path>, named: &[ServerAddress]) -> FoundModels {
    let is_looking = is_looking();
    let usual = if is_looking { servers() } else { Vec::new() };
    // Who keeps their home in git has their own programs below it.
    let home = env::home().and_then(|home| home.canonicalize().ok());
    let is_home = |folder: &&Path| home.as_ref().is_some_and(|home| home.starts_with(folder));
    let repository = repository.filter(|folder| !is_home(folder));
    let places = LookPlaces {
        repository,
        servers: named.iter().cloned().chain(usual).collect(),
        programs: is_looking,
    };
    FoundModels::look(&places, &env::var)
}

/// Returns the servers that are asked where none is named.
fn servers() -> Vec<ServerAddress> {
    if !env::is_set(SERVERS) {
        return server::usual(&env::var);
    }

    let named = env::var(SERVERS).unwrap_or_default();
    named.split([',', ' ']).filter_map(server::named).collect()
}

/// Asks a model one short question.
///
/// # Errors
/// Why it does not answer.
pub fn attempt(name: &str, settings: &ModelConfig) -> Result<TriedModel, ModelError> {
    let usual = Outside::default();
    let outside = Outside {
        stopped: Rc::new(interrupt::requested),
        keys: usual
            .keys
            .iter()
            .cloned()
            .chain(service::variables().map(str::to_owned))
            .collect(),
        ..usual
    };
    let settings = ModelConfig {
        timeout: Some(PATIENCE),
        ..settings.clone()
    };
    let request = ModelRequest {
        message: QUESTION.to_owned(),
        ..ModelRequest::default()
    };

    let start = Instant::now();
    let answer = open(name, &settings, &outside)?.answer(&request, &mut |_| ())?;
    Ok(TriedModel {
        answer: answer.text,
        duration: start.elapsed(),
    })
}

/// Writes a model into the user's configuration; returns it under the name that it has there. A
/// file that cannot be changed without a risk stays as it is.
pub fn keep(file: &Path, model: NewModel) -> (NewModel, KeptModel) {
    let text = match text_of(file) {
        Ok(text) => text,
        Err(why) => return (model, KeptModel::ByHand(why)),
    };
    let model = model.fitted(&text);

    let kept = match model.written(&text) {
        Ok(written) if written == text => KeptModel::Unchanged,
        Ok(written) => match write_atomic(file, written.as_bytes()) {
            Ok(()) => KeptModel::Written,
            Err(error) => KeptModel::ByHand(error.to_string()),
        },
        Err(refusal) => KeptModel::ByHand(refusal.to_string()),
    };
    (model, kept)
}

/// Reads a configuration file that may be changed, or says why it may not.
fn text_of(file: &Path) -> Result<String, String> {
    let Ok(found) = file.symlink_metadata() else {
        return Ok(String::new());
    };
    if found.is_symlink() {
        return Err("it is a link, and may belong to something else".to_owned());
    }
    if !found.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    if found.permissions().mode() & 0o222 == 0 {
        return Err("it is read-only".to_owned());
    }

    read_regular_text(file, MAX_CONFIG as u64).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a model without an entry.
    fn model() -> NewModel {
        NewModel {
            model: "manual".to_owned(),
            entry: None,
        }
    }

    /// Checks that a file is left alone for a reason.
    #[track_caller]
    fn refused(file: &Path, words: &str) {
        let before = std::fs::read(file).ok();
        let (_, kept) = keep(file, model());
        assert!(
            matches!(&kept, KeptModel::ByHand(why) if why.contains(words)),
            "{kept:?}"
        );
        assert_eq!(std::fs::read(file).ok(), before);
    }

    #[test]
    fn cf7_a_file_is_made_and_changed_once() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("new/config.yaml");
        assert_eq!(keep(&file, model()), (model(), KeptModel::Written));
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "model: manual\n");
        assert_eq!(keep(&file, model()).1, KeptModel::Unchanged);
    }

    #[test]
    fn cf7_a_file_that_is_not_the_users_own_to_write_stays() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("a.yaml"), folder.path().join("b.yaml"));
        std::fs::write(&file, "agent: x\n").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        refused(&link, "it is a link");
        refused(folder.path(), "it is not a regular file");
        refused(Path::new("/dev/null"), "it is not a regular file");

        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o444)).unwrap();
        refused(&file, "it is read-only");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
        std::fs::write(&file, "agent: [\n").unwrap();
        refused(&file, "line 2");
        std::fs::write(&file, b"agent: \xff\n").unwrap();
        refused(&file, "");
    }
}
