//! The nine actions: one file each for its value, its fields, how it is read and written.

pub mod chat_with_user;
pub mod conclude;
pub mod create;
pub mod edit;
pub mod execute;
pub mod invoke;
pub mod prune;
pub mod read;
pub mod research;

use super::Field;

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
    /// Returns the action's name as the format spells it.
    pub fn name(&self) -> &'static str {
        match self {
            Kind::Create(_) => "CREATE",
            Kind::Read(_) => "READ",
            Kind::Edit(_) => "EDIT",
            Kind::Execute(_) => "EXECUTE",
            Kind::Research(_) => "RESEARCH",
            Kind::ChatWithUser(_) => "CHAT_WITH_USER",
            Kind::Invoke(_) => "INVOKE",
            Kind::Conclude(_) => "CONCLUDE",
            Kind::Prune(_) => "PRUNE",
        }
    }

    /// Returns what it acts on, in one line: a path, a URL, an agent, the first line of a command,
    /// the first query, the first line of a message.
    pub fn target(&self) -> String {
        let first_line = |text: &str| text.lines().find(|l| !l.trim().is_empty()).unwrap_or_default().to_owned();
        match self {
            Kind::Create(create) => create.path.to_string(),
            Kind::Read(read) => read.resource.to_string(),
            Kind::Edit(edit) => edit.path.to_string(),
            Kind::Execute(execute) => first_line(&execute.command),
            Kind::Research(research) => research.queries.first().map(|q| first_line(q)).unwrap_or_default(),
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
        self.fields.iter().find(|f| f.key == "Description").map_or("", |f| f.value.as_str())
    }
}
