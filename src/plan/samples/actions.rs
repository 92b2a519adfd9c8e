//! Actions that differ only in what a test is about.

use crate::plan::action::behavior::Pair;
use crate::plan::action::create::Create;
use crate::plan::action::edit::Edit;
use crate::plan::action::read::Read;
use crate::plan::action::{ActionKind, Execute};
use crate::text::path::RepoPath;
use crate::text::resource::Resource;

pub fn path(text: &str) -> RepoPath {
    RepoPath::parse(text).expect("the tests name plain paths")
}

pub fn resource(text: &str) -> Resource {
    Resource::parse(text).expect("the tests name plain resources")
}

pub fn new_file(to: &str, text: &str) -> Create {
    Create {
        path: path(to),
        text: text.to_owned(),
        language: String::new(),
        overwrite: false,
        keep_bytes: false,
    }
}

pub fn create(to: &str, text: &str) -> ActionKind {
    new_file(to, text).into()
}

/// The pairs are at lines 1, 2, and so on.
pub fn edit(to: &str, pairs: &[(&str, &str)]) -> ActionKind {
    let pair = |(at, &(find, replace)): (usize, &(&str, &str))| Pair {
        line: at + 1,
        find: find.to_owned(),
        replace: replace.to_owned(),
        language: String::new(),
    };
    let edit = Edit {
        path: path(to),
        pairs: pairs.iter().enumerate().map(pair).collect(),
    };
    edit.into()
}

pub fn command(text: &str) -> Execute {
    Execute {
        command: text.to_owned(),
        language: "shell".to_owned(),
        ..Execute::default()
    }
}

pub fn execute(text: &str) -> ActionKind {
    command(text).into()
}

pub fn read(name: &str) -> ActionKind {
    let resource = resource(name);
    Read { resource }.into()
}
