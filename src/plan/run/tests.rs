//! Runs plans in a temporary directory, with fake commands, pages and searches.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

use super::*;
use crate::host::shell::{CapturedOutput, FinishedScript, ScriptEnd};
use crate::plan::action::ActionKind;
use crate::plan::action::chat_with_user::ChatWithUser;
use crate::plan::action::conclude::Conclude;
use crate::plan::action::create::Create;
use crate::plan::action::invoke::Invoke;
use crate::plan::action::prune::Prune;
use crate::plan::action::research::Research;
use crate::plan::samples::actions::{command, create, edit, execute, new_file, path, read};

struct TestProject {
    dir: tempfile::TempDir,
    /// Recorded events, one line each.
    log: Vec<String>,
    stop: bool,
    taken_bytes: BTreeMap<String, Vec<u8>>,
}

impl TestProject {
    fn new() -> TestProject {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let world = TestProject {
            dir,
            log: Vec::new(),
            stop: false,
            taken_bytes: BTreeMap::new(),
        };
        world.put("src/a.rs", b"one\ntwo\nthree\n");
        world.put("bin.dat", b"a\0b");
        world.put("empty.txt", b"");

        world
    }

    fn put(&self, name: &str, bytes: &[u8]) {
        let path = self.dir.path().join(name);
        fs::create_dir_all(path.parent().expect("a file has a folder"))
            .expect("the folder can be made");
        fs::write(path, bytes).expect("the file can be written");
    }

    fn get(&self, name: &str) -> Option<String> {
        fs::read(self.dir.path().join(name))
            .ok()
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Runs all actions except `left_out`.
    fn run(&mut self, kinds: Vec<ActionKind>, left_out: &[usize]) -> Ran {
        let action = |(n, kind)| Action {
            line: n + 1,
            fields: Vec::new(),
            kind,
        };
        let plan = Plan {
            actions: kinds.into_iter().enumerate().map(action).collect(),
            ..Plan::default()
        };

        let chosen: Vec<bool> = (0..plan.actions.len())
            .map(|n| !left_out.contains(&n))
            .collect();
        let root = Root::open(self.dir.path()).expect("the folder can be opened");
        run(
            &plan,
            &chosen,
            &mut Stage {
                root: &root,
                tools: self,
            },
        )
    }

    fn check(&mut self, kinds: Vec<ActionKind>, expected: &[&str]) -> Ran {
        let ran = self.run(kinds, &[]);
        assert_eq!(summarize(&ran), expected);
        ran
    }
}

/// Formats each outcome as `Ending: detail`.
fn summarize(ran: &Ran) -> Vec<String> {
    ran.outcomes
        .iter()
        .map(|o| format!("{:?}: {}", o.ending, o.detail))
        .collect()
}

impl Tools for TestProject {
    /// `exit 3`, `write <file> <text>`, `stop`, `sleep`; anything else succeeds.
    fn execute(&mut self, execute: &Execute) -> io::Result<Executed> {
        let tokens: Vec<&str> = execute.command.split_whitespace().collect();
        let end = match tokens.as_slice() {
            ["exit", code] => ScriptEnd::Exited(code.parse().expect("a number")),
            ["sleep"] => ScriptEnd::TimedOut(Duration::from_secs(2)),
            ["kill"] => ScriptEnd::Signaled(9),
            ["nothing"] => return Err(io::Error::other("no temporary file")),
            ["stop"] => {
                self.stop = true;
                ScriptEnd::Interrupted
            }
            ["write", file, text] => {
                self.put(file, format!("{text}\n").as_bytes());
                ScriptEnd::Exited(0)
            }
            _ => ScriptEnd::Exited(0),
        };

        let output = CapturedOutput {
            head: execute.command.clone().into_bytes(),
            tail: Vec::new(),
            lost: 0,
        };
        Ok(Executed {
            finished: FinishedScript {
                end,
                output,
                survivors: Vec::new(),
                isolation: crate::host::sandbox::Isolation::default(),
            },
            hint: None,
        })
    }

    fn fetch(&mut self, url: &str) -> Result<(), String> {
        if url.contains("bad") {
            Err("the server says 403".to_owned())
        } else {
            Ok(())
        }
    }

    fn taken_bytes(&self, name: &str) -> Option<Vec<u8>> {
        self.taken_bytes.get(name).cloned()
    }

    fn search(&mut self, query: &str) -> Result<String, String> {
        if query.contains("bad") {
            Err("no answer".to_owned())
        } else {
            Ok(format!("- about {query}"))
        }
    }

    fn has_artifact(&self, artifact: &Artifact) -> bool {
        artifact.turn == 1
    }

    fn interrupted(&self) -> bool {
        self.stop
    }

    fn started(&mut self, index: usize, action: &Action) {
        self.log.push(format!("{index} {}", action.kind.name()));
    }

    fn finished(&mut self, index: usize, outcome: &Outcome) {
        self.log.push(format!("{index} {:?}", outcome.ending));
    }
}

mod files;
mod flow;
