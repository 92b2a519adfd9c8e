//! Progress and interruption while a large worktree is filled.

use crate::plans::{execute, plan};
use crate::screen::Screen;
use crate::support::{Output, TestRepo};

/// A filter delays each of its files. Progress takes more than 64. Also writes a plan with a command,
/// which needs all of them.
fn slow_project() -> TestRepo {
    let repo = TestRepo::new().file(".gitattributes", "*.txt filter=slow\n");
    repo.git(&["config", "filter.slow.smudge", "sleep 0.02; cat"]);
    repo.git(&["config", "filter.slow.clean", "cat"]);
    (0..70).for_each(|number| repo.write(&format!("d{}/{number}.txt", number % 7), "text\n"));
    repo.commit("init");
    repo.done(&["new", "demo"]);
    let plan = plan("Look", &[execute("cat d1/1.txt; ls d6 | wc -l")]);
    std::fs::write(repo.beside("plan.md"), plan).unwrap();
    repo
}

/// Executes the plan of [`slow_project`] in a checkout.
const IN_A_COPY: [&str; 5] = [
    "execute",
    "../plan.md",
    "-y",
    "-c",
    "worktree.backend=checkout",
];

/// Shows progress from the start.
const AT_ONCE: (&str, &str) = ("FAILPOINTS", "no-patience=return");

#[test]
fn who_waits_for_a_worktree_is_told_how_far_it_is() {
    let repo = slow_project();
    let open = |args: &[&str]| Screen::open_with(&repo, (100, 30), (args, &[AT_ONCE]));
    let mut screen = open(&IN_A_COPY);
    screen.wait_for("filling the worktree: ");
    assert_eq!(screen.end(), 0, "{}", screen.shown());
    assert!(screen.written().contains(" of 71 files"));
    assert!(!screen.shown().contains("filling"), "{}", screen.shown());

    repo.done(&["new", "other"]);
    let mut screen = open(&[&IN_A_COPY[..], &["--quiet"]].concat());
    assert_eq!(screen.end(), 0, "{}", screen.shown());
    assert!(!screen.written().contains("filling"));

    for (session, json) in [("third", &[][..]), ("fourth", &["--json"])] {
        repo.done(&["new", session]);
        let mut command = repo.teddy_command(&[&IN_A_COPY[..], json].concat());
        command.env(AT_ONCE.0, AT_ONCE.1);
        let out = Output::of(command.current_dir(repo.path()));
        assert!(!out.check(0, &[]).stderr.contains("filling"));
    }
}

#[test]
fn who_does_not_want_to_wait_for_a_worktree_stops_it_and_goes_on_later() {
    let repo = slow_project();
    let users = repo.users();
    let mut screen = Screen::open_with(&repo, (100, 30), (&IN_A_COPY, &[AT_ONCE]));
    screen.wait_for("filling the worktree: ");
    screen.signal(rustix::process::Signal::INT);
    assert_eq!(screen.end(), 130, "{}", screen.shown());
    assert_eq!(repo.users(), users);

    repo.git(&["config", "filter.slow.smudge", "cat"]);
    repo.teddy(&IN_A_COPY).check(0, &[]);
    let output = repo.done(&["show", "@", "output/01.txt"]);
    assert!(output.starts_with("text\n10\n"), "{output}");
}
