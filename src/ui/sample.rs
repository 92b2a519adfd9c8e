//! Proposals for the tests of this layer.

use crate::plan::action::chat_with_user::ChatWithUser;
use crate::plan::action::create::Create;
use crate::plan::action::edit::{Edit, Pair};
use crate::plan::action::execute::Execute;
use crate::plan::action::read::Read;
use crate::plan::action::{Action, Kind};
use crate::plan::diagnostic::Diagnostic;
use crate::plan::memo::{self, Verb};
use crate::plan::repair::{Level, Repaired};
use crate::plan::validate::{Simulation, Step};
use crate::plan::{Field, Plan};
use crate::text::path::RepoPath;
use crate::text::resource::Resource;
use crate::workflow::user::Proposal;

/// A validation.
type Revise = dyn Fn(&Plan) -> anyhow::Result<Simulation>;

/// What a proposal borrows from.
pub(super) struct Sample {
    /// The plan.
    pub plan: Plan,
    /// Its repair.
    pub repair: Repaired,
    /// What it would do.
    pub simulation: Simulation,
    /// A validation by plain substitution.
    revise: Box<Revise>,
}

impl Sample {
    /// Returns a sample of a plan on files.
    pub fn new(plan: Plan, files: &[(&str, &str)]) -> Sample {
        let files: Vec<(String, String)> = files.iter().map(|&(path, text)| (path.to_owned(), text.to_owned())).collect();
        let simulation = simulate(&plan, &files);
        let repair = Repaired { text: String::new(), level: Level::Clean, notes: Vec::new() };
        Sample { plan, repair, simulation, revise: Box::new(move |plan| Ok(simulate(plan, &files))) }
    }

    /// Returns the proposal.
    pub fn proposal(&self) -> Proposal<'_> {
        Proposal {
            session: "add-auth",
            turn: 3,
            plan: &self.plan,
            text: "# Bootstrap New Project Component\n",
            repair: &self.repair,
            simulation: &self.simulation,
            confinement: "sandboxed, no network",
            revise: &*self.revise,
        }
    }
}

/// Returns what a plan does: each pair replaces the first hit of the text so far.
fn simulate(plan: &Plan, files: &[(String, String)]) -> Simulation {
    let mut files = files.to_vec();
    let mut simulation = Simulation::default();
    for action in &plan.actions {
        let step = match &action.kind {
            Kind::Create(create) => {
                files.push((create.path.to_string(), create.content.clone()));
                Step { after: Some(create.content.clone().into_bytes()), ..Step::default() }
            }
            Kind::Edit(edit) => edited(edit, &mut files, &mut simulation.diagnostics),
            _ => Step::default(),
        };
        simulation.steps.push(step);
    }
    simulation
}

/// Applies the pairs of an EDIT.
fn edited(edit: &Edit, files: &mut [(String, String)], diagnostics: &mut Vec<Diagnostic>) -> Step {
    let action = format!("EDIT {}", edit.path);
    let Some((_, text)) = files.iter_mut().find(|(path, _)| path == edit.path.as_str()) else {
        let line = edit.pairs.first().map_or(0, |pair| pair.line);
        diagnostics.push(Diagnostic { line, action, message: "the file is not there".to_owned(), hint: None });
        return Step::default();
    };
    let before = text.clone();
    for pair in &edit.pairs {
        if text.contains(&pair.find) {
            *text = text.replacen(&pair.find, &pair.replace, 1);
        } else {
            let message = "FIND matches nothing".to_owned();
            diagnostics.push(Diagnostic { line: pair.line, action: action.clone(), message, hint: None });
        }
    }
    Step { before: Some(before.into_bytes()), after: Some(text.clone().into_bytes()), ..Step::default() }
}

/// Returns an action at a line.
pub(super) fn action(line: usize, kind: Kind) -> Action {
    Action { line, fields: Vec::new(), kind }
}

/// Returns a path.
pub(super) fn path(text: &str) -> RepoPath {
    RepoPath::parse(text).unwrap()
}

/// Returns a CREATE.
pub(super) fn create(name: &str, content: &str) -> Kind {
    Kind::Create(Create { path: path(name), content: content.to_owned(), language: String::new(), overwrite: false })
}

/// Returns an EDIT whose pairs start at a line, ten lines apart.
pub(super) fn edit(name: &str, line: usize, pairs: &[(&str, &str)]) -> Kind {
    let pair = |(at, &(find, replace)): (usize, &(&str, &str))| Pair {
        line: line + 10 * at,
        find: find.to_owned(),
        replace: replace.to_owned(),
        language: String::new(),
    };
    Kind::Edit(Edit { path: path(name), pairs: pairs.iter().enumerate().map(pair).collect() })
}

/// Returns an EXECUTE.
pub(super) fn execute(command: &str) -> Kind {
    Kind::Execute(Execute {
        command: command.to_owned(),
        language: "shell".to_owned(),
        cwd: None,
        env: Vec::new(),
        expected_outcome: String::new(),
        allow_failure: false,
        timeout: None,
    })
}

/// Returns a plan with a header.
pub(super) fn plan(actions: Vec<Action>) -> Plan {
    let field = |key: &str, value: &str| Field { line: 2, key: key.to_owned(), value: value.to_owned(), items: Vec::new() };
    Plan {
        title: "Bootstrap New Project Component".to_owned(),
        fields: vec![field("Status", "Green 🟢"), field("Agent", "Pathfinder")],
        actions,
        ..Plan::default()
    }
}

/// Returns the seed's example: a memo, a CREATE, an EDIT, a command; then a READ and a message.
pub(super) fn bootstrap() -> Sample {
    let mut plan = plan(vec![
        action(20, create("src/components/new_component/core.py", "def main():\n    pass\n")),
        action(
            30,
            edit(
                "pyproject.toml",
                31,
                &[("name = \"x\"\n", "name = \"x\"\nversion = \"1\"\n"), ("version = \"1\"\n", "version = \"2\"\n")],
            ),
        ),
        action(60, execute("poetry lock\n")),
        action(70, Kind::Read(Read { resource: Resource::parse("docs/日本語.md").unwrap() })),
        action(80, Kind::ChatWithUser(ChatWithUser { message: "Is **this** right?".to_owned() })),
    ]);
    plan.memos.push(memo::Change {
        line: 10,
        verb: Verb::Add,
        text: "All new components must have a core.py file.".to_owned(),
        comment: Some("Establish a new convention.".to_owned()),
    });
    Sample::new(plan, &[("pyproject.toml", "[tool]\nname = \"x\"\n")])
}

/// Returns a plan that makes many files.
pub(super) fn many(number: usize) -> Sample {
    let one = |n: usize| action(10 + n * 10, create(&format!("src/file_{n:03}.txt"), "content\n"));
    Sample::new(plan((0..number).map(one).collect()), &[])
}

/// Returns a plan with one command.
pub(super) fn command(command: &str) -> Sample {
    Sample::new(plan(vec![action(10, execute(command))]), &[])
}
