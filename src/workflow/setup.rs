//! `setup`: finds models, tries them, and writes the choice to the user's configuration.
//!
//! Never stores a key. A model that costs money is tried only after a confirmation.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

use crate::config::edit::NewModel;
use crate::config::layer::MAX_CONFIG;
use crate::config::settings::ModelSettings;
use crate::host::file::{read_regular_text, write_atomic};
use crate::host::lock::{Lock, patience};
use crate::host::{env, interrupt};
use crate::model::acting::open::greet_agent;
use crate::model::discovery::FoundModels;
use crate::model::discovery::server::{self, ServerAddress};
use crate::model::model_env::ModelEnv;
use crate::model::open::open;
use crate::model::{Finish, ModelError, ModelRequest};

const QUESTION: &str = "Reply with the single word: ready";
/// A local server might have to load the model first.
const PATIENCE: Duration = Duration::from_secs(180);
const DISCOVERY: &str = "TEDDY_DISCOVERY";
const SERVERS: &str = "TEDDY_SERVERS";

#[derive(Debug, Clone, PartialEq)]
pub struct TriedModel {
    pub answer: String,
    pub duration: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeptModel {
    Written,
    /// The file already has this model.
    Unchanged,
    /// Why the user has to edit the file.
    ByHand(String),
}

/// Programs can be started and servers asked.
pub fn is_looking() -> bool {
    env::var(DISCOVERY).is_none_or(|value| value != "off")
}

/// Ignores programs inside the repository, because its author could have put them there.
pub fn scan_models(repository: Option<&Path>, addresses: &[ServerAddress]) -> FoundModels {
    let is_looking = is_looking();
    let usual = if is_looking { servers() } else { Vec::new() };
    // If the home directory is itself a repository, the user's own programs are inside it.
    let home = env::home().and_then(|home| home.canonicalize().ok());
    let is_home = |dir: &&Path| home.as_ref().is_some_and(|home| home.starts_with(dir));
    let repository = repository.filter(|dir| !is_home(dir));
    let servers = addresses.iter().cloned().chain(usual).collect();
    FoundModels::discover(repository, servers, is_looking, &env::var)
}

fn servers() -> Vec<ServerAddress> {
    if !env::is_set(SERVERS) {
        return server::usual(&env::var);
    }

    let list = env::var(SERVERS).unwrap_or_default();
    list.split([',', ' '])
        .filter_map(server::parse_address)
        .collect()
}

/// One short question. An agent gets no task: it only says who it is.
pub fn attempt(name: &str, settings: &ModelSettings) -> Result<TriedModel, ModelError> {
    let environment = ModelEnv {
        stopped: Rc::new(interrupt::requested),
        ..ModelEnv::default()
    };
    let settings = ModelSettings {
        timeout: Some(PATIENCE),
        ..settings.clone()
    };
    let request = ModelRequest {
        message: QUESTION.to_owned(),
        ..ModelRequest::default()
    };

    let start = Instant::now();
    if settings.kind.is_acting() {
        return Ok(TriedModel {
            answer: greet_agent(name, &settings, &env::var)?,
            duration: start.elapsed(),
        });
    }
    let answer = open(name, &settings, &environment)?.answer(&request, &mut |_| ())?;
    if let Finish::Failed(error) = answer.finish {
        return Err(*error);
    }
    Ok(TriedModel {
        answer: answer.text,
        duration: start.elapsed(),
    })
}

/// Leaves a file alone that cannot be edited safely. Returns the model with its name in the file.
/// `cache` has the lock: another `setup` must not write between our reading and writing.
pub fn keep(file: &Path, model: NewModel, cache: &Path) -> (NewModel, KeptModel) {
    let _lock = match Lock::take(&cache.join("setup"), "setup", patience()) {
        Ok(lock) => lock,
        Err(error) => return (model, KeptModel::ByHand(error.to_string())),
    };
    let text = match text_of(file) {
        Ok(text) => text,
        Err(why) => return (model, KeptModel::ByHand(why)),
    };
    let model = model.fitted(&text);

    let outcome = match model.written(&text) {
        Ok(written) if written == text => KeptModel::Unchanged,
        Ok(written) => match write_atomic(file, written.as_bytes()) {
            Ok(()) => KeptModel::Written,
            Err(error) => KeptModel::ByHand(error.to_string()),
        },
        Err(refusal) => KeptModel::ByHand(refusal.to_string()),
    };
    (model, outcome)
}

/// Fails with the reason why the file cannot be edited.
fn text_of(file: &Path) -> Result<String, String> {
    let Ok(metadata) = file.symlink_metadata() else {
        return Ok(String::new());
    };
    if metadata.is_symlink() {
        return Err("it is a link, and may belong to something else".to_owned());
    }
    if !metadata.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    if metadata.permissions().mode() & 0o222 == 0 {
        return Err("it is read-only".to_owned());
    }

    read_regular_text(file, MAX_CONFIG as u64).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::settings::ModelKind;

    fn model() -> NewModel {
        NewModel {
            model: "manual".to_owned(),
            entry: None,
        }
    }

    #[track_caller]
    fn refused(file: &Path, text: &str) {
        let before = std::fs::read(file).ok();
        let cache = tempfile::tempdir().unwrap();
        let (_, outcome) = keep(file, model(), cache.path());
        assert!(
            matches!(&outcome, KeptModel::ByHand(why) if why.contains(text)),
            "{outcome:?}"
        );
        assert_eq!(std::fs::read(file).ok(), before);
    }

    #[test]
    fn cf7_a_file_is_made_and_changed_once() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("new/config.yaml");
        let keep = || keep(&file, model(), dir.path());
        assert_eq!(keep(), (model(), KeptModel::Written));
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "model: manual\n");
        assert_eq!(keep().1, KeptModel::Unchanged);
    }

    #[test]
    fn cf7_concurrent_changes_lose_no_model() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("config.yaml");
        std::thread::scope(|scope| {
            for number in 0..8 {
                let model = NewModel {
                    model: format!("m{number}"),
                    entry: Some(ModelSettings {
                        kind: ModelKind::Openai,
                        id: format!("id{number}"),
                        ..ModelSettings::default()
                    }),
                };
                let (file, dir) = (&file, dir.path());
                scope.spawn(move || assert_eq!(keep(file, model, dir).1, KeptModel::Written));
            }
        });
        let text = std::fs::read_to_string(&file).unwrap();
        for number in 0..8 {
            assert!(text.contains(&format!("id{number}")), "{text}");
        }
    }

    #[test]
    fn cf7_a_file_that_is_not_the_users_own_to_write_stays() {
        let dir = tempfile::tempdir().unwrap();
        let (file, link) = (dir.path().join("a.yaml"), dir.path().join("b.yaml"));
        std::fs::write(&file, "agent: x\n").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        refused(&link, "it is a link");
        refused(dir.path(), "it is not a regular file");
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
