//! Files under Landlock. Landlock only allows: what is hidden is carved out by allowing its
//! siblings, and theirs, up to the root.

use std::fs;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, BitFlags, CompatLevel, Compatible as _, PathBeneath, PathFd,
    Ruleset, RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, RulesetStatus, Scope,
    make_bitflags,
};

use super::Policy;

/// The newest interface whose rights we know; an older kernel enforces those that it knows.
const INTERFACE: ABI = ABI::V9;

/// Returns whether the kernel has Landlock.
pub(super) fn check() -> Result<(), String> {
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    let created = ruleset
        .handle_access(AccessFs::from_all(ABI::V1))
        .and_then(Ruleset::create);
    created
        .map(drop)
        .map_err(|_| "kernel without Landlock".to_owned())
}

/// Restricts this thread.
pub(super) fn enforce(policy: &Policy) -> Result<(), String> {
    let words = |e: landlock::RulesetError| e.to_string();
    let ruleset = Ruleset::default()
        .handle_access(AccessFs::from_all(INTERFACE))
        .map_err(words)?;
    let ruleset = ruleset.scope(Scope::from_all(INTERFACE)).map_err(words)?;
    let mut rules = Rules {
        ruleset: Some(ruleset.create().map_err(words)?),
        hidden: canonical(&policy.hidden),
    };
    // Names may be listed everywhere; Landlock cannot allow that for one folder alone.
    rules.allow(Path::new("/"), AccessFs::ReadDir.into())?;
    rules.carve(Path::new("/"), reading())?;
    // Best effort: what cannot be made is left out like everything that does not exist.
    policy
        .add
        .iter()
        .for_each(|path| drop(fs::create_dir_all(path)));
    for (paths, rights) in [
        (&policy.read, reading()),
        (&policy.write, writing()),
        (&policy.add, adding()),
    ] {
        for path in canonical(paths) {
            rules.carve(&path, rights)?;
        }
    }
    let ruleset = rules.ruleset.ok_or("the rules are lost")?;
    match ruleset.restrict_self().map_err(words)?.ruleset {
        RulesetStatus::NotEnforced => Err("the kernel does not enforce Landlock".to_owned()),
        _ => Ok(()),
    }
}

/// Removes the second names that git gives to new objects and could not take away in a tree where
/// nothing is removed.
pub(super) fn sweep(folder: &Path) {
    use std::os::unix::fs::MetadataExt as _;

    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let temporary = entry
            .file_name()
            .as_encoded_bytes()
            .starts_with(b"tmp_obj_");
        // With a second name the object is complete; with one, some git may be writing it.
        if temporary && entry.metadata().is_ok_and(|file| file.nlink() > 1) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Reading and executing.
fn reading() -> BitFlags<AccessFs> {
    AccessFs::from_read(INTERFACE)
}

/// Everything but making devices: whoever may make a disk may write it.
fn writing() -> BitFlags<AccessFs> {
    AccessFs::from_all(INTERFACE) & !make_bitflags!(AccessFs::{MakeChar | MakeBlock | IoctlDev})
}

/// Reading, creating and filling files.
fn adding() -> BitFlags<AccessFs> {
    reading() | make_bitflags!(AccessFs::{MakeReg | MakeDir | WriteFile | Truncate})
}

/// Returns the paths that exist, without links.
fn canonical(paths: &[PathBuf]) -> Vec<PathBuf> {
    paths
        .iter()
        .filter_map(|path| fs::canonicalize(path).ok())
        .collect()
}

/// The rules while they are collected.
struct Rules {
    /// The rules; taken and put back with each one.
    ruleset: Option<RulesetCreated>,
    /// What is left out, without links.
    hidden: Vec<PathBuf>,
}

impl Rules {
    /// Allows something in a tree, except in what is hidden below it.
    fn carve(&mut self, path: &Path, rights: BitFlags<AccessFs>) -> Result<(), String> {
        if !self
            .hidden
            .iter()
            .any(|hidden| hidden.starts_with(path) && hidden != path)
        {
            return self.allow(path, rights);
        }
        // A folder that cannot be listed has nothing in it that the script could reach.
        let Ok(entries) = fs::read_dir(path) else {
            return Ok(());
        };
        for entry in entries.flatten() {
            // A link counts as what it leads to, and that is judged at its own place.
            let link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
            if !link && !self.hidden.contains(&entry.path()) {
                self.carve(&entry.path(), rights)?;
            }
        }
        Ok(())
    }

    /// Allows something in a tree or for a file.
    fn allow(&mut self, path: &Path, rights: BitFlags<AccessFs>) -> Result<(), String> {
        let Ok(opened) = PathFd::new(path) else {
            return Ok(());
        };
        let rights = if path.is_dir() {
            rights
        } else {
            rights & AccessFs::from_file(INTERFACE)
        };
        if rights.is_empty() {
            return Ok(());
        }
        let ruleset = self.ruleset.take().ok_or("the rules are lost")?;
        let added = ruleset
            .add_rule(PathBeneath::new(opened, rights))
            .map_err(|e| format!("{}: {e}", path.display()))?;
        self.ruleset = Some(added);
        Ok(())
    }
}
