//! Proposals for tests of this layer, validated by the real engine on files in memory.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use unicode_width::UnicodeWidthStr as _;

use crate::model::acting::transcript::CommandCounts;
use crate::plan::action::{Action, ActionKind};
use crate::plan::repair::{Level, Repaired};
use crate::plan::samples::actions::execute;
use crate::plan::state::FileState;
use crate::plan::validate::{Entry, Facts, Simulation, validate};
use crate::plan::{self, Plan};
use crate::text::path::RepoPath;
use crate::text::resource::Resource;
use crate::workflow::user::{ResourceContent, ReviewRequest};

type Revise = dyn Fn(&Plan) -> anyhow::Result<Simulation>;

type ReadResource = dyn Fn(&Resource) -> anyhow::Result<ResourceContent>;

/// Returns the text of a screen.
pub(super) fn rendered(terminal: &Terminal<TestBackend>) -> String {
    let buffer = terminal.backend().buffer();
    let row = |y| {
        let (mut text, mut skip) = (String::new(), 0);
        for x in 0..buffer.area.width {
            let symbol = buffer[(x, y)].symbol();
            // A wide character is followed by cells that belong to it.
            if skip == 0 {
                text.push_str(symbol);
                skip = symbol.width().saturating_sub(1);
            } else {
                skip -= 1;
            }
        }
        text.trim_end().to_owned()
    };
    let rows: Vec<String> = (0..buffer.area.height).map(row).collect();
    rows.join("\n")
}

pub(super) struct Sample {
    pub plan: Plan,
    pub repair: Repaired,
    pub simulation: Simulation,
    revise: Box<Revise>,
    read_resource: Box<ReadResource>,
    /// Number of validations so far.
    pub revised: Rc<Cell<usize>>,
}

impl Sample {
    /// The plan must be valid for the files.
    pub fn new(text: &str, files: &[(&str, &str)]) -> Sample {
        let sample = Sample::unfit(text, files);
        assert_eq!(sample.simulation.diagnostics, []);
        sample
    }

    /// The plan can have diagnostics.
    pub fn unfit(text: &str, files: &[(&str, &str)]) -> Sample {
        let (plan, diagnostics) = plan::parse(text);
        assert_eq!(diagnostics, []);
        let files = Rc::new(Files(
            files
                .iter()
                .map(|&(path, text)| (path.to_owned(), text.to_owned()))
                .collect(),
        ));
        let simulation = validate(&plan, &*files).unwrap();
        let repair = Repaired {
            text: text.to_owned(),
            level: Level::Clean,
            notes: Vec::new(),
        };

        let (revised, readable) = (Rc::new(Cell::new(0)), Rc::clone(&files));
        let count = Rc::clone(&revised);
        let revise = Box::new(move |plan: &Plan| {
            count.set(count.get() + 1);
            validate(plan, &*files)
        });
        let read_resource = Box::new(move |resource: &Resource| {
            let stored = readable
                .0
                .get(&resource.to_string())
                .map(|text| ResourceContent::Content(text.clone().into_bytes()));
            Ok(stored.unwrap_or(ResourceContent::Nothing(
                "it is not in the snapshot of your files",
            )))
        });

        Sample {
            plan,
            repair,
            simulation,
            revise,
            read_resource,
            revised,
        }
    }

    pub fn proposal(&self) -> ReviewRequest<'_> {
        ReviewRequest {
            session: "add-auth",
            turn: 3,
            plan: &self.plan,
            text: &self.repair.text,
            repair: &self.repair,
            simulation: &self.simulation,
            confinement: &|| "sandboxed, no network".to_owned(),
            revise: &*self.revise,
            read_resource: &*self.read_resource,
            earlier: None,
            comments: &[],
            written: &[],
            save_comments: &|_| Ok(()),
            agent_commands: CommandCounts::default(),
            agent_stop: None,
            transcript: None,
        }
    }
}

/// Files of a project, all of them in the context.
struct Files(BTreeMap<String, String>);

impl Facts for Files {
    fn entry(&self, path: &RepoPath) -> anyhow::Result<Entry> {
        let prefix = format!("{path}/");
        Ok(match self.0.get(path.as_str()) {
            Some(text) => Entry::File {
                bytes: text.clone().into_bytes(),
            },
            None if self.0.keys().any(|name| name.starts_with(&prefix)) => Entry::Dir,
            None => Entry::Absent,
        })
    }

    fn paths(&self) -> anyhow::Result<Vec<String>> {
        Ok(self.0.keys().cloned().collect())
    }

    fn in_context(&self, _resource: &Resource) -> bool {
        true
    }

    fn in_turn_context(&self, _resource: &Resource) -> bool {
        true
    }

    fn has_artifact(&self, _resource: &Resource) -> bool {
        true
    }

    fn taken_bytes(&self, _name: &str) -> Option<Vec<u8>> {
        None
    }

    fn state(&self, path: &RepoPath) -> anyhow::Result<Option<FileState>> {
        Ok(match self.entry(path)? {
            Entry::File { bytes } => Some(FileState::plain(bytes)),
            _ => None,
        })
    }
}

pub(super) fn action(line: usize, kind: ActionKind) -> Action {
    Action {
        line,
        fields: Vec::new(),
        kind,
    }
}

const HEAD: &str = "# Bootstrap New Project Component
- **Status:** Green 🟢
- **Plan Type:** Implementation
- **Agent:** Pathfinder

## Rationale
````text
### 1. Synthesis
The component is missing.
````
";

/// A memo, a CREATE, an EDIT with two dependent pairs, a READ, a command and a message.
const BOOTSTRAP: &str = "
## Memos
````text
[+] All new components must have a core.py file. # Establish a new convention.
````

## Action Plan

### `CREATE`
- **File Path:** [src/components/new_component/core.py](/src/components/new_component/core.py)
- **Description:** Start the component.
````python
def main():
    pass
````

### `EDIT`
- **File Path:** [pyproject.toml](/pyproject.toml)
- **Description:** Name a version.

`FIND:`
````toml
name = \"x\"
````
`REPLACE:`
````toml
name = \"x\"
version = \"1\"
````

`FIND:`
````toml
version = \"1\"
````
`REPLACE:`
````toml
version = \"2\"
````

### `READ`
- **Resource:** [docs/日本語.md](/docs/日本語.md)
- **Description:** See what it says.

### `EXECUTE`
- **Description:** Lock.
- **Expected Outcome:** A lock file.
````shell
poetry lock
````

### `CHAT_WITH_USER`
Is **this** right?
";

pub(super) fn bootstrap() -> Sample {
    Sample::new(
        &format!("{HEAD}{BOOTSTRAP}"),
        &[
            ("pyproject.toml", "[tool]\nname = \"x\"\n"),
            ("docs/日本語.md", "text\n"),
        ],
    )
}

/// A CREATE, and an EDIT of the created file.
pub(super) fn chain() -> Sample {
    let edit = "### `EDIT`\n- **File Path:** [a](/a)\n- **Description:** Edit.\n\n`FIND:`\n````\nx\n````\n`REPLACE:`\n````\ny\n````\n";
    Sample::new(
        &format!(
            "{HEAD}\n## Action Plan\n\n{}\n{edit}",
            create_action("a", "x")
        ),
        &[],
    )
}

pub(super) fn many(number: usize) -> Sample {
    let actions: String = (0..number)
        .map(|n| create_action(&format!("src/file_{n:03}.txt"), "content"))
        .collect();
    Sample::new(&format!("{HEAD}\n## Action Plan\n\n{actions}"), &[])
}

fn create_action(path: &str, contents: &str) -> String {
    format!(
        "### `CREATE`\n- **File Path:** [{path}](/{path})\n- **Description:** Make it.\n````\n{contents}\n````\n\n"
    )
}

/// The command is set after parsing, so it can contain any character.
pub(super) fn command(command: &str) -> Sample {
    let text = format!(
        "{HEAD}\n## Action Plan\n\n### `EXECUTE`\n- **Description:** Run.\n- **Expected Outcome:** Ran.\n````shell\ntrue\n````\n"
    );
    let mut sample = Sample::new(&text, &[]);
    sample.plan.actions[0].kind = execute(command);
    sample
}
