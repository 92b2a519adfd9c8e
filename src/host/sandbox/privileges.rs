//! A superuser's rights that go past the sandbox: to look into other processes, to mount, to
//! make devices, to load kernel code. A script of the superuser keeps only rights about files.

use rustix::thread::{CapabilitySet, remove_capability_from_bounding_set};

/// What stays: the owner's rights over files of other owners, as in a container.
const KEPT: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::DAC_READ_SEARCH)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::NET_BIND_SERVICE);

/// Takes the rights from what this thread executes.
pub(super) fn reduce() {
    for capability in CapabilitySet::all().difference(KEPT).iter() {
        // Refused to an ordinary user, who has none of them, and for those that a kernel does not
        // know.
        let _ = remove_capability_from_bounding_set(capability);
    }
}
