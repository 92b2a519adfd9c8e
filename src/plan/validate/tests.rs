//! Mistakes that validation finds, and those it must not report.

use std::collections::BTreeMap;

use super::*;
use crate::plan::action::ActionKind;
use crate::plan::action::chat_with_user::ChatWithUser;
use crate::plan::action::conclude::Conclude;
use crate::plan::action::execute::Execute;
use crate::plan::action::invoke::Invoke;
use crate::plan::action::prune::Prune;
use crate::plan::memo::{MemoChange, Verb};
use crate::plan::samples::actions::{command, create, edit, execute, path, read, resource};

struct Snapshot {
    entries: BTreeMap<&'static str, Entry>,
    memos: Vec<String>,
    search_obstacle: Option<&'static str>,
}

impl Facts for Snapshot {
    fn entry(&self, path: &RepoPath) -> anyhow::Result<Entry> {
        let above = path
            .ancestors()
            .filter_map(|a| self.entries.get(a))
            .find(|e| !matches!(e, Entry::Dir));
        let prefix = format!("{path}/");
        let inside = self.entries.keys().any(|p| p.starts_with(&prefix));
        let entry = above.or_else(|| self.entries.get(path.as_str())).cloned();

        Ok(entry.unwrap_or(if inside { Entry::Dir } else { Entry::Absent }))
    }

    fn paths(&self) -> anyhow::Result<Vec<String>> {
        Ok(self.entries.keys().map(|p| (*p).to_owned()).collect())
    }

    fn in_context(&self, resource: &Resource) -> bool {
        !resource.to_string().contains("hidden")
    }

    fn in_turn_context(&self, resource: &Resource) -> bool {
        resource.to_string() == "src/a.rs"
    }

    fn memos(&self) -> &[String] {
        &self.memos
    }

    fn agents(&self) -> BTreeSet<String> {
        ["architect", "developer"].map(str::to_owned).into()
    }

    fn untrusted_agents(&self) -> BTreeSet<String> {
        BTreeSet::from(["poet".to_owned()])
    }

    fn search_obstacle(&self) -> Option<String> {
        self.search_obstacle.map(str::to_owned)
    }

    fn has_artifact(&self, resource: &Resource) -> bool {
        resource.to_string() == ".teddy/demo/01/report.md"
    }

    fn state(&self, path: &RepoPath) -> anyhow::Result<Option<FileState>> {
        Ok(match self.entry(path)? {
            Entry::File { bytes } => Some(FileState::plain(bytes)),
            _ => None,
        })
    }

    fn taken_bytes(&self, _name: &str) -> Option<Vec<u8>> {
        None
    }
}

fn snapshot() -> Snapshot {
    let file = |text: &str| Entry::File {
        bytes: text.as_bytes().to_vec(),
    };
    let entries = [
        ("README.md", file("hello\n")),
        ("bin.dat", file("a\0b")),
        ("empty.txt", file("")),
        ("hidden.rs", file("secret\n")),
        (
            "latin.txt",
            Entry::File {
                bytes: b"caf\xe9\n".to_vec(),
            },
        ),
        ("link", Entry::Link),
        ("huge.csv", Entry::LeftOut),
        ("src/a.rs", file("one\ntwo\nthree\n")),
        ("src/b.rs", file("let moved = here();\n")),
        ("vendor", Entry::Repository),
    ];
    Snapshot {
        entries: entries.into(),
        memos: vec!["Use pnpm.".to_owned()],
        search_obstacle: None,
    }
}

fn prune(name: &str) -> ActionKind {
    let resource = resource(name);
    Prune { resource }.into()
}

fn invoke(agent: &str, resources: &[&str]) -> ActionKind {
    let resources = resources.iter().map(|name| resource(name)).collect();
    ActionKind::Invoke(Invoke {
        agent: agent.to_owned(),
        resources,
        message: String::new(),
    })
}

fn conclude() -> ActionKind {
    ActionKind::Conclude(Conclude {
        resources: Vec::new(),
        message: "done".to_owned(),
    })
}

/// Returns a plan with actions at lines 10, 20, and so on.
fn plan(kinds: Vec<ActionKind>) -> Plan {
    let action = |(n, kind)| Action {
        line: (n + 1) * 10,
        fields: Vec::new(),
        kind,
    };
    Plan {
        actions: kinds.into_iter().enumerate().map(action).collect(),
        ..Plan::default()
    }
}

/// Formats every diagnostic as `line action: message (hint)`, and every provisional step.
fn report(plan: &Plan, facts: &Snapshot) -> String {
    let simulation = validate(plan, facts).expect("the snapshot can be read");
    let mut out = Vec::new();
    for d in &simulation.diagnostics {
        out.push(format!(
            "{} {}: {} ({})",
            d.line,
            d.action,
            d.message,
            d.hint.as_deref().unwrap_or("-")
        ));
    }

    for (n, step) in simulation
        .steps
        .iter()
        .enumerate()
        .filter(|(_, s)| s.provisional)
    {
        out.push(format!(
            "action {} is provisional{}",
            n + 1,
            if step.wrong { " and wrong" } else { "" }
        ));
    }
    out.join("\n")
}

fn check(kinds: Vec<ActionKind>, expected: &str) {
    assert_eq!(report(&plan(kinds), &snapshot()), expected);
}

mod cases;
mod files;
mod others;
