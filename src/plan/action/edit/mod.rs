//! EDIT: replaces exact, unique places of a file.

mod check;
pub mod pair;
mod parse;
mod perform;

use serde_json::Value;

use super::behavior::{Behavior, Editable, PreviewPart, SummaryItem, UserEdit};
use super::create::Create;
use super::shape::{BodyShape, SummaryGroup};
use super::{Action, ActionKind, ActionRow, write_block};
use crate::plan::Field;
use crate::plan::run::error::ActionError;
use crate::plan::run::{Outcome, Stage};
use crate::plan::spelling::key::PATH_KEYS;
use crate::plan::validate::{Step, Validator};
use crate::text::diff::Counts;
use crate::text::edit::apply;
use crate::text::link;
use crate::text::path::RepoPath;
pub use pair::Pair;

/// Table entry of EDIT.
pub static ROW: ActionRow = ActionRow {
    name: "EDIT",
    aliases: &[],
    other_names: &["MODIFY", "UPDATE", "CHANGE"],
    keys: &["File Path", "Description"],
    other_keys: &[PATH_KEYS],
    shape: BodyShape::Pairs,
    group: SummaryGroup::Files,
    unit: ("file", "files"),
    counts_targets: true,
    read: |body| parse::parse_edit(body).map(ActionKind::from),
    #[cfg(test)]
    sample,
};

/// A file to change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// Its path.
    pub path: RepoPath,
    /// Replacements; each applies to the result of those before it.
    pub pairs: Vec<Pair>,
}

impl Behavior for Edit {
    fn row(&self) -> &'static ActionRow {
        &ROW
    }

    fn fields(&self) -> Vec<Field> {
        vec![
            Field::new("File Path", link::write_path(self.path.as_str())),
            Field::new("Description", ""),
        ]
    }

    fn write(&self, out: &mut String) {
        for pair in &self.pairs {
            out.push_str("\n`FIND:`\n");
            write_block(&pair.find, &pair.language, out);
            out.push_str("`REPLACE:`\n");
            write_block(&pair.replace, &pair.language, out);
        }
    }

    fn target(&self) -> String {
        self.path.to_string()
    }

    fn path(&self) -> Option<&RepoPath> {
        Some(&self.path)
    }

    fn pairs(&self) -> Option<&[Pair]> {
        Some(&self.pairs)
    }

    fn pairs_mut(&mut self) -> Option<&mut Vec<Pair>> {
        Some(&mut self.pairs)
    }

    fn has_work(&self) -> bool {
        !self.pairs.is_empty()
    }

    fn check(&self, validator: &mut Validator<'_>, action: &Action) -> anyhow::Result<()> {
        check::check_edit(validator, action, self)
    }

    fn perform(&self, stage: &mut Stage<'_>) -> Result<Outcome, ActionError> {
        perform::perform_edit(stage.root, self)
    }

    fn preview<'a>(&'a self, step: &'a Step) -> Vec<PreviewPart<'a>> {
        match step.after.as_deref() {
            Some(after) => vec![PreviewPart::Difference {
                path: &self.path,
                before: step.before.as_deref(),
                after: Some(after),
            }],
            None => self.pairs.iter().map(PreviewPart::Replacement).collect(),
        }
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
        let is_emptied = step.after.as_ref().is_some_and(Vec::is_empty);
        let lines = step.replaced_lines().filter(|_| is_emptied);
        let risk = lines.map(|lines| match lines {
            1 => format!("{} becomes empty: its 1 line goes", self.path),
            _ => format!("{} becomes empty: its {lines} lines go", self.path),
        });
        risk.into_iter().collect()
    }

    fn texts(&self) -> Vec<&str> {
        let pairs = self.pairs.iter();
        pairs.map(|pair| pair.replace.as_str()).collect()
    }

    fn text_with_nul(&self) -> Option<&'static str> {
        let mut pairs = self.pairs.iter();
        let has_nul = pairs.any(|pair| pair.find.contains('\0') || pair.replace.contains('\0'));
        has_nul.then_some("a pair")
    }

    fn editable(&self) -> Editable<'_> {
        Editable::FinalVersion { path: &self.path }
    }

    fn edited(&self, edit: UserEdit<'_>) -> Option<ActionKind> {
        match edit {
            UserEdit::FinalVersion { before, after } => Some(whole_file(self, before, after)),
            _ => None,
        }
    }

    #[cfg(test)]
    fn describe(&self) -> String {
        let pairs = self.pairs.iter();
        let pairs: Vec<_> = pairs
            .map(|pair| (pair.find.as_str(), pair.replace.as_str()))
            .collect();
        format!("EDIT {} {pairs:?}", self.path)
    }
}

/// Returns an action that turns the original file into its final content: an EDIT with one pair, or
/// a CREATE if no pair can express it, such as a removed final newline.
fn whole_file(edit: &Edit, before: &str, after: String) -> ActionKind {
    let first = edit.pairs.first();
    let (line, language) = first.map_or((0, String::new()), |pair| {
        (pair.line, pair.language.clone())
    });

    // A FIND ends with a line ending. If the file does not, both sides get one, which the matcher
    // removes.
    let end = if before.ends_with('\n') { "" } else { "\n" };
    let pair = Pair {
        line,
        find: format!("{before}{end}"),
        replace: format!("{after}{end}"),
        language,
    };
    match apply(before, &pair.find, &pair.replace) {
        Ok((result, _)) if result == after => {
            let pairs = vec![pair];
            let path = edit.path.clone();
            Edit { path, pairs }.into()
        }
        _ => {
            let create = Create {
                path: edit.path.clone(),
                text: after,
                language: pair.language,
                overwrite: true,
            };
            create.into()
        }
    }
}

#[cfg(test)]
fn sample() -> proptest::strategy::BoxedStrategy<ActionKind> {
    use crate::plan::samples;
    use proptest::prelude::*;

    let find = samples::block_text().prop_filter("not empty", |text| !text.is_empty());
    let pair = (find, samples::block_text()).prop_map(|(find, replace)| Pair {
        line: 0,
        find,
        replace,
        language: "xml".into(),
    });
    (samples::path(), proptest::collection::vec(pair, 1..3))
        .prop_map(|(path, pairs)| Edit { path, pairs }.into())
        .boxed()
}
