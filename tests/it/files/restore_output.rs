//! What `restore`, `undo` and `redo` print.

use super::restore::three_turns;
use crate::plans::{edit, plan};
use crate::support::TestRepo;

#[test]
fn a_file_with_own_edits_is_reported_as_merged() {
    let repo = three_turns();
    repo.write("a.txt", "1\ntwo\n3\n4\nfive\n");
    repo.write("mine.txt", "mine\n");
    let printed = repo.teddy(&["restore", "0"]).to_string();
    insta::assert_snapshot!(printed, @r"
    exit code 0
    --- stdout
    merge a.txt
    write c.txt
    delete dir/b.txt
    keep mine.txt

    --- stderr
    Your files match turn 0: 3 files changed, 2 of your own kept.
    ");
}

#[test]
fn the_output_is_about_the_named_paths() {
    let repo = three_turns();
    let printed = [
        &["restore", "1", "-n"][..],
        &["restore", "0", "dir/b.txt"],
        &["restore", "3", "dir/b.txt", "a.txt"],
    ]
    .map(|args| repo.teddy(args).to_string());
    insta::assert_snapshot!(printed.join("\n"), @r"
    exit code 0
    --- stdout
    write c.txt
    delete dir/b.txt

    --- stderr
    Your files would match turn 1: 2 files changed.

    exit code 0
    --- stdout
    delete dir/b.txt

    --- stderr
    dir/b.txt matches turn 0: 1 file changed.

    exit code 0
    --- stdout
    write dir/b.txt

    --- stderr
    dir/b.txt, a.txt match turn 3: 1 file changed.
    ");
}

#[test]
fn a_turn_of_another_session_is_named_as_it_was_typed() {
    let repo = three_turns();
    repo.workflow().new_session("other").done();
    repo.write("own.txt", "mine\n");
    let printed = ["--exact", "-n"].map(|flag| repo.teddy(&["restore", "demo:1", flag]));
    insta::assert_snapshot!(printed.map(|out| out.to_string()).join("\n"), @r#"
    exit code 1
    --- stdout

    --- stderr
    error: stdin is not a terminal, so TeDDy cannot ask "Make 3 files equal to turn demo:1?"
    hint: `-y` says yes

    exit code 0
    --- stdout
    write c.txt
    delete dir/b.txt
    keep own.txt

    --- stderr
    warning: this would also remove turns 2 and 3 of demo from your files
    Your files would match turn demo:1: 2 files changed.
    "#);
}

#[test]
fn what_was_kept_is_counted_where_there_is_something() {
    let repo = three_turns();
    let undone = repo.teddy(&["undo"]);
    repo.write("own.txt", "mine\n");
    let redone = repo.teddy(&["redo"]);
    insta::assert_snapshot!(format!("{undone}\n{redone}"), @r"
    exit code 0
    --- stdout
    write c.txt

    --- stderr
    Your files match turn 2: 1 file changed.

    exit code 0
    --- stdout
    delete c.txt
    keep own.txt

    --- stderr
    Your files match turn 3: 1 file changed, 1 of your own kept.
    ");
}

/// Bug: the files beyond the link counted as ignored, and the undo as blocked by one of them.
#[test]
fn a_directory_that_became_a_link_has_no_files() {
    let repo = TestRepo::new().file("d/f.txt", "1\n");
    repo.commit("init");
    repo.done(&["new", "demo"]);
    repo.workflow().add(&["d/f.txt"]);
    repo.run_plan(&plan("Edit f", &[edit("d/f.txt", "1", "2")]));
    std::fs::rename(repo.path().join("d"), repo.path().join("dd")).unwrap();
    std::os::unix::fs::symlink("dd", repo.path().join("d")).unwrap();
    insta::assert_snapshot!(repo.teddy(&["status"]).shown(&repo), @"
    Session demo, turn 1, on branch main
    Ready for turn 2
    Your files match turn 1 except for 1 file:
      d/f.txt: `d` is in the way; `teddy restore 1 --exact d` puts the directory back
    2 files changed since:
      d
      dd/f.txt
    --- stderr
    Next: teddy '<what you want>'
    exit code 0
    ");
    insta::assert_snapshot!(repo.teddy(&["undo", "--theirs"]).shown(&repo), @"
    write d/f.txt
    delete d
    keep dd/f.txt
    --- stderr
    Your files match turn 0: 2 files changed, 1 of your own kept.
    exit code 0
    ");
    assert_eq!(
        (repo.read("d/f.txt"), repo.read("dd/f.txt")),
        ("1\n".into(), "2\n".into())
    );
}

/// Bug: the file counted as ignored by git, because it was still on disk.
#[test]
fn a_file_that_an_undo_deletes_is_not_ignored() {
    let repo = TestRepo::new().file("f.txt", "1\n");
    repo.commit("init");
    repo.done(&["new", "demo"]);
    repo.workflow().add(&["f.txt"]);
    repo.run_plan(&plan("Edit f", &[edit("f.txt", "1", "2")]));
    repo.remove("f.txt");
    repo.done(&["restore", "0", "--exact", "-y"]);
    insta::assert_snapshot!(repo.teddy(&["undo"]).shown(&repo), @"
    delete f.txt
    --- stderr
    Your files match turn 1 except for 1 file: 1 file changed.
    f.txt: deleted since by you; `teddy restore 1 --exact f.txt` restores it
    exit code 0
    ");
    insta::assert_snapshot!(repo.teddy(&["status"]).shown(&repo), @"
    Session demo, turn 3, on branch main
    Ready for turn 4
    Your files match turn 3 except for 1 file:
      f.txt: deleted since by you; `teddy restore 1 --exact f.txt` restores it
    --- stderr
    Next: teddy '<what you want>'
    exit code 0
    ");
}
