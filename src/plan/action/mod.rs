//! The actions, one file each: its value, how it is read and written, what is wrong with it, what
//! it does, how it is shown, changed and reported.
//!
//! The table below is all that lists them. Everything else goes by an action's [`ActionRow`] and
//! its [`Behavior`].

pub mod behavior;
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
pub mod shape;
pub mod take;

use std::fmt;
use std::ops::{Deref, DerefMut};

use super::Field;
use crate::text::fence::fence_for;
use crate::text::link;
use crate::text::resource::Resource;
use behavior::Behavior;
use body::Body;
use shape::{BodyShape, SummaryGroup};

/// The shortest fence that is written.
const MIN_FENCE: usize = 4;

/// What an action is, apart from its value.
pub struct ActionRow {
    /// The name as the format spells it.
    pub name: &'static str,
    /// Other names that the format allows.
    pub aliases: &'static [&'static str],
    /// Names that models use instead, and that mean nothing else.
    pub other_names: &'static [&'static str],
    /// The fields that mean something, as the format spells them; first the one that names what it
    /// acts on, if there is one.
    pub keys: &'static [&'static str],
    /// Keys that models use instead, in small letters and without blanks, by the format's key.
    pub other_keys: &'static [OtherKeys],
    /// What stands below the list.
    pub shape: BodyShape,
    /// Where the summary of a plan counts it.
    pub group: SummaryGroup,
    /// What it is counted as: one, and several.
    pub unit: (&'static str, &'static str),
    /// Whether two of them on the same target count as one.
    pub counts_targets: bool,
    /// Reads it; `None` and a diagnostic where it cannot be read.
    pub read: fn(&mut Body<'_>) -> Option<ActionKind>,
    /// Makes one at random, for the laws that hold for all actions.
    #[cfg(test)]
    pub sample: fn() -> proptest::strategy::BoxedStrategy<ActionKind>,
}

/// A key of the format with the keys that models use instead of it.
pub type OtherKeys = (&'static str, &'static [&'static str]);

impl ActionRow {
    /// Returns whether free text follows the heading and its list.
    pub fn is_message(&self) -> bool {
        self.shape == BodyShape::Message
    }

    /// Returns whether all of it is a message: it has no fields.
    pub fn is_message_alone(&self) -> bool {
        self.is_message() && self.keys.is_empty()
    }

    /// Returns whether TeDDy alone writes it: it takes bytes that no answer of a model has.
    pub fn is_ours(&self) -> bool {
        self.keys.contains(&"Artifact")
    }

    /// Returns whether it has the labels FIND and REPLACE.
    pub fn has_labels(&self) -> bool {
        self.shape == BodyShape::Pairs
    }

    /// Returns the key of the path or resource that it acts on.
    pub fn target_key(&self) -> Option<&'static str> {
        let first = self.keys.first().copied();
        first.filter(|key| matches!(*key, "File Path" | "Resource"))
    }

    /// Says what stands below its heading, as a hint does.
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

// A name stands for one row only; the tests of the table say so.
impl PartialEq for ActionRow {
    fn eq(&self, other: &ActionRow) -> bool {
        self.name == other.name
    }
}

impl Eq for ActionRow {}

/// Makes the table, and the value that is one of the actions, from one line for each.
macro_rules! actions {
    ($($(#[$doc:meta])* $file:ident::$value:ident,)*) => {
        /// The actions, in the order in which messages list them.
        pub static ROWS: &[&ActionRow] = &[$(&$file::ROW),*];

        /// What an action does.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum ActionKind {
            $($(#[$doc])* $value($file::$value),)*
        }

        // An action is used through what all of them can do: no other file matches on the variant.
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
    /// Makes a file.
    create::Create,
    /// Brings a resource into the context.
    read::Read,
    /// Changes a file.
    edit::Edit,
    /// Runs a command.
    execute::Execute,
    /// Searches the web.
    research::Research,
    /// Talks to the user.
    chat_with_user::ChatWithUser,
    /// Hands over to another agent.
    invoke::Invoke,
    /// Returns to the agent that handed over.
    conclude::Conclude,
    /// Takes a resource out of the context.
    prune::Prune,
    /// Takes over what an agent made of a path.
    take::TakePath,
}

/// One `### ACTION` of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Action {
    /// The line of the heading, from 1.
    pub line: usize,
    /// The whole list below the heading, in order, as the report repeats it.
    pub fields: Vec<Field>,
    /// What it does.
    pub kind: ActionKind,
}

impl ActionKind {
    /// Returns the same without the lines in which it stands.
    #[must_use]
    pub fn without_lines(&self) -> ActionKind {
        let mut kind = self.clone();
        let pairs = kind.pairs_mut().into_iter().flatten();
        pairs.for_each(|pair| pair.line = 0);
        kind
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
