//! The demo and the README show what the program prints.

use crate::support::{Output, TestRepo};

fn demo(repo: &TestRepo) -> Output {
    let folder = repo.beside("scratch");
    let out = repo.teddy_in(&repo.beside("home"), &["demo", folder.to_str().unwrap()]);
    assert_eq!(out.code, 0, "{out}");
    out
}

/// Replaces what differs by run: object ids and times.
fn plain(line: &str) -> String {
    let id = regex::Regex::new(r"\b[0-9a-f]{7,40}\b").unwrap();
    let took = regex::Regex::new(r" \([0-9.]+ s\)").unwrap();
    took.replace_all(&id.replace_all(line.trim_end(), "<id>"), "")
        .into_owned()
}

/// Returns the blocks with the info string `text`.
fn transcripts(page: &str) -> Vec<Vec<&str>> {
    let mut blocks = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        if line == "```text" {
            blocks.push(lines.by_ref().take_while(|line| *line != "```").collect());
        }
    }
    blocks
}

#[test]
fn the_transcripts_of_the_documents_are_what_the_demo_prints() {
    let repo = TestRepo::new();
    let printed: Vec<String> = demo(&repo).stdout.lines().map(plain).collect();
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |page: &str| std::fs::read_to_string(root.join(page)).unwrap();
    let walkthrough = read("docs/walkthroughs/session.md");
    let blocks = transcripts(&walkthrough);
    assert_eq!(blocks.len(), 7);
    for block in blocks {
        let mut at = 0;
        for part in block
            .split(|line| *line == "...")
            .filter(|part| !part.is_empty())
        {
            let part: Vec<String> = part.iter().map(|line| plain(line)).collect();
            let found = printed[at..]
                .windows(part.len())
                .position(|window| window == part);
            at += found.unwrap_or_else(|| panic!("the demo does not print\n{}", part.join("\n")))
                + part.len();
        }
    }
}

#[test]
fn the_demo_is_folded_at_words_on_a_terminal() {
    let repo = TestRepo::new();
    let folder = repo.beside("scratch");
    let mut screen =
        crate::screen::Screen::open(&repo, (100, 400), &["demo", folder.to_str().unwrap()]);
    assert_eq!(screen.end(), 0);
    let shown = screen.shown();
    assert!(shown.contains(" at\n    ↪ column 6\n"), "{shown}");
}

#[test]
fn the_demo_leaves_a_sound_repository_to_look_around_in() {
    let repo = TestRepo::new();
    let out = demo(&repo);
    let project = repo.beside("scratch/greet");
    assert!(
        out.stdout
            .contains(&format!("The session is in {}", project.display())),
        "{out}"
    );
    // An absolute path, so that it works in any directory.
    let config = repo.beside("scratch/teddy.yaml");
    assert!(
        out.stderr
            .contains(&format!("export TEDDY_CONFIG={}", config.display())),
        "{out}"
    );
    let fsck = repo.git_in(&project, &["fsck", "--strict"]);
    assert!(
        fsck.lines().all(|line| line.starts_with("dangling")),
        "{fsck}"
    );
    let status = repo.git_in(
        &project,
        &["for-each-ref", "--format=%(refname)", "refs/teddy/sessions"],
    );
    assert_eq!(
        status,
        "refs/teddy/sessions/another-way\nrefs/teddy/sessions/greet-by-name"
    );
    let config = config.to_str().unwrap();
    let mut command = repo.teddy_command(&["status"]);
    let status = Output::of(command.current_dir(&project).env("TEDDY_CONFIG", config));
    // Bug: the files had a turn that the session in use did not have.
    status.check(0, &["Your files are as the newest turn left them"]);
    insta::assert_snapshot!(repo.teddy_in(&project, &["demo", "."]).shown(&repo), @"
    --- stderr
    error: `[dir]/scratch/greet/.` is not empty; name another directory
    exit code 1
    ");
}

#[test]
fn the_commands_of_the_readme_exist() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md")).unwrap();
    let help = TestRepo::new().done(&["--help"]);
    let named = regex::Regex::new(r"(?m)(?:^|`)teddy ([a-z-]+)").unwrap();
    let mut count = 0;
    for command in named
        .captures_iter(&page)
        .map(|found| found.get(1).unwrap().as_str().to_owned())
    {
        count += 1;
        let listed = format!(" {command} ");
        assert!(
            help.lines()
                .any(|line| line.get(9..).is_some_and(|rest| rest.starts_with(&listed))),
            "the README has `teddy {command}`"
        );
    }
    assert!(count > 20, "{count}");
}

#[test]
fn a_step_of_the_demo_that_fails_is_named_with_its_exit_code() {
    let repo = TestRepo::new();
    // A git whose only working command is `init`.
    let folder = repo.beside("tools");
    std::fs::create_dir(&folder).unwrap();
    let git = folder.join("git");
    std::fs::write(&git, "#!/bin/sh\n[ \"$1\" = init ] || exit 7\n").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&git, mode).unwrap();
    let mut command = repo.teddy_command(&["demo", repo.beside("scratch").to_str().unwrap()]);
    let path = format!("{}:/bin:/usr/bin", folder.display());
    let out = crate::support::Output::of(command.env("PATH", path));
    out.check(
        1,
        &["`git add greet.sh` ended with exit code 7 instead of 0"],
    );
}
