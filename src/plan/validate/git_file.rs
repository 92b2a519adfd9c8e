//! Finds a content that git refuses in a file of this name (P45).

use super::{Mistake, Validator};
use crate::plan::action::Action;
use crate::text::git_file::refused;
use crate::text::sanitize::sanitize_line;

/// A file that git refuses already can be changed.
pub(super) fn check(judge: &mut Validator<'_>, action: &Action) {
    let Some(path) = action.kind.path() else {
        return;
    };
    let step = judge.step();
    let reason = |bytes: &Option<Vec<u8>>| refused(path.file_name(), bytes.as_deref()?);
    let why = reason(&step.after).filter(|_| reason(&step.before).is_none());
    if let Some(why) = why {
        let message = format!("`{}`: {why}", sanitize_line(path.as_str()));
        let hint = "`git fsck --strict` and servers refuse such a file; write another content";
        judge.refuse_unless_fixable(action, action.line, Mistake::new(message, hint));
    }
}
