//! Restricts access to files with Landlock.
//!
//! Landlock has no deny rules. To hide a path, its siblings are allowed, then the siblings of its
//! parent, and so on up to the root.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, BitFlags, CompatLevel, Compatible as _, PathBeneath, PathFd,
    PathFdError, Ruleset, RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, RulesetStatus,
    Scope, make_bitflags,
};
use rustix::fs::FileType;
use rustix::io::Errno;

use super::{Isolation, Policy};
use crate::host::file::{reason, uninterrupted};

/// The newest Landlock ABI that we know.
const NEWEST: u8 = 9;

/// Returns the newest Landlock ABI that both the kernel and we support, or 0 without Landlock.
pub(super) fn interface() -> u8 {
    let is_supported = |interface: u8| {
        let abi = ABI::from(i32::from(interface));
        let hard = || Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
        let files = hard().handle_access(AccessFs::from_all(abi)).is_ok();
        let scopes = Scope::from_all(abi);
        files && (scopes.is_empty() || hard().scope(scopes).is_ok())
    };
    (1..=NEWEST)
        .take_while(|&version| is_supported(version))
        .last()
        .unwrap_or(0)
}

pub(super) fn scope() -> Result<(), String> {
    let to_text = |e: landlock::RulesetError| e.to_string();
    let root = PathFd::new("/").map_err(|error| error.to_string())?;
    // A ruleset denies renaming and linking across directories unless it handles and allows
    // `Refer`.
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::Refer)
        .and_then(|ruleset| ruleset.scope(Scope::Signal))
        .and_then(Ruleset::create)
        .and_then(|ruleset| ruleset.add_rule(PathBeneath::new(root, AccessFs::Refer)))
        .map_err(to_text)?;

    match ruleset.restrict_self().map_err(to_text)?.ruleset {
        RulesetStatus::FullyEnforced => Ok(()),
        _ => Err("the kernel does not keep signals inside".to_owned()),
    }
}

/// Devices of a run with terminals of its own: to make one, the ones made, and the controlling one.
const TERMINALS: [&str; 3] = ["/dev/ptmx", "/dev/pts", "/dev/tty"];

pub(super) fn enforce(policy: &Policy, interface: u8, isolation: Isolation) -> Result<(), String> {
    let abi = ABI::from(i32::from(interface));
    let to_text = |e: landlock::RulesetError| e.to_string();
    // The ABI was detected before, so the kernel must enforce all of it.
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(abi))
        .map_err(to_text)?;
    let scopes = Scope::from_all(abi);
    let ruleset = if scopes.is_empty() {
        ruleset
    } else {
        ruleset.scope(scopes).map_err(to_text)?
    };

    let hidden: HashSet<PathBuf> = denied(&policy.hidden)?.into_iter().collect();
    let mut rules = AccessRules {
        ruleset: Some(ruleset.create().map_err(to_text)?),
        above_hidden: above(&hidden),
        hidden,
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
        for path in existing(paths)? {
            rules.carve(&path, rights)?;
        }
    }
    if isolation.terminals {
        let rights = terminal_rights(abi);
        for path in existing(&TERMINALS.map(PathBuf::from))? {
            rules.allow(&path, rights)?;
        }
    }

    let ruleset = rules.ruleset.ok_or("the rules are lost")?;
    match ruleset.restrict_self().map_err(to_text)?.ruleset {
        RulesetStatus::FullyEnforced => Ok(()),
        _ => Err("the kernel does not enforce Landlock".to_owned()),
    }
}

/// Removes the temporary names of objects that git wrote.
pub(super) fn remove_temp_objects(dir: &Path) {
    use std::os::unix::fs::MetadataExt as _;

    // git links a finished object to its name and unlinks the temporary one. The policy denies the
    // unlink in `add` trees.
    let Ok(entries) = fs::read_dir(dir) else {
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

fn terminal_rights(abi: ABI) -> BitFlags<AccessFs> {
    let using = make_bitflags!(AccessFs::{ReadFile | WriteFile | ReadDir | Truncate | IoctlDev});
    using & AccessFs::from_all(abi)
}

fn adding(abi: ABI) -> BitFlags<AccessFs> {
    let filling = make_bitflags!(AccessFs::{MakeReg | MakeDir | WriteFile | Truncate});
    reading(abi) | (filling & AccessFs::from_all(abi))
}

/// Resolves paths to allow. Skips only those that do not exist: without one of the others, a command
/// would fail for a reason that is not its own.
pub(super) fn existing(paths: &[PathBuf]) -> Result<Vec<PathBuf>, String> {
    let resolved = paths.iter().map(|path| {
        let canonical = resolve(path).map_err(|error| cannot("open", path, &error))?;
        Ok(canonical)
    });
    resolved.filter_map(Result::transpose).collect()
}

/// Resolves paths to hide. If one exists but cannot be resolved, its nearest directory that can be
/// is hidden instead: a command could make the path accessible, because Landlock does not cover
/// `chmod`.
pub(super) fn denied(paths: &[PathBuf]) -> Result<Vec<PathBuf>, String> {
    let mut hidden = Vec::new();
    for path in paths {
        let mut at = path.as_path();
        loop {
            match (resolve(at), at.parent()) {
                (Ok(resolved), _) => hidden.extend(resolved),
                (Err(error), _) if leads_nowhere(&error) => {}
                (Err(_), Some(parent)) => {
                    at = parent;
                    continue;
                }
                (Err(error), None) => return Err(cannot("hide", path, &error)),
            }
            break;
        }
    }
    Ok(hidden)
}

/// `None` if the path does not exist.
fn resolve(path: &Path) -> io::Result<Option<PathBuf>> {
    match uninterrupted(|| fs::canonicalize(path)) {
        Err(error) if is_gone(&error) => Ok(None),
        found => found.map(Some),
    }
}

/// Returns all directories that contain one of the paths.
fn above(paths: &HashSet<PathBuf>) -> HashSet<PathBuf> {
    let dirs = paths.iter().flat_map(|path| path.ancestors().skip(1));
    dirs.map(Path::to_owned).collect()
}

fn is_gone(error: &io::Error) -> bool {
    // `ESRCH`: a process in `/proc` has ended.
    let errno = Errno::from_io_error(error);
    matches!(errno, Some(Errno::NOENT | Errno::NOTDIR | Errno::SRCH))
}

/// No program can open such a path, whatever its permissions.
fn leads_nowhere(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    matches!(errno, Some(Errno::LOOP | Errno::NAMETOOLONG))
}

fn cannot(verb: &str, path: &Path, error: &io::Error) -> String {
    format!(
        "the sandbox cannot {verb} `{}`: {}",
        path.display(),
        reason(error)
    )
}

fn is_closed(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied
}

fn open(path: &Path) -> io::Result<PathFd> {
    PathFd::new(path).map_err(|error| match error {
        PathFdError::OpenCall { source, .. } => source,
        _ => io::Error::other(error.to_string()),
    })
}

struct AccessRules {
    /// `Option` because adding a rule consumes the ruleset. Always set between calls.
    ruleset: Option<RulesetCreated>,
    /// Canonical paths.
    hidden: HashSet<PathBuf>,
    above_hidden: HashSet<PathBuf>,
    abi: ABI,
}

impl AccessRules {
    /// Allows `rights` in a tree, except in its hidden parts.
    fn carve(&mut self, path: &Path, rights: BitFlags<AccessFs>) -> Result<(), String> {
        if !self.above_hidden.contains(path) {
            return self.allow(path, rights);
        }

        let entries = match uninterrupted(|| fs::read_dir(path)) {
            Ok(entries) => entries,
            // Nothing in a directory that we cannot list is allowed.
            Err(error) if is_gone(&error) || is_closed(&error) => return Ok(()),
            Err(error) => return Err(cannot("list", path, &error)),
        };
        for entry in entries {
            let entry = entry.map_err(|error| cannot("list", path, &error))?;
            let kind = match entry.file_type() {
                Ok(kind) => kind,
                Err(error) if is_gone(&error) => continue,
                Err(error) => return Err(cannot("open", &entry.path(), &error)),
            };
            // Landlock follows a link to its target, which gets its own rule.
            if !kind.is_symlink() && !self.hidden.contains(&entry.path()) {
                self.carve(&entry.path(), rights)?;
            }
        }

        Ok(())
    }

    fn allow(&mut self, path: &Path, rights: BitFlags<AccessFs>) -> Result<(), String> {
        let opened = match uninterrupted(|| open(path)) {
            Ok(opened) => opened,
            // It was removed meanwhile, or is in a directory that commands cannot enter either.
            Err(error) if is_gone(&error) || is_closed(&error) => return Ok(()),
            Err(error) => return Err(cannot("open", path, &error)),
        };
        let stat = rustix::fs::fstat(&opened).map_err(|e| cannot("open", path, &e.into()))?;
        let rights = match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => rights,
            _ => rights & AccessFs::from_file(self.abi),
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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_a_path_that_does_not_exist_is_skipped() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        fs::write(top.join("file"), "").unwrap();
        symlink("loop", top.join("loop")).unwrap();
        let check = |name: &str, expected: Result<Option<&str>, &str>| {
            let actual = existing(&[top.join(name)]);
            let expected = expected
                .map(|name| name.map(|name| top.join(name)).into_iter().collect())
                .map_err(|why| {
                    format!(
                        "the sandbox cannot open `{}`: {why}",
                        top.join(name).display()
                    )
                });
            assert_eq!(actual, expected, "{name}");
        };
        check("file", Ok(Some("file")));
        check("missing", Ok(None));
        check("file/below", Ok(None));
        check("loop", Err("too many levels of symbolic links"));
        let long = "x".repeat(300);
        check(&long, Err("file name too long"));
    }

    #[test]
    fn a_hidden_path_that_cannot_be_resolved_hides_its_directory() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        fs::create_dir(top.join("dir")).unwrap();
        fs::write(top.join("dir/key"), "").unwrap();
        symlink("loop", top.join("dir/loop")).unwrap();
        let check = |name: &str, expected: &[&str]| {
            let expected: Vec<_> = expected.iter().map(|name| top.join(name)).collect();
            assert_eq!(denied(&[top.join(name)]), Ok(expected), "{name}");
        };
        check("dir/key", &["dir/key"]);
        check("dir/missing", &[]);
        // No program can follow the link.
        check("dir/loop", &[]);
        // Stands for every error that says nothing about the path, such as `EACCES` for a user who
        // is not root.
        check("dir/n\0ul", &["dir"]);
    }
    #[test]
    fn only_temporary_names_of_complete_objects_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for name in ["tmp_obj_complete", "tmp_obj_written", "other"] {
            fs::write(at(name), "").unwrap();
        }
        for [name, link] in [["tmp_obj_complete", "object"], ["other", "another"]] {
            fs::hard_link(at(name), at(link)).unwrap();
        }
        remove_temp_objects(dir.path());
        assert!(!at("tmp_obj_complete").exists());
        for name in ["tmp_obj_written", "object", "other", "another"] {
            assert!(at(name).exists(), "{name}");
        }
    }
}
