//! CREATE: creates a file.

use std::path::Path;

use serde_json::Value;

use super::behavior::{Behavior, Editable, PreviewPart, SummaryItem, UserEdit};
use super::body::Body;
use super::shape::{BodyShape, SummaryGroup};
use super::{Action, ActionKind, ActionRow, write_block};
use crate::host::file::{FileKind, FileMode};
use crate::plan::Field;
use crate::plan::diagnostic::quote;
use crate::plan::run::error::ActionError;
use crate::plan::run::write::{self, MAX_COMPARED};
use crate::plan::run::{Ending, Outcome, Stage};
use crate::plan::spelling::key::PATH_KEYS;
use crate::plan::validate::elision::elision;
use crate::plan::validate::world::Found;
use crate::plan::validate::{Judge, Mistake, Step};
use crate::text::counted;
use crate::text::diff::Counts;
use crate::text::elision::elided;
use crate::text::link;
use crate::text::path::RepoPath;
use crate::text::visible::visible;

/// Table entry of CREATE.
pub static ROW: ActionRow = ActionRow {
    name: "CREATE",
    aliases: &[],
    other_names: &["WRITE", "NEW_FILE"],
    keys: &[
        "File Path",
        "Description",
        "Overwrite",
        "Final Newline",
        "Line Endings",
    ],
    other_keys: &[PATH_KEYS],
    shape: BodyShape::File,
    group: SummaryGroup::Files,
    unit: ("file", "files"),
    counts_targets: false,
    read: |body| read(body).map(ActionKind::from),
    #[cfg(test)]
    sample,
};

/// A file to create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Create {
    /// Its path.
    pub path: RepoPath,
    /// The exact content, with line endings and final newline as the fields request.
    pub content: String,
    /// The info string of the block.
    pub language: String,
    /// `- **Overwrite:** true`: allows replacing an existing file.
    pub overwrite: bool,
}

impl Behavior for Create {
    fn row(&self) -> &'static ActionRow {
        &ROW
    }

    fn fields(&self) -> Vec<Field> {
        let mut fields = vec![
            Field::new("File Path", link::write_path(self.path.as_str())),
            Field::new("Description", ""),
        ];
        if self.overwrite {
            fields.push(Field::new("Overwrite", "true"));
        }

        // The content of a block always ends with a newline, so its absence needs a field (P12).
        if !self.content.is_empty() && !self.content.ends_with(['\n', '\r']) {
            fields.push(Field::new("Final Newline", "no"));
        }

        if is_crlf(&self.content) {
            fields.push(Field::new("Line Endings", "CRLF"));
        }

        fields
    }

    fn write(&self, out: &mut String) {
        // The block is written with LF; `Line Endings` restores CRLF when the plan is parsed.
        if is_crlf(&self.content) {
            write_block(&self.content.replace("\r\n", "\n"), &self.language, out);
        } else {
            write_block(&self.content, &self.language, out);
        }
    }

    fn target(&self) -> String {
        self.path.to_string()
    }

    fn path(&self) -> Option<&RepoPath> {
        Some(&self.path)
    }

    fn new_path(&self) -> Option<&RepoPath> {
        Some(&self.path)
    }

    fn check(&self, judge: &mut Judge<'_>, action: &Action) -> anyhow::Result<()> {
        let found = judge.world.look(&self.path)?;
        if let Some(mistake) = self.in_the_way(judge, &found)? {
            judge.miss(action, action.line, mistake);
        }

        let twin = judge.world.twins.add(&self.path);
        let twin = twin.filter(|_| matches!(found, Found::Absent));
        // The agent has already created the file under this name, so it is a risk, not a mistake
        // (P41).
        if judge.world.facts.is_made() {
            judge.step().twin = twin.map(|(_, other)| other);
        } else if let Some((name, other)) = twin {
            let message = format!(
                "`{}` is the same name as `{}` for some file systems",
                visible(&name),
                visible(&other)
            );
            let hint = if self.path.as_str() == name {
                "choose another name"
            } else {
                "spell the directory as it is"
            };
            judge.miss(action, action.line, Mistake::new(message, hint));
        }

        if !matches!(found, Found::Absent | Found::File(_)) {
            return Ok(());
        }

        if let Some(line) = self.elided(&found).filter(|_| !judge.world.facts.is_made()) {
            judge.refuse(action, action.line, elision("the content", line));
        }

        let known = judge.world.is_known(&self.path);
        let before = if let Found::File(bytes) = found {
            Some(bytes)
        } else {
            None
        };

        let step = judge.step();
        step.outside_context = before.is_some() && !known;
        step.before = before;
        step.after = (!step.wrong).then(|| self.content.clone().into_bytes());

        // Later actions see the file even if this one is rejected, so that they don't report
        // follow-up errors.
        judge
            .world
            .write(&self.path, self.content.clone().into_bytes())?;
        judge.world.created.insert(self.path.clone());
        Ok(())
    }

    fn perform(&self, stage: &mut Stage<'_>) -> Result<Outcome, ActionError> {
        let root = stage.root;
        let path = Path::new(self.path.as_str());
        write::no_repository_above(root, &self.path)?;
        let bytes = self.content.as_bytes();
        let there = root.entry(path).map_err(ActionError::reading)?;
        let verb = match there.map(|entry| (entry.kind, entry.size)) {
            None => "created",
            // EDIT has nothing to find in an empty file, so CREATE can fill it without `Overwrite`.
            Some((FileKind::File(_), 0)) => "filled the empty file",
            Some((FileKind::File(_), _)) if self.overwrite => "replaced as a whole",
            Some((FileKind::File(_), _)) => {
                return Err(format!("`{}` already exists", visible(self.path.as_str())).into());
            }
            Some(_) => {
                return Err(format!(
                    "`{}` already exists and is not a file",
                    visible(self.path.as_str())
                )
                .into());
            }
        };

        let before = match there {
            None => Some(None),
            // A file that is not readable as text is replaced without a diff.
            Some(_) => root.read(path, MAX_COMPARED as u64).ok().and_then(|bytes| {
                let text = String::from_utf8(bytes).ok()?;
                Some(Some(text))
            }),
        };
        write::written(|| match there {
            None => root.create_new(path, bytes, FileMode::Plain),
            Some(_) => root.replace(path, bytes),
        })?;

        let lines = counted(self.content.lines().count(), "line");
        Ok(Outcome {
            difference: before.map_or_else(String::new, |before| {
                write::difference(&self.path, before.as_deref(), &self.content)
            }),
            written: vec![self.path.clone()],
            ..Outcome::of(Ending::Success, format!("{verb}, {lines}"))
        })
    }

    fn preview<'a>(&'a self, step: &'a Step) -> Vec<PreviewPart<'a>> {
        vec![PreviewPart::Difference {
            path: &self.path,
            before: step.before.as_deref(),
            after: Some(step.after.as_deref().unwrap_or(self.content.as_bytes())),
        }]
    }

    fn summary(&self) -> SummaryItem<'_> {
        SummaryItem::ChangedFile
    }

    fn json(&self, counts: Counts) -> Vec<(&'static str, Value)> {
        vec![
            ("added", counts.added.into()),
            ("removed", counts.removed.into()),
        ]
    }

    fn risks(&self, step: &Step) -> Vec<String> {
        let replaced = step.replaced_lines().map(|lines| {
            let path = &self.path;
            match lines {
                1 => format!("{path} is there already: its 1 line is replaced"),
                _ => format!("{path} is there already: its {lines} lines are replaced"),
            }
        });
        replaced.into_iter().collect()
    }

    fn texts(&self) -> Vec<&str> {
        vec![&self.content]
    }

    fn text_with_nul(&self) -> Option<&'static str> {
        self.content.contains('\0').then_some("the content")
    }

    fn editable(&self) -> Editable<'_> {
        Editable::NewFile {
            path: &self.path,
            content: &self.content,
        }
    }

    fn edited(&self, edit: UserEdit<'_>) -> Option<ActionKind> {
        let UserEdit::NewFile { path, content } = edit else {
            return None;
        };
        let edited = Create {
            path,
            content,
            ..self.clone()
        };
        Some(edited.into())
    }

    #[cfg(test)]
    fn say(&self) -> String {
        let mark = if self.overwrite { "!" } else { "" };
        format!(
            "CREATE {} {:?} {}{mark}",
            self.path, self.content, self.language
        )
    }
}

impl Create {
    /// Returns a line of the content that stands for code of the file that it replaces.
    fn elided(&self, found: &Found) -> Option<&str> {
        let Found::File(bytes) = found else {
            return None;
        };
        let old = String::from_utf8_lossy(bytes);
        elided(&self.content, &old).filter(|_| !bytes.is_empty())
    }

    /// Returns the mistake if the path of the file is occupied.
    fn in_the_way(&self, judge: &Judge<'_>, found: &Found) -> anyhow::Result<Option<Mistake>> {
        let path = visible(self.path.as_str());
        if let Some(obstacle) = judge.world.obstacle(&self.path, found)? {
            return Ok(Some(Mistake::new(
                format!("`{path}` {obstacle}"),
                "choose another path",
            )));
        }

        Ok(match found {
            Found::File(_) if self.overwrite => None,
            Found::File(_) if judge.world.created.contains(&self.path) => Some(Mistake::new(
                format!("`{path}` is created twice"),
                "keep one CREATE; change the new file in it, or with an EDIT",
            )),
            Found::File(bytes) if !bytes.is_empty() => Some(Mistake::new(
                format!("`{path}` already exists"),
                "change it with EDIT, or say `- **Overwrite:** true` to replace it as a whole",
            )),
            _ => None,
        })
    }
}

fn read(body: &mut Body<'_>) -> Option<Create> {
    let path = body.path();
    let overwrite = body.flag("Overwrite").unwrap_or(false);
    let final_newline = body.flag("Final Newline").unwrap_or(true);
    let crlf = line_endings(body);
    let (mut content, language) = body.one_block()?;

    if !final_newline {
        let end = content
            .strip_suffix("\r\n")
            .or_else(|| content.strip_suffix(['\n', '\r']))
            .map_or(content.len(), str::len);
        content.truncate(end);
    }

    if crlf {
        content = with_crlf(&content);
    }

    Some(Create {
        path: path?,
        content,
        language,
        overwrite,
    })
}

/// Reads `Line Endings`; `true` for CRLF.
fn line_endings(body: &mut Body<'_>) -> bool {
    let Some(field) = body.field("Line Endings").cloned() else {
        return false;
    };
    match field.value.trim_matches('`').to_uppercase().as_str() {
        "CRLF" => true,
        "LF" => false,
        _ => {
            body.wrong(
                field.line,
                format!(
                    "`Line Endings` is neither LF nor CRLF: \"{}\"",
                    quote(&field.value)
                ),
                "write `CRLF`, or leave it out",
            );
            false
        }
    }
}

/// Returns whether every line ending is CRLF and no other carriage return occurs.
fn is_crlf(content: &str) -> bool {
    let pairs = content.matches("\r\n").count();
    pairs > 0 && pairs == content.matches('\n').count() && pairs == content.matches('\r').count()
}

fn with_crlf(content: &str) -> String {
    content.replace("\r\n", "\n").replace('\n', "\r\n")
}

#[cfg(test)]
fn sample() -> proptest::strategy::BoxedStrategy<ActionKind> {
    use crate::plan::samples;
    use proptest::prelude::*;

    (samples::path(), samples::file(), any::<bool>())
        .prop_map(|(path, content, overwrite)| {
            let language = "md".to_owned();
            let create = Create {
                path,
                content,
                language,
                overwrite,
            };
            create.into()
        })
        .boxed()
}
