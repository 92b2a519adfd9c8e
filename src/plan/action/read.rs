//! READ: brings a resource into the context of the next turn.

use crate::text::resource::Resource;

/// A resource to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Read {
    /// What.
    pub resource: Resource,
}
