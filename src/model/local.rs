//! Models that need no server: recorded answers, a program, and the user.
//!
//! A program gets the prompt on stdin and prints the plan. It inherits no key but the configured
//! one, and never finds programs inside the repository. The user carries the prompt to a chat and
//! returns with the answer. The caller decides how (file, clipboard, editor).

use std::cell::Cell;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use super::job::{JobEnvironment, ProgramJob};
use super::{Model, ModelAnswer, ModelError, ModelRequest};
use crate::config::settings::ModelSettings;
use crate::host::file::{read_regular_text, temporary_parent};
use crate::host::process;

/// In bytes.
const MAX_ANSWER: u64 = 32 << 20;

/// Replays recorded answers: from files, a directory, a session, or strings.
pub struct Replay {
    source: ReplaySource,
    next: Cell<usize>,
}

enum ReplaySource {
    Texts(Vec<String>),
    Files(Vec<PathBuf>),
}

impl Replay {
    pub fn from_texts(texts: Vec<String>) -> Replay {
        Replay {
            source: ReplaySource::Texts(texts),
            next: Cell::new(0),
        }
    }

    /// A file, or the `.md` and `.txt` files of a directory in order of their names. Fails with
    /// [`ModelError::Settings`] if the directory contains no answers.
    pub fn from_path(path: &Path) -> Result<Replay, ModelError> {
        let data = fs::metadata(path).map_err(|error| io_error("reading", path, &error))?;
        let files = if data.is_dir() {
            answers_in(path)?
        } else {
            vec![path.to_owned()]
        };

        if files.is_empty() {
            return Err(ModelError::Settings(format!(
                "the directory `{}` has no answers (`*.md`, `*.txt`)",
                path.display()
            )));
        }

        Ok(Replay {
            source: ReplaySource::Files(files),
            next: Cell::new(0),
        })
    }

    /// A later process continues where an earlier one stopped.
    #[must_use]
    pub fn starting_at(self, position: usize) -> Replay {
        self.next.set(position);
        self
    }

    /// A single file never runs out.
    fn text(&self, position: usize) -> Result<String, ModelError> {
        match &self.source {
            ReplaySource::Texts(texts) => {
                texts.get(position).cloned().ok_or(ModelError::ReplayEnded {
                    answers: texts.len(),
                })
            }
            ReplaySource::Files(files) if files.len() == 1 => read_answer(&files[0]),
            ReplaySource::Files(files) => files
                .get(position)
                .ok_or(ModelError::ReplayEnded {
                    answers: files.len(),
                })
                .and_then(|file| read_answer(file)),
        }
    }
}

impl Model for Replay {
    fn answer(
        &self,
        _: &ModelRequest,
        watch: &mut dyn FnMut(&str),
    ) -> Result<ModelAnswer, ModelError> {
        let text = self.text(self.next.get())?;
        self.next.set(self.next.get() + 1);
        ModelAnswer::shown(text, "replay", watch)
    }
}

/// In numeric order: `2.md` before `10.md`.
fn answers_in(dir: &Path) -> Result<Vec<PathBuf>, ModelError> {
    let entries = fs::read_dir(dir).map_err(|error| io_error("listing", dir, &error))?;
    let is_answer = |path: &PathBuf| {
        path.extension()
            .is_some_and(|end| end == "md" || end == "txt")
            && path.is_file()
    };
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(is_answer)
        .collect();
    files.sort_by_cached_key(|path| {
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let digits = name.bytes().take_while(u8::is_ascii_digit).count();
        // Names without a number come last.
        (name[..digits].parse().unwrap_or(u64::MAX), name)
    });

    Ok(files)
}

fn read_answer(path: &Path) -> Result<String, ModelError> {
    read_regular_text(path, MAX_ANSWER).map_err(|error| match error.kind() {
        std::io::ErrorKind::FileTooLarge => ModelError::TooLarge {
            limit: MAX_ANSWER as usize,
            partial: String::new(),
        },
        _ => io_error("reading", path, &error),
    })
}

fn io_error(verb: &str, path: &Path, error: &std::io::Error) -> ModelError {
    ModelError::io(format!("{verb} `{}`", path.display()), error)
}

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
        if !finished.is_text {
            return Err(ModelError::Broken {
                detail: "a part of it is not UTF-8".into(),
                partial: finished.stdout,
            });
        }
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

/// For example copies the prompt to the clipboard.
pub type Give = dyn Fn(&str) -> io::Result<()>;
/// From an editor, the clipboard or a file. `None` if the user cancels.
pub type Take = dyn Fn() -> io::Result<Option<String>>;

pub struct Manual {
    pub give: Rc<Give>,
    pub take: Rc<Take>,
}

impl Model for Manual {
    fn answer(
        &self,
        request: &ModelRequest,
        watch: &mut dyn FnMut(&str),
    ) -> Result<ModelAnswer, ModelError> {
        (self.give)(&request.full_text())
            .map_err(|error| ModelError::io("passing the input to you", &error))?;
        let text = (self.take)().map_err(|error| match error.kind() {
            // `ui::manual` reports a missing terminal with this kind.
            io::ErrorKind::Unsupported => ModelError::NoTerminal {
                detail: error.to_string(),
            },
            _ => ModelError::io("taking the answer", &error),
        })?;

        let text = text.ok_or(ModelError::NotTaken)?;
        ModelAnswer::shown(text, "manual", watch)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    fn ask(model: &Replay) -> Result<String, ModelError> {
        model
            .answer(&ModelRequest::default(), &mut |_| ())
            .map(|answer| answer.text)
    }

    fn write_answers(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        files
            .iter()
            .for_each(|(name, text)| fs::write(dir.path().join(name), text).unwrap());
        dir
    }

    #[test]
    fn texts_are_answered_in_order_and_then_used_up() {
        let model = Replay::from_texts(vec!["# A\n".into(), "# B\n".into()]);
        assert_eq!(
            [ask(&model).unwrap(), ask(&model).unwrap()],
            ["# A\n", "# B\n"]
        );
        assert_eq!(ask(&model), Err(ModelError::ReplayEnded { answers: 2 }));
    }

    #[test]
    fn a_folder_answers_in_the_order_of_its_numbers() {
        let dir = write_answers(&[
            ("10.md", "ten"),
            ("2.md", "two"),
            ("notes.rst", "no answer"),
            ("a.txt", "last"),
        ]);
        let model = Replay::from_path(dir.path()).unwrap();
        assert_eq!(
            [
                ask(&model).unwrap(),
                ask(&model).unwrap(),
                ask(&model).unwrap()
            ],
            ["two", "ten", "last"]
        );
    }

    #[test]
    fn a_single_file_answers_every_time() {
        let dir = write_answers(&[("plan.md", "# A\n")]);
        let model = Replay::from_path(&dir.path().join("plan.md")).unwrap();
        assert_eq!(
            [ask(&model).unwrap(), ask(&model).unwrap()],
            ["# A\n", "# A\n"]
        );
    }

    #[test]
    fn a_later_process_goes_on_where_an_earlier_one_stopped() {
        assert_eq!(
            ask(&Replay::from_texts(vec!["a".into(), "b".into()]).starting_at(1)).unwrap(),
            "b"
        );
    }

    #[test]
    fn what_is_missing_or_empty_is_said() {
        let dir = write_answers(&[("1.md", " \n"), ("2.md", "b")]);
        assert_eq!(
            ask(&Replay::from_path(dir.path()).unwrap()),
            Err(ModelError::Empty {
                reason: String::new()
            })
        );
        assert!(matches!(
            Replay::from_path(&dir.path().join("none")),
            Err(ModelError::Io { .. })
        ));
        let empty = tempfile::tempdir().unwrap();
        assert!(matches!(
            Replay::from_path(empty.path()),
            Err(ModelError::Settings(_))
        ));
    }

    fn check_program(run: &[&str], api_key_env: Option<&str>, expected: Result<&str, &str>) {
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
        check_program(&["cat"], None, Ok("S\n\nI\n\n# Message\n\nM\n"));
    }

    #[test]
    fn a_program_that_wants_a_file_gets_its_path() {
        check_program(
            &["sh", "-c", "cat; head -n 1 \"$0\"", "{input}"],
            None,
            Ok("S\n"),
        );
    }

    #[test]
    fn a_program_that_prints_nothing_is_an_error_with_its_words() {
        check_program(
            &["sh", "-c", "echo not logged in >&2"],
            None,
            Err("`sh` printed no answer: not logged in"),
        );
    }

    #[test]
    fn an_empty_run_is_no_model() {
        check_program(&[], None, Err("model `mine` has no program in `run`"));
    }

    fn check_manual(reply: Option<&str>, expected: Result<&str, ModelError>) {
        let handed_over = Rc::new(RefCell::new(String::new()));
        let request = ModelRequest {
            system: "S\n".into(),
            input: "I\n".into(),
            message: "M".into(),
            max_tokens: None,
        };
        let (sink, reply) = (handed_over.clone(), reply.map(str::to_owned));
        let give = Rc::new(move |text: &str| {
            text.clone_into(&mut sink.borrow_mut());
            Ok(())
        });
        let take = Rc::new(move || Ok(reply.clone()));
        let got = Manual { give, take }.answer(&request, &mut |_| ());
        assert_eq!(got.map(|answer| answer.text), expected.map(str::to_owned));
        assert_eq!(*handed_over.borrow(), "S\n\nI\n\n# Message\n\nM\n");
    }

    #[test]
    fn the_whole_input_is_given_and_the_answer_taken() {
        check_manual(Some("# A\n"), Ok("# A\n"));
    }

    #[test]
    fn leaving_takes_no_answer_and_nothing_is_an_empty_one() {
        check_manual(None, Err(ModelError::NotTaken));
        check_manual(
            Some(" \n"),
            Err(ModelError::Empty {
                reason: String::new(),
            }),
        );
    }
}
