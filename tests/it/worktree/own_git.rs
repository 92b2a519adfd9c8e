//! The git commands that TeDDy runs ignore the hooks, pagers and settings of a clone.

use teddy::git::command::git_in;

use crate::support::TestRepo;

#[test]
fn nothing_of_the_repository_is_run() {
    let repo = TestRepo::new().file("a", "1");
    repo.commit("one");
    let trap = repo.beside("trap");
    let script = format!("#!/bin/sh\ntouch {}\n", trap.display());
    for hook in [
        "post-checkout",
        "reference-transaction",
        "pre-commit",
        "post-index-change",
    ] {
        repo.write(&format!(".git/hooks/{hook}"), &script);
        let path = repo.path().join(".git/hooks").join(hook);
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .unwrap();
    }
    for key in [
        "core.fsmonitor",
        "core.pager",
        "core.sshCommand",
        "core.editor",
    ] {
        repo.git(&[
            "config",
            key,
            &repo
                .path()
                .join(".git/hooks/pre-commit")
                .display()
                .to_string(),
        ]);
    }
    let _ = std::fs::remove_file(&trap);
    let repository = repo.open();
    for args in [
        &["status"][..],
        &["log", "-p"],
        &["update-ref", "refs/teddy/x", "HEAD"],
        &["fetch", "ssh://localhost/x"],
    ] {
        let output = repository.git().unwrap().args(args).output().unwrap();
        let fetched = args[0] == "fetch";
        assert_eq!(
            output.status.success(),
            !fetched,
            "{args:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        assert!(
            !trap.exists(),
            "git {args:?} ran something of the repository"
        );
    }
}

#[test]
fn git_is_not_taken_from_the_folder_that_it_works_on() {
    let repo = TestRepo::new();
    let command = git_in(&repo.path()).unwrap();
    let program = std::path::Path::new(command.get_program());
    assert!(
        program.is_absolute() && !program.starts_with(repo.path()),
        "{}",
        program.display()
    );
}
