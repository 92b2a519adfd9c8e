//! Names that differ in case only, where git takes them for one (`core.ignoreCase`).

use crate::plans::{create, execute, plan};
use crate::support::TestRepo;
use crate::support::landing::{changed, check_clean, everything, hook, status};

/// A project in which git folds case, whatever the disk does.
fn project() -> TestRepo {
    let repo = TestRepo::new()
        .file("a.txt", "1\n2\n3\n4\n5\n6\n")
        .file("dir/d.txt", "d\n")
        .file("own.txt", "own\n");
    repo.commit("init");
    repo.git(&["config", "core.ignoreCase", "true"]);
    repo.workflow().new_session("demo").done();
    repo.write("own.txt", "own\nmine\n");
    repo.git(&["add", "own.txt"]);
    repo
}

#[test]
fn a_new_case_lands_as_git_mv_makes_it() {
    for is_separate in [false, true] {
        let by_hand = project();
        by_hand.git(&["mv", "a.txt", "b.txt"]);
        by_hand.git(&["mv", "b.txt", "A.txt"]);
        by_hand.git(&["mv", "dir", "other"]);
        by_hand.git(&["mv", "other", "Dir"]);
        by_hand.git(&["reset", "-q", "own.txt"]);
        by_hand.git(&["commit", "-q", "-m", "x"]);

        let repo = project();
        let script = "mv a.txt b.txt; mv b.txt A.txt; mv dir other; mv other Dir";
        repo.run_plan(&plan("Rename", &[execute(script)]));
        let mut own = vec!["M  own.txt"];
        if is_separate {
            repo.write("A.txt", "1\n2\n3\n4\n5\n6\nmine\n");
            own.insert(0, " M A.txt");
        }
        // A refused landing leaves both spellings as they were.
        hook(&repo, "pre-commit", "exit 1");
        let before = everything(&repo);
        repo.teddy(&["land", "-m", "Land"]).check(1, &[]);
        assert_eq!(everything(&repo), before);

        hook(&repo, "pre-commit", "exit 0");
        repo.done(&["land", "-m", "Land"]);
        let tree = |repo: &TestRepo| repo.git(&["rev-parse", "HEAD^{tree}"]);
        assert_eq!(tree(&repo), tree(&by_hand));
        assert_eq!(
            repo.git(&["ls-files"]),
            by_hand.git(&["ls-files"]),
            "{is_separate}"
        );
        assert_eq!(status(&repo), own.join("\n"));
        check_clean(&repo);
    }
}

#[test]
fn a_plan_that_adds_such_a_name_stops_with_the_reason() {
    let repo = project();
    let text = plan("Add", &[create("A.txt", "other\n")]);
    let out = repo.teddy_reads(&["execute", "-", "-y"], &text);
    // A disk that folds case, too, has the file: CREATE is refused before it runs.
    assert!(matches!(out.code, 3 | 4), "{out}");
    if out.code == 4 {
        let reason = "`A.txt` differs from the name of another file in case only";
        out.check(4, &[reason, "core.ignoreCase"]);
    }
    assert_eq!(repo.read("a.txt"), "1\n2\n3\n4\n5\n6\n");
}

#[test]
fn two_names_that_fold_together_land_as_they_are_on_the_disk() {
    let repo = project();
    let script = "echo other > A.txt; mkdir DIR; echo x > DIR/x.txt";
    repo.done(&["record", "two", "--", "sh", "-c", script]);
    if repo.read("a.txt") == "other\n" {
        // The disk folds them, too: there is one file, in its old spelling.
        repo.done(&["land", "-m", "Land"]);
        assert_eq!(changed(&repo), "M\ta.txt\nA\tdir/x.txt");
        return;
    }
    repo.done(&["land", "-m", "Land"]);
    assert_eq!(changed(&repo), "A\tA.txt\nA\tDIR/x.txt");
    assert_eq!(repo.git(&["show", "HEAD:A.txt"]), "other");
    assert_eq!(
        repo.git(&["ls-files"]),
        "A.txt\nDIR/x.txt\na.txt\ndir/d.txt\nown.txt"
    );
    assert_eq!(status(&repo), "M  own.txt");
    check_clean(&repo);
}
