//! Replays recorded answers: from files, a directory, a session, or strings.

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};

use super::{Model, ModelAnswer, ModelError, ModelRequest};

use crate::host::file::read_regular_text;

/// In bytes.
const MAX_ANSWER: u64 = 32 << 20;

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
            ReplaySource::Files(files) if files.len() == 1 => read(&files[0]),
            ReplaySource::Files(files) => files
                .get(position)
                .ok_or(ModelError::ReplayEnded {
                    answers: files.len(),
                })
                .and_then(|file| read(file)),
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

fn read(path: &Path) -> Result<String, ModelError> {
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

#[cfg(test)]
mod tests {
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
}
