//! CREATE: makes a file that is not there yet.

use super::body::Body;
use super::shape::{BodyShape, SummaryGroup};
use super::{ActionKind, ActionRow, write_block};
use crate::plan::Field;
use crate::plan::diagnostic::quote;
use crate::plan::spelling::key::PATH_KEYS;
use crate::text::link;
use crate::text::path::RepoPath;

/// The row of the table.
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
    read: |body| read(body).map(ActionKind::Create),
};

/// A file to make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Create {
    /// Where.
    pub path: RepoPath,
    /// The exact content, with the line ends and the final newline that the fields ask for.
    pub content: String,
    /// The info string of the block.
    pub language: String,
    /// `- **Overwrite:** true`: an existing file may be replaced.
    pub overwrite: bool,
}

impl Create {
    /// Returns the fields of its value.
    pub fn fields(&self) -> Vec<Field> {
        let mut fields = vec![
            Field::new("File Path", link::write_path(self.path.as_str())),
            Field::new("Description", ""),
        ];
        if self.overwrite {
            fields.push(Field::new("Overwrite", "true"));
        }
        if !self.content.is_empty() && !self.content.ends_with(['\n', '\r']) {
            fields.push(Field::new("Final Newline", "no"));
        }
        if is_crlf(&self.content) {
            fields.push(Field::new("Line Endings", "CRLF"));
        }
        fields
    }

    /// Writes the content's block.
    pub fn write(&self, out: &mut String) {
        if is_crlf(&self.content) {
            write_block(&self.content.replace("\r\n", "\n"), &self.language, out);
        } else {
            write_block(&self.content, &self.language, out);
        }
    }
}

/// Reads the action.
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

/// Reads `Line Endings`; whether it asks for CRLF.
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

/// Returns whether a content has line ends, all of them CRLF, and no carriage return elsewhere.
fn is_crlf(content: &str) -> bool {
    let pairs = content.matches("\r\n").count();
    pairs > 0 && pairs == content.matches('\n').count() && pairs == content.matches('\r').count()
}

/// Returns a content with every bare LF as CRLF.
fn with_crlf(content: &str) -> String {
    content.replace("\r\n", "\n").replace('\n', "\r\n")
}
