//! No snapshot and no turn has a tree that `git fsck --strict` and every import refuse.

use std::os::unix::fs::symlink;

use serde_json::json;

use crate::plans::{create, execute, plan};
use crate::support::TestRepo;

#[test]
fn a_turn_records_no_tree_that_git_refuses() {
    for name in [".gitattributes", ".gitmodules"] {
        let repo = TestRepo::new()
            .file("a.txt", "1\n")
            .file(name, "# nothing\n");
        repo.commit("init");
        repo.done(&["new", "one"]);
        let script = format!("rm {name}; mkdir {name}; echo x > {name}/x; echo 2 > a.txt");
        let out = repo.teddy_reads(&["execute", "-", "-y"], plan("One", &[execute(&script)]));
        assert_eq!(out.code, 0, "{out}");
        let report = repo.done(&["show", "1", "report.md"]);
        let left = format!("`{name}`: a directory, and git requires a file of this name");
        assert!(report.contains(&left), "{report}");
        assert_eq!(
            repo.git(&["fsck", "--strict", "--no-dangling"]),
            "",
            "{name}"
        );

        // The user's own are left out, too.
        repo.remove(name);
        repo.write(&format!("{name}/mine"), "mine\n");
        repo.run_plan(&plan("Two", &[create("two.txt", "2\n")]));
        assert_eq!(repo.read(&format!("{name}/mine")), "mine\n");
        assert_eq!(
            repo.git(&["fsck", "--strict", "--no-dangling"]),
            "",
            "{name}"
        );
        let left = repo.json(&["status"], 0)["workspace"]["not_captured"].clone();
        assert_eq!(
            left,
            json!([{ "path": name, "reason": "a directory, and git requires a file of this name" }])
        );

        let refused = plan("Three", &[create(&format!("sub/{name}/x"), "x\n")]);
        repo.teddy_reads(&["execute", "-", "-y"], refused)
            .check(3, &["must be a file for git, so nothing can be in it"]);
    }

    let repo = TestRepo::new().file(".gitmodules", "");
    repo.commit("init");
    repo.done(&["new", "one"]);
    repo.remove(".gitmodules");
    symlink("elsewhere", repo.path().join(".gitmodules")).unwrap();
    repo.run_plan(&plan("One", &[create("one.txt", "1\n")]));
    assert_eq!(repo.git(&["fsck", "--strict", "--no-dangling"]), "");
}
