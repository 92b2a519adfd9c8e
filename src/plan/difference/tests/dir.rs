//! Runs generated plans in a real directory.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::{fs, io};

use super::trees::Tree;
use crate::host::file::Root;
use crate::plan::action::Action;
use crate::plan::action::execute::Execute;
use crate::plan::difference::{TakenBytes, WrittenPlan};
use crate::plan::parse::parse;
use crate::plan::run::{Executed, Outcome, Stage, Tools, run as run_plan};
use crate::plan::state::{FileState, StateMode};
use crate::text::resource::Artifact;

/// Tools that provide only the bytes for TAKE.
struct BytesAlone(TakenBytes);

impl Tools for BytesAlone {
    fn execute(&mut self, _execute: &Execute) -> io::Result<Executed> {
        Err(io::Error::other("the plan has no commands"))
    }

    fn fetch(&mut self, _url: &str) -> Result<(), String> {
        Err("the plan reads no pages".to_owned())
    }

    fn search(&mut self, _query: &str) -> Result<String, String> {
        Err("the plan searches nothing".to_owned())
    }

    fn has_artifact(&self, _artifact: &Artifact) -> bool {
        false
    }

    fn taken_bytes(&self, name: &str) -> Option<Vec<u8>> {
        self.0.get(name).cloned()
    }

    fn interrupted(&self) -> bool {
        false
    }

    fn started(&mut self, _index: usize, _action: &Action) {}

    fn finished(&mut self, _index: usize, _outcome: &Outcome) {}
}

/// Runs a plan in a directory with the files of `before`, and returns the files afterwards.
pub(super) fn run(before: &Tree, written: &WrittenPlan) -> Tree {
    let dir = tempfile::tempdir().expect("a temporary folder");
    write_tree(dir.path(), before);
    let (plan, _) = parse(&written.text);
    let root = Root::open(dir.path()).expect("the folder can be opened");
    let chosen = vec![true; plan.actions.len()];
    let mut tools = BytesAlone(written.taken_bytes.iter().cloned().collect());
    let ran = run_plan(
        &plan,
        &chosen,
        &mut Stage {
            root: &root,
            tools: &mut tools,
        },
    );
    assert!(ran.is_whole(), "{:?}\n{}", ran.outcomes, written.text);

    let mut tree = BTreeMap::new();
    read(dir.path(), "", &mut tree);
    tree
}

fn write_tree(dir: &Path, tree: &Tree) {
    for (name, state) in tree {
        let path = dir.join(name);
        fs::create_dir_all(path.parent().expect("a file has a folder")).expect("a new folder");
        if state.mode == StateMode::Link {
            symlink(OsStr::from_bytes(&state.bytes), &path).expect("a new link");
            continue;
        }
        fs::write(&path, &state.bytes).expect("a new file");
        let bits = if state.mode == StateMode::Executable {
            0o755
        } else {
            0o644
        };
        fs::set_permissions(&path, fs::Permissions::from_mode(bits)).expect("the file is ours");
    }
}

/// Reads the files of a directory. Panics on an empty directory: git would not record it.
fn read(dir: &Path, prefix: &str, tree: &mut Tree) {
    let entries = fs::read_dir(dir).expect("the folder can be read");
    let mut count = 0;
    for entry in entries {
        let entry = entry.expect("an entry");
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        let kind = entry.file_type().expect("a kind");
        count += 1;
        if kind.is_dir() {
            read(&entry.path(), &format!("{name}/"), tree);
            continue;
        }

        let state = if kind.is_symlink() {
            let target = fs::read_link(entry.path()).expect("a link");
            FileState {
                mode: StateMode::Link,
                bytes: target.into_os_string().into_vec(),
            }
        } else {
            let bits = entry.metadata().expect("its measures").permissions().mode();
            let is_executable = bits & 0o100 != 0;
            FileState {
                mode: if is_executable {
                    StateMode::Executable
                } else {
                    StateMode::Plain
                },
                bytes: fs::read(entry.path()).expect("its bytes"),
            }
        };
        tree.insert(name, state);
    }
    assert!(count > 0 || prefix.is_empty(), "`{prefix}` is left empty");
}
