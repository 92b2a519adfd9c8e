//! Restricts access to files with Landlock.
//!
//! Landlock has no deny rules. To hide a path, its siblings are allowed, then the siblings of its
//! parent, and so on up to the root.

use std::fs;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, BitFlags, CompatLevel, Compatible as _, PathBeneath, PathFd,
    Ruleset, RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, RulesetStatus, Scope,
    make_bitflags,
};

use super::Policy;

/// The newest Landlock ABI that we know.
const NEWEST: u8 = 9;

/// Returns the newest Landlock ABI that both the kernel and we support, or 0 without Landlock.
pub(super) fn interface() -> u8 {
    let known = |interface: u8| {
        let abi = ABI::from(i32::from(interface));
        let hard = || Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
        let files = hard().handle_access(AccessFs::from_all(abi)).is_ok();
        let scopes = Scope::from_all(abi);
        files && (scopes.is_empty() || hard().scope(scopes).is_ok())
    };
    (1..=NEWEST)
        .take_while(|&version| known(version))
        .last()
        .unwrap_or(0)
}

pub(super) fn scope() -> Result<(), String> {
    let words = |e: landlock::RulesetError| e.to_string();
    let root = PathFd::new("/").map_err(|error| error.to_string())?;
    // A ruleset denies renaming and linking across directories unless it handles and allows
    // `Refer`.
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::Refer)
        .and_then(|ruleset| ruleset.scope(Scope::Signal))
        .and_then(Ruleset::create)
        .and_then(|ruleset| ruleset.add_rule(PathBeneath::new(root, AccessFs::Refer)))
        .map_err(words)?;

    match ruleset.restrict_self().map_err(words)?.ruleset {
        RulesetStatus::FullyEnforced => Ok(()),
        _ => Err("the kernel does not keep signals inside".to_owned()),
    }
}

pub(super) fn enforce(policy: &Policy, interface: u8) -> Result<(), String> {
    let abi = ABI::from(i32::from(interface));
    let words = |e: landlock::RulesetError| e.to_string();
    // The ABI was detected before, so the kernel must enforce all of it.
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(abi))
        .map_err(words)?;
    let scopes = Scope::from_all(abi);
    let ruleset = if scopes.is_empty() {
        ruleset
    } else {
        ruleset.scope(scopes).map_err(words)?
    };

    let mut rules = AccessRules {
        ruleset: Some(ruleset.create().map_err(words)?),
        hidden: canonical(&policy.hidden),
        abi,
    };
    // Allow listing everywhere: Landlock cannot allow it for a directory without its
    // subdirectories.
    rules.allow(Path::new("/"), AccessFs::ReadDir.into())?;
    rules.carve(Path::new("/"), reading(abi))?;

    // If creation fails, the path is skipped like all that do not exist.
    policy
        .add
        .iter()
        .for_each(|path| drop(fs::create_dir_all(path)));
    for (paths, rights) in [
        (&policy.read, reading(abi)),
        (&policy.write, writing(abi)),
        (&policy.add, adding(abi)),
    ] {
        for path in canonical(paths) {
            rules.carve(&path, rights)?;
        }
    }

    let ruleset = rules.ruleset.ok_or("the rules are lost")?;
    match ruleset.restrict_self().map_err(words)?.ruleset {
        RulesetStatus::FullyEnforced => Ok(()),
        _ => Err("the kernel does not enforce Landlock".to_owned()),
    }
}

/// Removes the temporary names of objects that git wrote.
pub(super) fn sweep(folder: &Path) {
    use std::os::unix::fs::MetadataExt as _;

    // git links a finished object to its name and unlinks the temporary one. The policy denies the
    // unlink in `add` trees.
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let temporary = entry
            .file_name()
            .as_encoded_bytes()
            .starts_with(b"tmp_obj_");
        // With two names the object is complete. With one, git might still be writing it.
        if temporary && entry.metadata().is_ok_and(|file| file.nlink() > 1) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn reading(abi: ABI) -> BitFlags<AccessFs> {
    AccessFs::from_read(abi)
}

fn writing(abi: ABI) -> BitFlags<AccessFs> {
    // A process that can create a disk device can write to the disk.
    AccessFs::from_all(abi) & !make_bitflags!(AccessFs::{MakeChar | MakeBlock | IoctlDev})
}

fn adding(abi: ABI) -> BitFlags<AccessFs> {
    let filling = make_bitflags!(AccessFs::{MakeReg | MakeDir | WriteFile | Truncate});
    reading(abi) | (filling & AccessFs::from_all(abi))
}

/// Skips paths that do not exist.
fn canonical(paths: &[PathBuf]) -> Vec<PathBuf> {
    paths
        .iter()
        .filter_map(|path| fs::canonicalize(path).ok())
        .collect()
}

struct AccessRules {
    /// `Option` because adding a rule consumes the ruleset. Always set between calls.
    ruleset: Option<RulesetCreated>,
    /// Canonical paths.
    hidden: Vec<PathBuf>,
    abi: ABI,
}

impl AccessRules {
    /// Allows `rights` in a tree, except in its hidden parts.
    fn carve(&mut self, path: &Path, rights: BitFlags<AccessFs>) -> Result<(), String> {
        if !self
            .hidden
            .iter()
            .any(|hidden| hidden.starts_with(path) && hidden != path)
        {
            return self.allow(path, rights);
        }

        // Nothing in a directory that we cannot list is allowed.
        let Ok(entries) = fs::read_dir(path) else {
            return Ok(());
        };
        for entry in entries.flatten() {
            // Landlock follows a link to its target, which gets its own rule.
            let link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
            if !link && !self.hidden.contains(&entry.path()) {
                self.carve(&entry.path(), rights)?;
            }
        }

        Ok(())
    }

    fn allow(&mut self, path: &Path, rights: BitFlags<AccessFs>) -> Result<(), String> {
        let Ok(opened) = PathFd::new(path) else {
            return Ok(());
        };
        let rights = if path.is_dir() {
            rights
        } else {
            rights & AccessFs::from_file(self.abi)
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
