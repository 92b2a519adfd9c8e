//! The actions, one file each: value, parser, renderer, validation, execution, preview, editing and
//! report.
//!
//! Only the table below lists them. All other code uses an action's [`ActionRow`] and its
//! [`Behavior`].

pub mod behavior;
pub mod body;
pub mod border;
pub mod chat_with_user;
pub mod conclude;
pub mod create;
pub mod edit;
pub mod execute;
pub mod foreign;
pub mod invoke;
pub mod prune;
pub mod read;
pub mod research;
pub mod take;

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use behavior::{Behavior, Editable, UserEdit};
use body::Body;

use crate::plan::field::Field;
use crate::text::fence::fence_for;
use crate::text::link;
use crate::text::path::RepoPath;
use crate::text::resource::Resource;

/// Shortest fence that the renderer writes.
const MIN_FENCE: usize = 4;

/// Description of an action in the table.
pub struct ActionRow {
    /// The name as the format spells it.
    pub name: &'static str,
    /// Other names that the format allows.
    pub aliases: &'static [&'static str],
    /// Other names that models use, and that have no other meaning.
    pub other_names: &'static [&'static str],
    /// Its fields as the format spells them, starting with the one that names the target, if any.
    pub keys: &'static [&'static str],
    /// Other keys that models use, in lower case without spaces, per key of the format.
    pub other_keys: &'static [OtherKeys],
    /// What follows the field list.
    pub shape: BodyShape,
    pub group: SummaryGroup,
    /// Unit in the summary: singular and plural.
    pub unit: (&'static str, &'static str),
    /// Whether several of them with the same target count once.
    pub counts_targets: bool,
    /// Parses the action; `None`, with a diagnostic, if it is malformed.
    pub read: fn(&mut Body<'_>) -> Option<ActionKind>,
}

/// A key of the format, and the keys that models use instead.
pub type OtherKeys = (&'static str, &'static str);

impl ActionRow {
    /// Returns whether free text follows the field list.
    pub fn is_message(&self) -> bool {
        self.shape == BodyShape::Message
    }

    /// Returns whether the action consists of a message without fields.
    pub fn is_message_alone(&self) -> bool {
        self.is_message() && self.keys.is_empty()
    }

    /// Returns whether only TeDDy writes it: it refers to bytes that no model's reply contains.
    pub fn is_ours(&self) -> bool {
        self.keys.contains(&"Artifact")
    }

    /// Returns whether it has FIND and REPLACE labels.
    pub fn has_labels(&self) -> bool {
        self.shape == BodyShape::Pairs
    }

    /// Returns the key of its target path or resource.
    pub fn target_key(&self) -> Option<&'static str> {
        let first = self.keys.first().copied();
        first.filter(|key| matches!(*key, "File Path" | "Resource"))
    }

    /// Describes the expected layout, for a hint.
    pub fn layout(&self) -> &'static str {
        match self.shape {
            BodyShape::ListAlone => "a list alone",
            BodyShape::File | BodyShape::Script => "a list and one code block",
            BodyShape::Pairs => {
                "a list and pairs of FIND and REPLACE, each label with one code block"
            }
            BodyShape::Queries => "a list and one code block for each query",
            BodyShape::Message if self.keys.is_empty() => "a message alone",
            BodyShape::Message => "a list and a message",
        }
    }
}

impl fmt::Debug for ActionRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

// A name identifies a row; a test checks that names are unique.
impl PartialEq for ActionRow {
    fn eq(&self, other: &ActionRow) -> bool {
        self.name == other.name
    }
}

impl Eq for ActionRow {}

/// Generates the table and the enum of actions from one line per action.
macro_rules! actions {
    ($($(#[$doc:meta])* $file:ident::$value:ident,)*) => {
        /// The actions, in the order in which messages list them.
        pub static ROWS: &[&ActionRow] = &[$(&$file::ROW),*];

        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum ActionKind {
            $($(#[$doc])* $value($file::$value),)*
        }

        impl ActionKind {
            /// Returns the action's entry in the table.
            pub fn row(&self) -> &'static ActionRow {
                match self {
                    $(ActionKind::$value(_) => &$file::ROW,)*
                }
            }
        }

        // An action is used through `Behavior` only: no other file matches on the variant.
        impl Deref for ActionKind {
            type Target = dyn Behavior;

            fn deref(&self) -> &Self::Target {
                match self {
                    $(ActionKind::$value(value) => value,)*
                }
            }
        }

        impl DerefMut for ActionKind {
            fn deref_mut(&mut self) -> &mut Self::Target {
                match self {
                    $(ActionKind::$value(value) => value,)*
                }
            }
        }

        $(impl From<$file::$value> for ActionKind {
            fn from(value: $file::$value) -> ActionKind {
                ActionKind::$value(value)
            }
        })*
    };
}

actions! {
    /// Creates a file.
    create::Create,
    /// Adds a resource to the context.
    read::Read,
    /// Changes a file.
    edit::Edit,
    /// Runs a command.
    execute::Execute,
    /// Searches the web.
    research::Research,
    /// Sends a message to the user.
    chat_with_user::ChatWithUser,
    /// Hands over to another agent.
    invoke::Invoke,
    /// Returns to the calling agent.
    conclude::Conclude,
    /// Removes a resource from the context.
    prune::Prune,
    /// Takes an agent's version of a path.
    take::TakePath,
}

/// One `### ACTION` of a plan.
#[derive(Debug, Clone)]
pub struct Action {
    /// Line of the heading, from 1. Without effect on equality.
    pub line: usize,
    /// The full list below the heading, in order; the report repeats it.
    pub fields: Vec<Field>,
    pub kind: ActionKind,
}

impl PartialEq for Action {
    fn eq(&self, other: &Action) -> bool {
        (&self.fields, &self.kind) == (&other.fields, &other.kind)
    }
}

impl Eq for Action {}

/// A command to run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Execute {
    /// The script, as passed to a shell or to the program of its `#!` line.
    pub command: String,
    /// Info string of the block.
    pub language: String,
    /// Working directory; the project root if `None`.
    pub cwd: Option<RepoPath>,
    /// Variables for this command only.
    pub env: Vec<(String, String)>,
    pub expected_outcome: String,
    /// `- **Allow Failure:** true`: a nonzero exit code does not stop the plan.
    pub allow_failure: bool,
    /// `- **Timeout:** 30`: the command's own time limit.
    pub timeout: Option<Duration>,
    /// `- **Network:** true`: the user has granted this command the network in the review. A mistake
    /// in a plan that was not reviewed.
    pub network: bool,
}

impl Execute {
    /// Describes everything that differs from a command in the root without a time limit.
    pub fn settings(&self) -> Vec<String> {
        let dir = self.cwd.as_ref().map(|cwd| format!("in {cwd}"));
        let env = self
            .env
            .iter()
            .map(|(name, value)| format!("{name}={value}"));
        let limit = self
            .timeout
            .map(|limit| format!("at most {} s", limit.as_secs()));
        let failure = self.allow_failure.then(|| "may fail".to_owned());
        let network = self.network.then(|| "with the network".to_owned());
        let settings = dir.into_iter().chain(env).chain(limit);

        settings.chain(failure).chain(network).collect()
    }
}

impl ActionKind {
    /// Returns its name as the format spells it.
    pub fn name(&self) -> &'static str {
        self.row().name
    }

    /// Returns the action with the user's edit applied; `None` for an edit of another kind.
    pub fn edited(&self, edit: UserEdit<'_>) -> Option<ActionKind> {
        let UserEdit::Text(text) = edit else {
            return self.with_version(edit);
        };
        let mut edited = self.clone();
        edited.set_text(text);
        matches!(self.editable(), Editable::Text(_)).then_some(edited)
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

/// Writes a code block with a fence longer than any run of backticks inside.
pub fn write_block(text: &str, language: &str, out: &mut String) {
    let fence = fence_for(text, MIN_FENCE);
    let language: String = language
        .chars()
        .filter(|&c| c != '`' && !c.is_whitespace() && !c.is_control())
        .collect();
    out.push_str(&format!("{fence}{language}\n{text}"));
    if !text.is_empty() && !text.ends_with(['\n', '\r']) {
        out.push('\n');
    }

    out.push_str(&fence);
    out.push('\n');
}

fn write_resource(resource: &Resource) -> String {
    match resource {
        Resource::Url(url) => link::write_url(url),
        other => link::write_path(&other.to_string()),
    }
}

fn path_fields(path: &RepoPath) -> Vec<Field> {
    vec![
        Field::new("File Path", link::write_path(path.as_str())),
        Field::new("Description", ""),
    ]
}

fn resource_fields(resource: &Resource) -> Vec<Field> {
    vec![
        Field::new("Resource", write_resource(resource)),
        Field::new("Description", ""),
    ]
}

/// Returns the `Handoff Resources` field; `None` without resources.
fn resource_list(resources: &[Resource]) -> Option<Field> {
    let items = resources.iter().map(write_resource).collect();
    (!resources.is_empty()).then(|| Field {
        items,
        ..Field::new("Handoff Resources", "")
    })
}

// What follows an action's field list, and how the summary counts the action.
//
// Parser, repair and respelling depend on the shape and never on an action's name.

/// What follows the heading and field list of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyShape {
    /// Nothing.
    ListAlone,
    /// One block with the content of a file.
    File,
    /// FIND and REPLACE in turn, each with a block of a file's text.
    Pairs,
    /// One block with a shell script.
    Script,
    /// One block per query.
    Queries,
    /// Free text up to the next action.
    Message,
}

/// Group of an action in the summary, in display order: file changes and commands come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SummaryGroup {
    Files,
    /// Runs commands; the summary always shows them in full.
    Commands,
    /// Changes the context of the next turn.
    Context,
    Web,
    /// Sends a message to the user or an agent.
    Messages,
}

impl BodyShape {
    /// Returns whether its blocks contain text of a file.
    pub fn is_text_of_file(self) -> bool {
        matches!(self, BodyShape::File | BodyShape::Pairs)
    }

    /// Returns whether it reaches beyond the files, where no undo can follow: it runs commands or
    /// sends queries.
    pub fn reaches_outside(self) -> bool {
        matches!(self, BodyShape::Script | BodyShape::Queries)
    }

    /// Returns whether what its blocks say is written or run as it stands.
    pub fn takes_effect(self) -> bool {
        self.is_text_of_file() || self == BodyShape::Script
    }
}
