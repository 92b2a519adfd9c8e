//! Directories and files of TeDDy's own: no other user reads or locks them.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::ground::{Ground, plan, run};

/// Bits of other users.
const OTHERS: u32 = 0o077;

fn mode(path: &Path) -> u32 {
    path.symlink_metadata().unwrap().permissions().mode() & 0o777
}

/// Collects the directories in a directory that other users can enter.
fn open_below(dir: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let kind = path.symlink_metadata().unwrap().file_type();
        if mode(&path) & OTHERS == 0 || !kind.is_dir() {
            continue;
        }
        found.push(format!("{:o} {}", mode(&path), path.display()));
    }
}

#[test]
fn what_is_ours_is_closed_to_other_users() {
    for backend in ["overlay", "checkout"] {
        let ground = Ground::new();
        let command = "stat -c 'tmp %a' \"$TMPDIR\"; stat -c 'script %a' \"$TMPDIR/../execute.sh\"; stat -c 'folder %a' \"$TMPDIR/..\"";
        let setting = format!("worktree.backend={backend}");
        let tried = ground.execute_with(plan(&run(command)), &["-c", &setting]);
        assert_eq!(tried.code, 0, "{}", tried.words);
        let report = ground.ok(&["show"]);
        for expected in ["tmp 700", "script 600", "folder 700"] {
            assert!(report.contains(expected), "{expected}: {report}");
        }

        let mut found = Vec::new();
        for dir in [
            ground.repo.path().join(".git"),
            ground.repo.beside("home/.cache"),
        ] {
            for name in ["teddy", "teddy/worktrees"] {
                let path = dir.join(name);
                if path.exists() && mode(&path) & OTHERS != 0 {
                    found.push(format!("{:o} {}", mode(&path), path.display()));
                }
            }
        }
        let locks = ground.repo.path().join(".git/teddy");
        for name in ["lock", "locks", "locks/s", "locks/s/lock", "tips", "tips/s"] {
            let path = locks.join(name);
            if path.exists() && mode(&path) & OTHERS != 0 {
                found.push(format!("{:o} {}", mode(&path), path.display()));
            }
        }
        // The copy of a project whose files are private.
        let worktrees = ground.repo.beside("home/.cache/teddy/worktrees");
        if worktrees.exists() {
            for entry in std::fs::read_dir(&worktrees).unwrap() {
                let entry = entry.unwrap().path();
                if entry.is_dir() {
                    open_below(&entry, &mut found);
                }
            }
        }
        assert_eq!(found, Vec::<String>::new(), "{backend}");
    }
}

/// Regression: go's module cache has such directories, and the script's directory stayed for each.
#[test]
fn closed_directories_in_the_temporary_one_are_removed() {
    let ground = Ground::new();
    let temporary = ground.repo.beside("temporary");
    std::fs::create_dir(&temporary).unwrap();
    let command =
        "cd \"$TMPDIR\"; mkdir ro no; touch ro/x no/x; chmod 555 ro; chmod 000 no; chmod 500 .";
    let file = ground.repo.beside("plan.md");
    std::fs::write(&file, plan(&run(command))).unwrap();
    let args = ["execute", file.to_str().unwrap(), "-y"];
    let output = ground.teddy_with(&args, &[("TMPDIR", temporary.to_str().unwrap())]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0);
}
