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

/// The newest interface whose rights we know.
const NEWEST: u8 = 9;

/// Returns the newest interface that the kernel and we know; 0 if it has no Landlock.
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

/// Makes signals of this thread, and of all that it starts, stay among them.
pub(super) fn scope() -> Result<(), String> {
    let words = |e: landlock::RulesetError| e.to_string();
    let root = PathFd::new("/").map_err(|error| error.to_string())?;
    // Every ruleset denies renaming and linking across folders, unless it handles and allows that.
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

/// Restricts this thread as an interface can.
pub(super) fn enforce(policy: &Policy, interface: u8) -> Result<(), String> {
    let abi = ABI::from(i32::from(interface));
    let words = |e: landlock::RulesetError| e.to_string();
    // What a kernel has must be enforced; that it has it was looked up before.
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
    // Names may be listed everywhere; Landlock cannot allow that for one folder alone.
    rules.allow(Path::new("/"), AccessFs::ReadDir.into())?;
    rules.carve(Path::new("/"), reading(abi))?;

    // Best effort: what cannot be made is left out like everything that does not exist.
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
fn reading(abi: ABI) -> BitFlags<AccessFs> {
    AccessFs::from_read(abi)
}

/// Everything but making devices: whoever may make a disk may write it.
fn writing(abi: ABI) -> BitFlags<AccessFs> {
    AccessFs::from_all(abi) & !make_bitflags!(AccessFs::{MakeChar | MakeBlock | IoctlDev})
}

/// Reading, creating and filling files.
fn adding(abi: ABI) -> BitFlags<AccessFs> {
    let filling = make_bitflags!(AccessFs::{MakeReg | MakeDir | WriteFile | Truncate});
    reading(abi) | (filling & AccessFs::from_all(abi))
}

/// Returns the paths that exist, without links.
fn canonical(paths: &[PathBuf]) -> Vec<PathBuf> {
    paths
        .iter()
        .filter_map(|path| fs::canonicalize(path).ok())
        .collect()
}

/// The rules while they are collected.
struct AccessRules {
    /// The rules; taken and put back with each one.
    ruleset: Option<RulesetCreated>,
    /// What is left out, without links.
    hidden: Vec<PathBuf>,
    /// The interface whose rights they have.
    abi: ABI,
}

impl AccessRules {
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
