//! CREATE: creates a file.

use std::borrow::Cow;
use std::path::Path;

use super::behavior::{Behavior, Editable, PreviewPart, UserEdit};
use super::body::Body;
use super::take::KEEP_BYTES;
use super::{ActionKind, ActionRow, BodyShape, SummaryGroup, path_fields, write_block};
use crate::host::file::{FileKind, FileMode};
use crate::plan::diagnostic::quote;
use crate::plan::field::Field;
use crate::plan::line::key::PATH_KEYS;
use crate::plan::run;
use crate::plan::run::{ActionError, Ending, MAX_COMPARED_TEXT, Outcome, Stage};
use crate::plan::validate::simulated_files::Lookup;
use crate::plan::validate::{Mistake, Step, Validator, elision_mistake};
use crate::text::counted;
use crate::text::elision::elided;
use crate::text::keep_bytes::keep_bytes;
use crate::text::path::RepoPath;
use crate::text::sanitize::sanitize_line;

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
        KEEP_BYTES,
    ],
    other_keys: &[PATH_KEYS],
    shape: BodyShape::File,
    group: SummaryGroup::Files,
    unit: ("file", "files"),
    counts_targets: false,
    read: |body| read(body).map(ActionKind::from),
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Create {
    pub path: RepoPath,
    /// The exact content, with line endings and final newline as the fields request.
    pub text: String,
    /// The info string of the block.
    pub language: String,
    /// `- **Overwrite:** true`: allows replacing an existing file.
    pub overwrite: bool,
    /// Keeps encoding and line ends of the file that it replaces, as [`keep_bytes`] does.
    pub keep_bytes: bool,
}

impl Behavior for Create {
    fn fields(&self) -> Vec<Field> {
        let mut fields = path_fields(&self.path);
        if self.overwrite {
            fields.push(Field::new("Overwrite", "true"));
        }

        // The content of a block always ends with a newline, so its absence needs a field (P12).
        if !self.text.is_empty() && !self.text.ends_with(['\n', '\r']) {
            fields.push(Field::new("Final Newline", "no"));
        }

        if is_crlf(&self.text) {
            fields.push(Field::new("Line Endings", "CRLF"));
        }

        fields.extend(self.keep_bytes.then(|| Field::new(KEEP_BYTES, "true")));
        fields
    }

    fn write(&self, out: &mut String) {
        // The block is written with LF; `Line Endings` restores CRLF when the plan is parsed.
        if is_crlf(&self.text) {
            write_block(&self.text.replace("\r\n", "\n"), &self.language, out);
        } else {
            write_block(&self.text, &self.language, out);
        }
    }

    fn path(&self) -> Option<&RepoPath> {
        Some(&self.path)
    }

    fn new_path(&self) -> Option<&RepoPath> {
        Some(&self.path)
    }

    fn check(&self, validator: &mut Validator<'_>) -> anyhow::Result<()> {
        let entry = validator.files.look_up(&self.path)?;
        if let Some(mistake) = self.find_obstacle(validator, &entry)? {
            validator.refuse_unless_fixable(mistake);
        }

        let collision = validator.files.case_collisions.add(&self.path);
        let collision = collision.filter(|_| matches!(entry, Lookup::Absent));
        // The agent has already created the file under this name, so it is a risk, not a mistake
        // (P41).
        if validator.files.facts.is_from_agent() {
            validator.step().case_collision = collision.map(|(_, other)| other);
        } else if let Some((name, other)) = collision {
            validator.refuse_unless_fixable(self.case_mistake(&name, &other));
        }

        if !matches!(entry, Lookup::Absent | Lookup::File(_)) {
            return Ok(());
        }

        if let Some(line) = self
            .elided(&entry)
            .filter(|_| !validator.files.facts.is_from_agent())
        {
            validator.refuse(elision_mistake("the content", line));
        }

        let is_known = validator.files.is_known(&self.path);
        let before = if let Lookup::File(bytes) = entry {
            Some(bytes)
        } else {
            None
        };

        let step = validator.step();
        let kept = before.as_deref().filter(|_| !step.wrong);
        let after = self.bytes_over(kept).into_owned();
        step.outside_context = before.is_some() && !is_known;
        step.before = before;
        step.after = (!step.wrong).then(|| after.clone());

        // Later actions see the file even if this one is rejected, so that they don't report
        // follow-up errors.
        validator.files.write(&self.path, after)?;
        validator.files.created.insert(self.path.clone());
        Ok(())
    }

    fn perform(&self, stage: &mut Stage<'_>) -> Result<Outcome, ActionError> {
        let root = stage.root;
        let path = Path::new(self.path.as_str());
        run::no_repository_above(root, &self.path)?;
        let existing = root.entry(path).map_err(ActionError::reading)?;
        let verb = self.verb(existing.map(|entry| (entry.kind, entry.size)))?;

        let before = existing.map(|_| root.read(path, MAX_COMPARED_TEXT as u64));
        let before = match before.transpose() {
            Err(error) if self.keep_bytes => return Err(ActionError::reading(error)),
            before => before.ok(),
        };
        let bytes = self.bytes_over(before.as_ref().and_then(Option::as_deref));
        run::write_guarded(|| match existing {
            None => root.create_new(path, &bytes, FileMode::Plain),
            Some(_) => root.replace(path, &bytes),
        })?;
        // A file that is not readable as text is replaced without a diff.
        let texts = before.as_ref().and_then(|before| {
            let before = before.as_deref().map(str::from_utf8).transpose();
            before.ok().zip(str::from_utf8(&bytes).ok())
        });

        let lines = counted(self.text.lines().count(), "line");
        Ok(Outcome {
            difference: texts.map_or_else(String::new, |(before, after)| {
                run::file_difference(&self.path, before, Some(after))
            }),
            written: vec![self.path.clone()],
            ..Outcome::of(Ending::Success, format!("{verb}, {lines}"))
        })
    }

    fn preview<'a>(&'a self, step: &'a Step) -> Vec<PreviewPart<'a>> {
        let kept = (self.keep_bytes && step.before.is_some())
            .then(|| PreviewPart::Text(vec!["your encoding and line ends stay".to_owned()]));
        let difference = PreviewPart::Difference {
            path: &self.path,
            before: step.before.as_deref(),
            after: Some(step.after.as_deref().unwrap_or(self.text.as_bytes())),
        };
        kept.into_iter().chain([difference]).collect()
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
        vec![&self.text]
    }

    fn text_with_nul(&self) -> Option<&'static str> {
        self.text.contains('\0').then_some("the content")
    }

    fn editable(&self) -> Editable<'_> {
        Editable::NewFile {
            path: &self.path,
            text: &self.text,
        }
    }

    fn with_version(&self, edit: UserEdit<'_>) -> Option<ActionKind> {
        let UserEdit::NewFile { path, text } = edit else {
            return None;
        };
        let edited = Create {
            path,
            text,
            ..self.clone()
        };
        Some(edited.into())
    }

    fn keeps_bytes_mut(&mut self) -> Option<&mut bool> {
        Some(&mut self.keep_bytes)
    }
}

impl Create {
    /// Returns what it writes in place of a file.
    fn bytes_over(&self, before: Option<&[u8]>) -> Cow<'_, [u8]> {
        match before.filter(|_| self.keep_bytes) {
            Some(before) => Cow::Owned(keep_bytes(before, self.text.as_bytes())),
            None => Cow::Borrowed(self.text.as_bytes()),
        }
    }

    fn case_mistake(&self, name: &str, other: &str) -> Mistake {
        let message = format!(
            "`{}` is the same name as `{}` for some file systems",
            sanitize_line(name),
            sanitize_line(other)
        );
        let hint = if self.path.as_str() == name {
            "choose another name"
        } else {
            "spell the directory as it is"
        };
        Mistake::new(message, hint)
    }

    /// Describes the effect on an existing file, given by kind and size.
    fn verb(&self, existing: Option<(FileKind, u64)>) -> Result<&'static str, ActionError> {
        let shown = sanitize_line(self.path.as_str());
        match existing {
            None => Ok("created"),
            // EDIT has nothing to find in an empty file, so CREATE can fill it without `Overwrite`.
            Some((FileKind::File(_), 0)) => Ok("filled the empty file"),
            Some((FileKind::File(_), _)) if self.overwrite => Ok("replaced as a whole"),
            Some((FileKind::File(_), _)) => Err(format!("`{shown}` already exists").into()),
            Some(_) => Err(format!("`{shown}` already exists and is not a file").into()),
        }
    }

    /// Returns a line of the content that stands for code of the file that it replaces.
    fn elided(&self, entry: &Lookup) -> Option<&str> {
        let Lookup::File(bytes) = entry else {
            return None;
        };
        let old = String::from_utf8_lossy(bytes);
        elided(&self.text, &old).filter(|_| !bytes.is_empty())
    }

    fn find_obstacle(
        &self,
        validator: &Validator<'_>,
        entry: &Lookup,
    ) -> anyhow::Result<Option<Mistake>> {
        let path = sanitize_line(self.path.as_str());
        if let Some(obstacle) = validator.files.obstacle(&self.path, entry)? {
            return Ok(Some(Mistake::new(
                format!("`{path}` {obstacle}"),
                "choose another path",
            )));
        }

        Ok(match entry {
            Lookup::File(_) if self.overwrite => None,
            Lookup::File(_) if validator.files.created.contains(&self.path) => Some(Mistake::new(
                format!("`{path}` is created twice"),
                "keep one CREATE; change the new file in it, or with an EDIT",
            )),
            Lookup::File(bytes) if !bytes.is_empty() => Some(Mistake::new(
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
    let keep_bytes = body.flag(KEEP_BYTES).unwrap_or(false);
    let (mut text, language) = body.one_block()?;

    if !final_newline {
        let end = text
            .strip_suffix("\r\n")
            .or_else(|| text.strip_suffix(['\n', '\r']))
            .map_or(text.len(), str::len);
        text.truncate(end);
    }

    if crlf {
        text = with_crlf(&text);
    }

    Some(Create {
        path: path?,
        text,
        language,
        overwrite,
        keep_bytes,
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
            body.report(
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
fn is_crlf(text: &str) -> bool {
    let pairs = text.matches("\r\n").count();
    pairs > 0 && pairs == text.matches('\n').count() && pairs == text.matches('\r').count()
}

fn with_crlf(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\n', "\r\n")
}
