//! `preprocess` of files, standard input and the clipboard. Numbers in test names are those of the
//! specified cases.

use std::os::unix::fs::PermissionsExt as _;

use crate::plans::{create, plan};
use crate::support::{Output, PATIENCE, TestRepo};

/// A plan with correct fences.
fn right() -> String {
    plan("Write", &[create("a.md", "```sh\nls\n```\n")])
}

/// The same plan with fences of equal length.
fn wrong() -> String {
    right().replace("`````", "```").replace("````", "```")
}

/// The plan after repair.
fn mended() -> String {
    teddy::plan::repair::repair(&wrong()).text
}

/// Runs `preprocess` with a fake `xclip` that uses a file.
#[expect(
    clippy::disallowed_methods,
    reason = "the fake program stands in front of the machine's"
)]
fn with_clipboard(repo: &TestRepo, text: &str, args: &[&str]) -> Output {
    let folder = repo.beside("bin");
    std::fs::create_dir_all(&folder).unwrap();
    let program = folder.join("xclip");
    std::fs::write(
        &program,
        "#!/bin/sh\ncase \"$*\" in *-o) cat \"$CLIP\";; *) cat > \"$CLIP\";; esac\n",
    )
    .unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::write(repo.beside("clip"), text).unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let mut command = repo.teddy_command(&[&["preprocess"], args].concat());
    command
        .env("PATH", path)
        .env("DISPLAY", ":0")
        .env("CLIP", repo.beside("clip"))
        .current_dir(repo.path());
    Output::of(&mut command)
}

fn clipboard(repo: &TestRepo) -> String {
    std::fs::read_to_string(repo.beside("clip")).unwrap()
}

#[test]
fn pc1_a_file_is_repaired_in_place_and_each_repair_is_reported_by_line() {
    let repo = TestRepo::new().file("plan.md", wrong());
    insta::assert_snapshot!(repo.printed(&["preprocess", "plan.md"]), @r"
    --- stderr
    line 16: rewrote the fence, so that the fences inside cannot end its block
    The fences are repaired.
    exit code 0
    ");
    assert_eq!(repo.read("plan.md"), mended());
    insta::assert_snapshot!(repo.printed(&["preprocess", "plan.md"]), @r"
    --- stderr
    There is nothing to repair.
    exit code 0
    ");
    assert_eq!(repo.read("plan.md"), mended());
}

#[test]
fn pc2_a_right_file_keeps_its_bytes_and_its_time() {
    let repo = TestRepo::new().file("plan.md", right());
    let path = repo.path().join("plan.md");
    let time = || std::fs::metadata(&path).unwrap().modified().unwrap();
    let before = time();
    insta::assert_snapshot!(repo.printed(&["preprocess", "plan.md"]), @r"
    --- stderr
    There is nothing to repair.
    exit code 0
    ");
    assert_eq!((repo.read("plan.md"), time()), (right(), before));
}

#[test]
fn pc3_a_file_that_is_not_there_is_named() {
    insta::assert_snapshot!(TestRepo::new().printed(&["preprocess", "none.md"]), @r"
    --- stderr
    error: plan file not found at `none.md`
    hint: `teddy preprocess -` reads standard input
    exit code 1
    ");
}

#[test]
fn pc4_without_a_file_the_clipboard_is_repaired_and_printed() {
    let repo = TestRepo::new();
    let out = with_clipboard(&repo, &wrong(), &[]);
    assert_eq!(
        (out.stdout.as_str(), clipboard(&repo)),
        (mended().as_str(), mended())
    );
    insta::assert_snapshot!(out.stderr, @r"
    Output copied to clipboard.
    line 16: rewrote the fence, so that the fences inside cannot end its block
    The fences are repaired.
    ");
    assert_eq!(out.code, 0, "{out}");
}

#[test]
fn pc5_no_copy_leaves_the_clipboard() {
    let repo = TestRepo::new();
    let out = with_clipboard(&repo, &wrong(), &["--no-copy"]);
    out.check(0, &[]);
    assert_eq!(
        (out.stdout.as_str(), clipboard(&repo)),
        (mended().as_str(), wrong())
    );
}

#[test]
fn pc6_no_clipboard_and_an_empty_one_are_errors_at_once() {
    let repo = TestRepo::new();
    let start = std::time::Instant::now();
    let out = repo.teddy(&["preprocess"]);
    insta::assert_snapshot!(out.shown(&repo), @"
    --- stderr
    error: reading the clipboard: no clipboard is reachable from here; give the text on standard input (`-`) instead
    exit code 1
    ");
    assert_eq!(
        out.stderr.matches("standard input (`-`)").count(),
        1,
        "{out}"
    );
    insta::assert_snapshot!(out.shown(&repo), @"
    --- stderr
    error: reading the clipboard: no clipboard is reachable from here; give the text on standard input (`-`) instead
    exit code 1
    ");
    with_clipboard(&repo, " \n", &[]).check(1, &["the clipboard is empty"]);
    assert!(start.elapsed() < PATIENCE);
}

#[test]
fn pc7_words_go_to_stderr_alone() {
    let repo = TestRepo::new();
    let out = with_clipboard(&repo, &wrong(), &[]);
    insta::assert_snapshot!(out.shown(&repo), @"
    # Write
    - **Status:** Green 🟢
    - **Plan Type:** Implementation
    - **Agent:** Pathfinder

    ## Rationale
    ```text
    Write, because it is wanted.
    ```

    ## Action Plan

    ### `CREATE`
    - **File Path:** [a.md](/a.md)
    - **Description:** Make a.md.
    ````text
    ```sh
    ls
    ```
    ````
    --- stderr
    Output copied to clipboard.
    line 16: rewrote the fence, so that the fences inside cannot end its block
    The fences are repaired.
    exit code 0
    ");
    let out = repo.teddy_reads(&["preprocess", "-"], right());
    assert_eq!(
        (out.code, out.stdout.as_str()),
        (0, right().as_str()),
        "{out}"
    );
}

#[test]
fn pc8_line_ends_are_kept_and_binary_files_are_not_changed() {
    let crlf = wrong().replace('\n', "\r\n");
    let cut = mended().trim_end().to_owned();
    let repo = TestRepo::new()
        .file("crlf.md", &crlf)
        .file("cut.md", wrong().trim_end())
        .file("bytes.md", b"# T\xff\n");
    let shown = ["crlf.md", "cut.md"].map(|name| repo.printed(&["preprocess", name]));
    insta::assert_snapshot!(shown.concat(), @r"
    --- stderr
    line 16: rewrote the fence, so that the fences inside cannot end its block
    The fences are repaired.
    exit code 0
    --- stderr
    line 16: rewrote the fence, so that the fences inside cannot end its block
    The fences are repaired.
    exit code 0
    ");
    assert_eq!(
        (repo.read("crlf.md"), repo.read("cut.md")),
        (mended().replace('\n', "\r\n"), cut)
    );
    insta::assert_snapshot!(repo.printed(&["preprocess", "bytes.md"]), @r"
    --- stderr
    error: `bytes.md` is not UTF-8: line 1 has the byte 0xff; save it as UTF-8
    exit code 1
    ");
    assert_eq!(
        std::fs::read(repo.path().join("bytes.md")).unwrap(),
        b"# T\xff\n"
    );
}

#[test]
fn pc9_a_file_is_exchanged_as_a_whole_and_keeps_its_permissions() {
    let repo = TestRepo::new().file("plan.md", wrong());
    let path = repo.path().join("plan.md");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    let inode = |path: &std::path::Path| {
        std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(path).unwrap())
    };
    let before = inode(&path);
    repo.teddy(&["preprocess", "plan.md"]).check(0, &[]);
    assert_ne!(inode(&path), before, "a new file took its place");
    assert_eq!(
        std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o640
    );
    let names: Vec<_> = std::fs::read_dir(repo.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names.len(), 2, "nothing is left beside it: {names:?}");
}

#[test]
fn pc9_a_read_only_file_is_not_changed_even_by_root() {
    let repo = TestRepo::new().file("plan.md", wrong());
    let path = repo.path().join("plan.md");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o444)).unwrap();
    insta::assert_snapshot!(repo.printed(&["preprocess", "plan.md"]), @r"
    --- stderr
    error: writing `plan.md`: the file is read-only
    hint: `teddy preprocess - < <file>` prints the repaired plan
    exit code 1
    ");
    assert_eq!(repo.read("plan.md"), wrong());
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o444);
}

#[test]
fn p5_a_text_without_a_plan_is_reported_and_not_changed() {
    let repo = TestRepo::new();
    let out = repo.teddy_reads(&["preprocess", "-"], "no plan at all\n");
    assert_eq!(out.stdout, "no plan at all\n");
    insta::assert_snapshot!(out.shown(&repo), @r"
    no plan at all
    --- stderr
    line 1: there is no `## Action Plan` and no action
    warning: it is unclear where the blocks end; the plan is unchanged
    exit code 3
    ");
}
