//! A `- **Key:** value` item of a plan.

/// A `- **Key:** value` item.
#[derive(Debug, Clone, Default)]
pub struct Field {
    /// Line in the plan, from 1. Without effect on equality.
    pub line: usize,
    /// The key as the format spells it (`File Path`), or as written if unknown.
    pub key: String,
    /// Text after the colon, as in the plan.
    pub value: String,
    /// Items of a nested list, as in the plan.
    pub items: Vec<String>,
}

impl PartialEq for Field {
    fn eq(&self, other: &Field) -> bool {
        (&self.key, &self.value, &self.items) == (&other.key, &other.value, &other.items)
    }
}

impl Eq for Field {}

impl Field {
    /// Creates a field that is not in a plan yet.
    pub fn new(key: &str, value: impl Into<String>) -> Field {
        Field {
            key: key.to_owned(),
            value: value.into(),
            ..Field::default()
        }
    }
}
