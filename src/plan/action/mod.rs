//! The nine actions: one file each for its value, its fields, how it is read and written.

pub mod body;
pub mod border;
pub mod chat_with_user;
pub mod conclude;
pub mod create;
pub mod edit;
pub mod execute;
pub mod field;
pub mod foreign;
pub mod heading;
pub mod invoke;
pub mod prune;
pub mod read;
pub mod research;
mod script;
mod take;

use super::Field;
use crate::text::fence::fence_for;
use crate::text::link;
use crate::text::path::RepoPath;
use crate::text::resource::Resource;
use body::Body;
use heading::Act;

/// The shortest fence that is written.
const MIN_FENCE: usize = 4;

/// One line of the table of actions.
#[derive(Debug)]
pub struct Row {
    /// Which action it is.
    pub act: Act,
    /// The name as the format spells it.
    pub name: &'static str,
    /// Other names that are read.
    pub aliases: &'static [&'static str],
    /// The fields that mean something, as the format spells them.
    pub keys: &'static [&'static str],
    /// What stands below the heading, in words.
    pub shape: &'static str,
    /// Whether all that follows the list is a message.
    pub message: bool,
    /// Whether it has the labels FIND and REPLACE.
    pub labels: bool,
    /// Reads it; `None` and a diagnostic where it cannot be read.
    pub read: fn(&mut Body<'_>) -> Option<Kind>,
}

/// The actions.
pub static ROWS: [Row; 9] = [
    create::ROW,
    read::ROW,
    edit::ROW,
    execute::ROW,
    research::ROW,
    chat_with_user::ROW,
    invoke::ROW,
    conclude::ROW,
    prune::ROW,
];

/// One `### ACTION` of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Action {
    /// The line of the heading, from 1.
    pub line: usize,
    /// The whole list below the heading, in order, as the report repeats it.
    pub fields: Vec<Field>,
    /// What it does.
    pub kind: Kind,
}

/// What an action does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// Makes a file.
    Create(create::Create),
    /// Brings a resource into the context.
    Read(read::Read),
    /// Changes a file.
    Edit(edit::Edit),
    /// Runs a command.
    Execute(execute::Execute),
    /// Searches the web.
    Research(research::Research),
    /// Talks to the user.
    ChatWithUser(chat_with_user::ChatWithUser),
    /// Hands over to another agent.
    Invoke(invoke::Invoke),
    /// Returns to the agent that handed over.
    Conclude(conclude::Conclude),
    /// Takes a resource out of the context.
    Prune(prune::Prune),
}

impl Kind {
    /// Returns which action it is.
    pub fn act(&self) -> Act {
        match self {
            Kind::Create(_) => Act::Create,
            Kind::Read(_) => Act::Read,
            Kind::Edit(_) => Act::Edit,
            Kind::Execute(_) => Act::Execute,
            Kind::Research(_) => Act::Research,
            Kind::ChatWithUser(_) => Act::Chat,
            Kind::Invoke(_) => Act::Invoke,
            Kind::Conclude(_) => Act::Conclude,
            Kind::Prune(_) => Act::Prune,
        }
    }

    /// Returns the action's name as the format spells it.
    pub fn name(&self) -> &'static str {
        self.act().name()
    }

    /// Returns its fields that follow from its value, in the format's order; a `Description`
    /// without a value marks the place of the action's own.
    pub fn fields(&self) -> Vec<Field> {
        match self {
            Kind::Create(create) => create.fields(),
            Kind::Read(read) => read.fields(),
            Kind::Edit(edit) => edit.fields(),
            Kind::Execute(execute) => execute.fields(),
            Kind::Research(_) => vec![Field::new("Description", "")],
            Kind::ChatWithUser(_) => Vec::new(),
            Kind::Invoke(invoke) => invoke.fields(),
            Kind::Conclude(conclude) => conclude.fields(),
            Kind::Prune(prune) => prune.fields(),
        }
    }

    /// Writes what stands below its list; messages are left to `border`.
    pub fn write(&self, out: &mut String) {
        match self {
            Kind::Create(create) => create.write(out),
            Kind::Edit(edit) => edit.write(out),
            Kind::Execute(execute) => execute.write(out),
            Kind::Research(research) => research.write(out),
            _ => {}
        }
    }

    /// Returns the same without the lines in which it stands.
    #[must_use]
    pub fn without_lines(&self) -> Kind {
        let mut kind = self.clone();
        if let Kind::Edit(edit) = &mut kind {
            edit.pairs.iter_mut().for_each(|pair| pair.line = 0);
        }
        kind
    }

    /// Returns the file that it writes itself, if it writes one.
    pub fn path(&self) -> Option<&RepoPath> {
        match self {
            Kind::Create(create) => Some(&create.path),
            Kind::Edit(edit) => Some(&edit.path),
            _ => None,
        }
    }

    /// Returns its message.
    pub fn message(&self) -> Option<&str> {
        match self {
            Kind::ChatWithUser(chat) => Some(&chat.message),
            Kind::Invoke(invoke) => Some(&invoke.message),
            Kind::Conclude(conclude) => Some(&conclude.message),
            _ => None,
        }
    }

    /// Returns the keys of its row of the table.
    pub fn keys(&self) -> &'static [&'static str] {
        self.act().row().keys
    }

    /// Returns what it acts on, in one line: a path, a URL, an agent, the first line of a command,
    /// the first query, the first line of a message.
    pub fn target(&self) -> String {
        let first_line = |text: &str| {
            text.lines()
                .find(|l| !l.trim().is_empty())
                .unwrap_or_default()
                .to_owned()
        };
        match self {
            Kind::Create(create) => create.path.to_string(),
            Kind::Read(read) => read.resource.to_string(),
            Kind::Edit(edit) => edit.path.to_string(),
            Kind::Execute(execute) => first_line(&execute.command),
            Kind::Research(research) => research
                .queries
                .first()
                .map(|q| first_line(q))
                .unwrap_or_default(),
            Kind::ChatWithUser(chat) => first_line(&chat.message),
            Kind::Invoke(invoke) => invoke.agent.clone(),
            Kind::Conclude(conclude) => first_line(&conclude.message),
            Kind::Prune(prune) => prune.resource.to_string(),
        }
    }
}

impl Action {
    /// Returns the text of `- **Description:**`.
    pub fn description(&self) -> &str {
        self.fields
            .iter()
            .find(|f| f.key == "Description")
            .map_or("", |f| f.value.as_str())
    }
}

/// Writes a code block whose fence is longer than any run inside.
pub fn write_block(content: &str, language: &str, out: &mut String) {
    let fence = fence_for(content, MIN_FENCE);
    let language: String = language
        .chars()
        .filter(|&c| c != '`' && !c.is_whitespace() && !c.is_control())
        .collect();
    out.push_str(&format!("{fence}{language}\n{content}"));
    if !content.is_empty() && !content.ends_with(['\n', '\r']) {
        out.push('\n');
    }
    out.push_str(&fence);
    out.push('\n');
}

/// Writes a resource as a link.
fn write_resource(resource: &Resource) -> String {
    match resource {
        Resource::Url(url) => link::write_url(url),
        other => link::write_path(&other.to_string()),
    }
}

/// Returns the field that lists resources; none where there are none.
fn resource_list(resources: &[Resource]) -> Option<Field> {
    let items = resources.iter().map(write_resource).collect();
    (!resources.is_empty()).then(|| Field {
        items,
        ..Field::new("Handoff Resources", "")
    })
}
