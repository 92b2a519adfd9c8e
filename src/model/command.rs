//! A program as a model: prompt on stdin, plan on stdout.
//!
//! It inherits no key but the configured one, and never finds programs inside the repository.

use std::io::Write as _;
use std::rc::Rc;
use std::time::Duration;

use super::job::{JobEnvironment, ProgramJob};
use super::{Model, ModelAnswer, ModelError, ModelRequest};
use crate::config::settings::ModelSettings;
use crate::host::file::temporary_parent;
use crate::host::process;

const TIMEOUT: Duration = Duration::from_secs(1800);
const MAX_BYTES: usize = 32 << 20;
/// Replaced in `run` by the path of a file with the prompt, which then isn't sent on stdin.
const PLACEHOLDER: &str = "{input}";

pub struct CommandModel {
    name: String,
    run: Vec<String>,
    /// Variables that it inherits besides the usual ones.
    keep: Vec<String>,
    timeout: Duration,
    /// `None` by default: many such programs print only at the end.
    idle: Option<Duration>,
    stopped: Rc<dyn Fn() -> bool>,
}

impl CommandModel {
    /// Of all keys, the program inherits only the one that `api_key_env` names.
    pub fn new(
        name: &str,
        settings: &ModelSettings,
        stopped: Rc<dyn Fn() -> bool>,
    ) -> Result<CommandModel, ModelError> {
        if settings
            .run
            .first()
            .is_none_or(|program| program.trim().is_empty())
        {
            return Err(ModelError::Settings(format!(
                "model `{name}` has no program in `run`"
            )));
        }

        let timeout = settings.timeout.unwrap_or(TIMEOUT);
        Ok(CommandModel {
            name: name.to_owned(),
            run: settings.run.clone(),
            keep: settings.api_key_env.iter().cloned().collect(),
            timeout,
            idle: settings.idle_timeout,
            stopped,
        })
    }
}

impl Model for CommandModel {
    fn check_installed(&self) -> Result<(), ModelError> {
        let program = &self.run[0];
        match process::find(program) {
            Some(_) => Ok(()),
            None => Err(ModelError::CommandMissing {
                program: program.clone(),
            }),
        }
    }

    fn answer(
        &self,
        request: &ModelRequest,
        watch: &mut dyn FnMut(&str),
    ) -> Result<ModelAnswer, ModelError> {
        let text = request.full_text();
        let file = self
            .run
            .iter()
            .any(|word| word.contains(PLACEHOLDER))
            .then(|| input_file(&text))
            .transpose()?;
        let path = file
            .as_ref()
            .map(|file| file.path().to_string_lossy().into_owned());
        // `file` has to outlive the program, since dropping it deletes the file.
        let argv: Vec<String> = match &path {
            Some(path) => self
                .run
                .iter()
                .map(|word| word.replace(PLACEHOLDER, path))
                .collect(),
            None => self.run.clone(),
        };

        let stdin = path.is_none().then_some(text);
        let job = ProgramJob {
            argv: &argv,
            stdin,
            dir: None,
            environment: JobEnvironment::Listed(&self.keep),
            timeout: self.timeout,
            idle: self.idle,
            max_bytes: MAX_BYTES,
            stopped: &*self.stopped,
        };

        let finished = job.run(watch)?;
        if finished.stdout.trim().is_empty() {
            return Err(ModelError::CommandSilent {
                program: argv[0].clone(),
                stderr: finished.stderr,
            });
        }

        // A program reports neither usage nor truncation. Its exit code is all there is.
        Ok(ModelAnswer::unmeasured(finished.stdout, self.name.as_str()))
    }
}

/// Only the user can read the file. Deleted on drop.
fn input_file(text: &str) -> Result<tempfile::NamedTempFile, ModelError> {
    let write = || -> std::io::Result<_> {
        let mut file = tempfile::Builder::new()
            .prefix("teddy-input-")
            .suffix(".md")
            .tempfile_in(temporary_parent())?;
        file.write_all(text.as_bytes())?;
        Ok(file)
    };
    write().map_err(|error| ModelError::io("writing the input to a file", &error))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn check(run: &[&str], api_key_env: Option<&str>, expected: Result<&str, &str>) {
        let settings = ModelSettings {
            kind: crate::config::settings::ModelKind::Command,
            run: run.iter().map(|word| (*word).to_owned()).collect(),
            api_key_env: api_key_env.map(str::to_owned),
            ..ModelSettings::default()
        };
        let request = ModelRequest {
            system: "S".into(),
            input: "I\n".into(),
            message: "M".into(),
            max_tokens: None,
        };
        let got = CommandModel::new("mine", &settings, Rc::new(|| false))
            .and_then(|model| model.answer(&request, &mut |_| ()))
            .map(|answer| answer.text)
            .map_err(|error| error.to_string());
        assert_eq!(got.as_deref().map_err(String::as_str), expected);
    }

    #[test]
    fn the_program_gets_everything_on_stdin() {
        check(&["cat"], None, Ok("S\n\nI\n\n# Message\n\nM\n"));
    }

    #[test]
    fn a_program_that_wants_a_file_gets_its_path() {
        check(
            &["sh", "-c", "cat; head -n 1 \"$0\"", "{input}"],
            None,
            Ok("S\n"),
        );
    }

    #[test]
    fn a_program_that_prints_nothing_is_an_error_with_its_words() {
        check(
            &["sh", "-c", "echo not logged in >&2"],
            None,
            Err("`sh` printed no answer: not logged in"),
        );
    }

    #[test]
    fn an_empty_run_is_no_model() {
        check(&[], None, Err("model `mine` has no program in `run`"));
    }
}
