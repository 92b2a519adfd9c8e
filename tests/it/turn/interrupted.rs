//! An interrupted run leaves the user's files and index unchanged, byte for byte. The turn is
//! recorded, and the plan waits again.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::fake::{Act, Fake, stream};
use crate::plans::{create, edit, execute, with_memos};
use crate::random_kills::Dice;
use crate::support::{Output, PATIENCE, TestRepo, Users};
use crate::turn::models;

/// Runs that are stopped at a random moment.
const MOMENTS: usize = 15;

/// What an interrupted run must not change.
#[derive(Debug, PartialEq, Eq)]
struct Photo {
    /// Content by path, including ignored files.
    files: BTreeMap<PathBuf, Vec<u8>>,
    /// The user's part of the git directory, including the index.
    users: Users,
}

/// A project whose session has a turn. Next to the project is a plan that creates and edits files,
/// runs a command and adds a memo.
fn project() -> TestRepo {
    let repo = TestRepo::new()
        .file("a.txt", "one\ntwo\nthree\n")
        .file(".gitignore", "*.log\n")
        .file("kept.log", "ignored\n");
    repo.commit("init");
    // `doctor --fix` sets it otherwise.
    repo.git(&["config", "log.excludeDecoration", "refs/teddy/"]);
    repo.write("own.txt", "mine, and not in the index\n");
    repo.workflow().new_session("demo").done();
    repo.workflow().add(&["a.txt"]);
    repo.workflow()
        .run_plan(&with_memos("First", "", &[create("first.txt", "1\n")]));
    write_plan(&repo, "echo made > made.txt; echo ran");
    repo
}

/// Writes the plan with this command between its other actions.
fn write_plan(repo: &TestRepo, command: &str) {
    let actions = [
        create("new/b.txt", "b\n"),
        edit("a.txt", "two", "2"),
        execute(command),
        create("new/c.txt", "c\n"),
    ];
    let text = with_memos("All of it", "[+] It is done.", &actions);
    std::fs::write(repo.beside("plan.md"), text).unwrap();
}

fn photo(repo: &TestRepo) -> Photo {
    let mut files = BTreeMap::new();
    collect(&repo.path(), &mut files);
    Photo {
        files,
        users: repo.users(),
    }
}

/// Reads every file below a directory, except `.git`.
fn collect(folder: &Path, files: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            if !path.ends_with(".git") {
                collect(&path, files);
            }
        } else {
            let bytes = std::fs::read(&path).unwrap();
            files.insert(path, bytes);
        }
    }
}

/// Returns number, status and changed files of the newest turn.
fn newest(repo: &TestRepo) -> (u64, String, Vec<String>) {
    let row = repo.workflow().log()[0].clone();
    let files = row["files"].as_array().unwrap();
    (
        row["number"].as_u64().unwrap(),
        row["status"].as_str().unwrap().to_owned(),
        files
            .iter()
            .map(|file| file.as_str().unwrap().to_owned())
            .collect(),
    )
}

fn armed(repo: &TestRepo, points: &str) -> Output {
    Output::of(
        repo.teddy_command(&["execute", "../plan.md", "-y"])
            .env("FAILPOINTS", points)
            .current_dir(repo.path())
            .stdin(Stdio::null()),
    )
}

/// Interrupts the plan at a failpoint and checks that only a turn is recorded. Returns its changed
/// files.
#[track_caller]
fn check(points: &str, code: i32, words: &str) -> Vec<String> {
    let repo = project();
    let before = photo(&repo);
    armed(&repo, points).check(code, &["turn 2 interrupted", words]);
    assert_eq!(photo(&repo), before, "{points}");
    let (number, status, files) = newest(&repo);
    assert_eq!((number, status.as_str()), (2, "interrupted"), "{points}");
    let report = repo.workflow().artifact("@", "report.md");
    assert!(
        report.contains("- **Overall Status:** Interrupted 🟡\n")
            && report.contains("- Not applied: ` [+] It is done. `\n"),
        "{report}"
    );
    check_goes_on(&repo);
    files
}

/// Checks that the waiting plan runs as usual.
#[track_caller]
fn check_goes_on(repo: &TestRepo) {
    repo.teddy(&["execute", "-y"])
        .check(0, &["turn 3 executed"]);
    let made = ["a.txt", "new/b.txt", "made.txt", "new/c.txt"].map(|path| repo.read(path));
    assert_eq!(made, ["one\n2\nthree\n", "b\n", "made\n", "c\n"]);
    assert_eq!(repo.read(".teddy/memos.yaml"), "- It is done.\n");
}

/// Starts the plan and waits until its command runs.
fn started(repo: &TestRepo) -> (Child, BufReader<std::process::ChildStderr>) {
    started_until(repo, "│ it runs")
}

/// Starts the plan and waits for this output.
fn started_until(repo: &TestRepo, words: &str) -> (Child, BufReader<std::process::ChildStderr>) {
    let mut child = repo
        .teddy_command(&["execute", "../plan.md", "-y"])
        .current_dir(repo.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains(words) {
        line.clear();
        assert!(said.read_line(&mut line).unwrap() > 0, "it does not begin");
    }
    (child, said)
}

fn send(child: &Child, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    // The process can have exited already.
    let _ = kill_process(pid, signal);
}

#[test]
fn a_signal_while_a_command_runs_brings_nothing() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let repo = project();
        write_plan(&repo, "echo half > made.txt; echo it runs; exec sleep 60");
        let before = photo(&repo);
        let (mut child, _said) = started(&repo);
        send(&child, signal);
        assert_eq!(child.wait().unwrap().code(), Some(130), "{signal:?}");
        assert_eq!(photo(&repo), before, "{signal:?}");
        let files = ["a.txt", "made.txt", "new/b.txt"]
            .map(str::to_owned)
            .to_vec();
        assert_eq!(newest(&repo), (2, "interrupted".to_owned(), files));
        let report = repo.workflow().artifact("@", "report.md");
        assert!(
            report
                .contains("- **Interrupted:** stopped by the user; the user's files are unchanged")
                && report.contains("it runs")
                && report.contains("skipped because the run was interrupted"),
            "{report}"
        );
    }
}

#[test]
fn a_second_signal_ends_at_once_and_brings_nothing() {
    let repo = project();
    // The command ignores SIGTERM, so the first signal alone takes a while.
    write_plan(
        &repo,
        "trap '' TERM; echo it runs; while :; do sleep 1; done",
    );
    let before = photo(&repo);
    let (mut child, _said) = started(&repo);
    send(&child, Signal::INT);
    let begun = Instant::now();
    while child.try_wait().unwrap().is_none() && begun.elapsed() < PATIENCE {
        send(&child, Signal::INT);
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(child.wait().unwrap().code(), Some(130));
    // After one signal it waits for five seconds.
    assert!(begun.elapsed() < Duration::from_secs(5), "it waited");
    repo.done(&["doctor", "--fix"]);
    assert_eq!(photo(&repo), before);
    assert_eq!(newest(&repo).0, 1);
    write_plan(&repo, "echo made > made.txt");
    repo.done(&["execute", "../plan.md", "-y"]);
}

/// Reading a sparse file of terabytes takes hours.
#[test]
fn a_signal_while_a_huge_file_is_read_brings_nothing() {
    let repo = project();
    let plan = with_memos("A hole", "", &[execute("truncate -s 2T a.txt")]);
    std::fs::write(repo.beside("plan.md"), plan).unwrap();
    let before = photo(&repo);
    let (mut child, _said) = started_until(&repo, "the command succeeded");
    std::thread::sleep(Duration::from_millis(500));
    let begun = Instant::now();
    send(&child, Signal::TERM);
    while child.try_wait().unwrap().is_none() && begun.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(20));
    }
    let _ = child.kill();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(photo(&repo), before);
    write_plan(&repo, "echo made > made.txt");
    repo.done(&["execute", "../plan.md", "-y"]);
}

#[test]
fn a_signal_between_two_actions_brings_nothing() {
    // The signal arrives while an action runs. It completes, and no other starts.
    for (passed, files) in [(0, ["new/b.txt"].as_slice()), (1, &["a.txt", "new/b.txt"])] {
        let points = format!("before-action={passed}*off->1*return(interrupt)");
        assert_eq!(check(&points, 130, "stopped by the user"), files);
    }
}

#[test]
fn a_signal_after_the_last_action_brings_nothing() {
    let all = [
        ".teddy/memos.yaml",
        "a.txt",
        "made.txt",
        "new/b.txt",
        "new/c.txt",
    ];
    for point in [
        "after-run",
        "after-run-snapshot",
        "before-objects-sync",
        "before-intent",
        "after-intent",
    ] {
        let files = check(
            &format!("{point}=1*return(interrupt)"),
            130,
            "stopped by the user",
        );
        assert_eq!(files, all, "{point}");
    }
}

#[test]
fn a_failure_of_the_world_in_our_own_writes_brings_nothing() {
    for (errno, why) in [
        (28, "No space left on device"),
        (5, "Input/output error"),
        (4, "Interrupted system call"),
        (24, "Too many open files"),
        (122, "Disk quota exceeded"),
        (30, "Read-only file system"),
    ] {
        let files = check(
            &format!("before-write=1*off->1*return(errno:{errno})"),
            1,
            why,
        );
        assert_eq!(files, ["new/b.txt"], "{why}");
    }
    assert_eq!(
        check("after-write=2*off->1*return(errno:28)", 1, "No space left"),
        ["a.txt", "made.txt", "new/b.txt", "new/c.txt"]
    );
    assert_eq!(
        check("before-memos=1*return(errno:28)", 1, "No space left"),
        ["a.txt", "made.txt", "new/b.txt", "new/c.txt"]
    );
}

#[test]
fn a_failure_of_the_world_after_the_last_action_brings_nothing() {
    for point in [
        "after-run",
        "after-run-snapshot",
        "before-objects-sync",
        "before-intent",
        "after-intent",
    ] {
        check(
            &format!("{point}=1*return(errno:28)"),
            1,
            "No space left on device",
        );
    }
}

#[test]
fn a_failure_before_anything_ran_records_nothing() {
    for point in ["before-worktree", "after-worktree"] {
        let repo = project();
        let before = photo(&repo);
        armed(&repo, &format!("{point}=1*return(errno:28)")).check(1, &["fault at"]);
        assert_eq!((photo(&repo), newest(&repo).0), (before, 1));
        repo.teddy(&["execute", "-y"])
            .check(0, &["turn 2 executed"]);
    }
}

#[test]
fn t13_what_an_interrupted_plan_did_can_be_looked_at_and_restored() {
    let repo = project();
    armed(&repo, "before-action=3*off->1*return(interrupt)").check(130, &[]);
    insta::assert_snapshot!(repo.printed(&["status"]), @"
    Session demo, turn 2, on branch main
    A plan is waiting for turn 3: All of it (4 actions)
    Turn 2 was interrupted and nothing of it is in your files; `teddy restore 2` applies what it did.
    --- stderr
    Next: teddy execute
    exit code 0
    ");
    insta::assert_snapshot!(repo.printed(&["diff", "2"]), @"
    --- /dev/null
    +++ b/.teddy/memos.yaml
    @@ -0,0 +1 @@
    +- It is done.
    --- a/a.txt
    +++ b/a.txt
    @@ -1,3 +1,3 @@
     one
    -two
    +2
     three
    --- /dev/null
    +++ b/made.txt
    @@ -0,0 +1 @@
    +made
    --- /dev/null
    +++ b/new/b.txt
    @@ -0,0 +1 @@
    +b
    --- /dev/null
    +++ b/new/c.txt
    @@ -0,0 +1 @@
    +c
    exit code 0
    ");
    repo.workflow().restore("2").done();
    assert_eq!(
        [repo.read("a.txt"), repo.read("made.txt")],
        ["one\n2\nthree\n", "made\n"]
    );
    repo.workflow().undo(1).done();
    assert_eq!(repo.read("a.txt"), "one\ntwo\nthree\n");
    assert!(!repo.path().join("made.txt").exists());
}

#[test]
fn a_plan_that_was_interrupted_costs_nothing_when_it_runs_again() {
    let repo = models::project();
    let text = with_memos("Make b", "", &[create("b.txt", "b\n")]);
    let answer = stream(&text, "stop", (2000, 30));
    let fake = Fake::start(vec![vec![Act::Send(answer)]]);
    repo.configure(&fake.config(", price: { input: 10, output: 100 }, max_tokens: 1000"));
    models::teddy(&repo, &["plan", "-m", "make b"]).check(0, &[]);
    let run = |points: &str| {
        Output::of(
            repo.teddy_command(&["execute", "-y"])
                .env("FAILPOINTS", points)
                .current_dir(repo.path())
                .stdin(Stdio::null()),
        )
    };
    run("after-run=1*return(interrupt)").check(130, &[]);
    run("").check(0, &["turn 2 executed"]);

    let rows = repo.workflow().log();
    let use_of = |row: &serde_json::Value| {
        ["model", "tokens_in", "tokens_out", "cost"].map(|key| row[key].to_string())
    };
    assert_eq!(use_of(&rows[1]), ["\"fake\"", "2000", "30", "0.023"]);
    assert_eq!(use_of(&rows[0]), ["\"fake\"", "0", "0", "0.0"]);
    for name in ["user_prompt.txt", "input.md", "plan.md"] {
        assert_eq!(
            repo.done(&["show", "2", name]),
            repo.done(&["show", "1", name]),
            "{name}"
        );
    }
}

#[test]
fn at_every_moment_a_signal_brings_all_or_nothing() {
    let repo = project();
    write_plan(
        &repo,
        "echo made > made.txt; sleep 0.05; echo more >> made.txt",
    );
    let before = photo(&repo);
    let mut dice = Dice(8);
    let begun = Instant::now();
    repo.done(&["execute", "../plan.md", "-y"]);
    let mut longest = usize::try_from(begun.elapsed().as_micros()).unwrap();
    let after = photo(&repo);
    let (mut stopped, mut recorded) = (0, 0);
    for moment in 0..MOMENTS {
        repo.done(&["restore", "1", "--exact", "-y"]);
        assert_eq!(photo(&repo), before, "moment {moment}");
        let tip = newest(&repo).0;
        let signal = [Signal::INT, Signal::TERM, Signal::HUP][dice.below(3)];
        let wait = Duration::from_micros(dice.below(longest) as u64);
        let mut child = repo
            .teddy_command(&["execute", "../plan.md", "-y"])
            .current_dir(repo.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(wait);
        send(&child, signal);
        if dice.below(4) == 0 {
            send(&child, signal);
        }
        let code = child.wait().unwrap().code();
        repo.done(&["doctor", "--fix"]);
        let (number, status, _) = newest(&repo);
        let found = photo(&repo);
        let what =
            format!("moment {moment}, {signal:?} after {wait:?}: {code:?} {number} {status}");
        match status.as_str() {
            // The signal came after the commit point.
            "executed" if number > tip => assert_eq!(found, after, "{what}"),
            "interrupted" => assert_eq!((&found, number), (&before, tip + 1), "{what}"),
            _ => assert_eq!((&found, number), (&before, tip), "{what}"),
        }
        // On a loaded machine one measurement says little, so each round corrects it.
        if found == before {
            stopped += 1;
            longest = longest * 5 / 4;
        } else {
            longest = longest * 3 / 4 + 1;
        }
        recorded += usize::from(status == "interrupted");
    }
    assert!(
        stopped > MOMENTS / 4 && recorded > 0,
        "{stopped} of {MOMENTS} runs were stopped, {recorded} of them on record"
    );
}

#[test]
fn a_run_whose_result_cannot_be_recorded_offers_nothing_of_it() {
    let repo = project();
    repo.put(
        "../plan.md",
        with_memos("Many", "", &[execute("seq 1 9 | sed s/^/f/ | xargs touch")]),
    );
    let args = [
        "execute",
        "../plan.md",
        "-y",
        "-c",
        "snapshot.max_new_files=2",
    ];
    let out = repo.teddy(&args);
    assert_eq!(out.code, 1, "{out}");
    let hint = "`teddy execute` runs it again; nothing that it did is recorded.";
    assert!(out.stderr.contains(hint), "{out}");
}
