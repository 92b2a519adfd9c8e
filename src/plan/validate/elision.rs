//! The mistake of a text that stands for code instead of having it.

use super::Mistake;
use crate::plan::diagnostic::quote;

/// Returns the mistake of a line in some text of a plan.
pub fn elision_mistake(subject: &str, line: &str) -> Mistake {
    Mistake::new(
        format!("{subject} leaves out code: \"{}\"", quote(line)),
        "the text is written as it is; write out every line, or FIND only the lines that change",
    )
}
