//! Drops the capabilities of root that bypass the sandbox, such as inspecting other processes,
//! mounting, creating devices, or loading kernel modules.

use rustix::thread::{CapabilitySet, remove_capability_from_bounding_set};

// Like the defaults of container engines: access to files of other owners, and a few harmless
// ones.
const RETAINED: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::DAC_READ_SEARCH)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::NET_BIND_SERVICE);

/// Affects programs that this thread executes.
pub(super) fn reduce() {
    for capability in CapabilitySet::all().difference(RETAINED).iter() {
        // Fails for an ordinary user, who has no capabilities, and for capabilities unknown to the
        // kernel.
        let _ = remove_capability_from_bounding_set(capability);
    }
}
