//! Where a plan runs: worktrees, overlays, sandbox and shell.

mod borrowed_objects;
mod container;
mod dependencies;
mod described;
mod every_run;
mod file_systems;
mod filling;
mod included;
mod kernels;
pub mod overlay;
mod overlay_random;
mod overlay_refused;
mod own_git;
pub mod partial;
mod partial_random;
mod registered;
mod same_view;
mod sandbox;

pub mod shell;
mod switching;
mod walkthroughs;
