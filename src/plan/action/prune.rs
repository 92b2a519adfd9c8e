//! PRUNE: takes a resource out of the context of the next turn.

use crate::text::resource::Resource;

/// A resource to drop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prune {
    /// What.
    pub resource: Resource,
}
