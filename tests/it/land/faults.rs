//! Every point of a landing, with a kill or an error at it: afterwards there is no commit or the
//! whole one, and the user's index is sound.

use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt as _;

use teddy::host::fault::POINTS;

use crate::plans::{create, plan};
use crate::support::landing::{check_clean, hook};
use crate::support::{TestRepo, sample};

/// What is the user's own all the time: staged, edited, new.
const OWN: &str = " M edited.txt\nM  staged.txt\n?? new.txt";

/// The points that a landing comes by.
const PASSED: [&str; 19] = [
    "after-lock",
    "recover-start",
    "recover-healed",
    "before-record",
    "before-snapshot-ref",
    "after-snapshot-ref",
    "before-branch",
    "after-branch",
    "after-index",
    "before-objects-sync",
    "before-intent",
    "after-intent",
    "before-ref",
    "after-ref-before-sync",
    "after-ref",
    "after-publish",
    "before-draft",
    "before-clear",
    "after-clear",
];

/// A repository that goes from case to case, with a formatter as a hook.
fn project() -> TestRepo {
    let repo = TestRepo::new()
        .file("staged.txt", "1\n2\n3\n")
        .file("edited.txt", "1\n2\n3\n");
    repo.commit("init");
    repo.write("staged.txt", "1\n2\nstaged\n");
    repo.git(&["add", "staged.txt"]);
    repo.write("edited.txt", "1\n2\nedited\n");
    repo.write("new.txt", "new\n");
    repo.workflow().new_session("demo").done();
    hook(
        &repo,
        "pre-commit",
        "sed -i 's/^raw$/formatted/' made.txt && git add made.txt",
    );
    repo
}

/// Returns the branch, the session's newest turn, and what git says is the user's.
fn state(repo: &TestRepo) -> [String; 3] {
    [
        repo.git(&["rev-parse", "main"]),
        repo.git(&["rev-parse", "teddy/sessions/demo"]),
        repo.git(&["status", "--porcelain", "--untracked-files=all"]),
    ]
}

/// Runs a command with something armed.
fn run(repo: &TestRepo, args: &[&str], armed: &str) -> std::process::Output {
    let mut command = repo.teddy_command(args);
    command.current_dir(repo.path()).env("FAILPOINTS", armed);
    command.output().unwrap()
}

/// Checks what a landing left once it was recovered: nothing, or all of it.
fn check(repo: &TestRepo, before: &[String; 3], case: &str) {
    for _ in 0..2 {
        let out = repo.teddy(&["doctor", "--fix"]);
        assert_eq!(out.code, 0, "{case}: {out}");
    }
    let after = state(repo);
    if after[0] == before[0] {
        assert_eq!(&after, before, "{case}");
        // A hook that is killed leaves the user's files as it would in `git commit`.
        let made = repo.read("made.txt");
        assert!(["raw\n", "formatted\n"].contains(&made.as_str()), "{case}");
    } else {
        assert_eq!(repo.git(&["rev-parse", "main^"]), before[0], "{case}");
        assert_eq!(repo.git(&["show", "main:made.txt"]), "formatted", "{case}");
        assert_eq!(after[2], OWN, "{case}");
        assert_eq!(repo.read("made.txt"), "formatted\n", "{case}");
        let landed = repo.git(&["log", "-1", "--format=%P", "teddy/sessions/demo"]);
        assert!(landed.starts_with(&before[1]), "{case}");
    }
    assert_eq!(repo.git(&["show", ":staged.txt"]), "1\n2\nstaged", "{case}");
    check_clean(repo);
    let fsck = repo.git(&["fsck", "--strict", "--no-dangling"]);
    assert_eq!(fsck, "", "{case}");
}

/// Makes something to land: a file whose content the formatter changes.
fn make(repo: &TestRepo) {
    if repo.path().join("made.txt").exists() {
        repo.remove("made.txt");
        repo.git(&["rm", "-q", "--cached", "made.txt"]);
        repo.git(&["commit", "-q", "--no-verify", "-m", "gone", "made.txt"]);
    }
    repo.workflow()
        .run_plan(&plan("Make it", &[create("made.txt", "raw\n")]));
}

/// A plain `cargo test` tries every sixth point.
fn points() -> impl Iterator<Item = &'static str> {
    sample(POINTS, 6, 0)
}

#[test]
fn a_landing_survives_every_fault() {
    let repo = project();
    let all = teddy::host::env::var("TEDDY_FAULTS").is_some_and(|which| which == "all");
    let mut reached = BTreeSet::new();
    for (at, point) in points().enumerate() {
        for (nth, fault) in ["kill", "error"].into_iter().enumerate() {
            if !all && nth != at % 2 {
                continue;
            }
            make(&repo);
            // What only the files have is recorded before anything else.
            repo.write("new.txt", format!("{point} {fault}\n"));
            let (case, before) = (format!("{point} {fault}"), state(&repo));
            let armed = format!("{point}=1*return({fault})");
            let out = run(&repo, &["land", "-m", "Land"], &armed);
            let words = String::from_utf8_lossy(&out.stderr).into_owned();
            let came_by = match fault {
                "kill" => out.status.signal() == Some(9),
                _ => words.contains(&format!("fault at `{point}`")),
            };
            if came_by {
                reached.insert(point);
            } else {
                assert!(out.status.success(), "{case}: {words}");
            }
            check(&repo, &before, &case);
            // What stands in nobody's way can be landed.
            if state(&repo)[0] == before[0] {
                repo.done(&["land", "-m", "Land"]);
            }
            assert_eq!(state(&repo)[2], OWN, "{case}");
        }
    }
    let reached: Vec<&str> = points().filter(|point| reached.contains(point)).collect();
    let expected: Vec<&str> = points().filter(|point| PASSED.contains(point)).collect();
    assert_eq!(reached, expected);
}

#[test]
fn a_recovery_of_a_landing_survives_a_second_fault() {
    let repo = project();
    let pairs = [
        ("after-branch", "recover-start"),
        ("after-branch", "recover-landed"),
        ("after-branch", "after-index"),
        ("after-index", "recover-landed"),
        ("after-index", "before-intent"),
        ("after-index", "after-ref"),
        ("after-ref", "recover-published"),
        ("after-publish", "before-clear"),
    ];
    for (first, second) in sample(pairs, 2, 0) {
        make(&repo);
        let (case, before) = (format!("{first}, {second}"), state(&repo));
        let out = run(
            &repo,
            &["land", "-m", "Land"],
            &format!("{first}=1*return(kill)"),
        );
        assert_eq!(out.status.signal(), Some(9), "{case}");
        let out = run(
            &repo,
            &["doctor", "--fix"],
            &format!("{second}=1*return(kill)"),
        );
        assert_eq!(out.status.signal(), Some(9), "{case}");
        check(&repo, &before, &case);
        assert_ne!(state(&repo)[0], before[0], "{case}");
    }
}

#[test]
fn a_landing_that_is_killed_at_any_moment_is_nothing_or_whole() {
    let repo = project();
    let kills = teddy::host::env::var("TEDDY_KILLS").and_then(|kills| kills.parse().ok());
    let (mut dice, mut landed) = (crate::random_kills::Dice(7), 0);
    let mut usual = std::time::Duration::from_millis(600);
    for number in 0..kills.unwrap_or(if crate::WORLDS { 12 } else { 5 }) {
        make(&repo);
        let before = state(&repo);
        let start = std::time::Instant::now();
        let mut command = repo.teddy_command(&["land", "-m", "Land"]);
        command.current_dir(repo.path());
        command.stderr(std::process::Stdio::null());
        let mut child = command.stdout(std::process::Stdio::null()).spawn().unwrap();
        let wait = usual.mul_f64(dice.below(1200) as f64 / 1000.0);
        while start.elapsed() < wait && child.try_wait().unwrap().is_none() {
            std::thread::sleep(std::time::Duration::from_micros(500));
        }
        if child.try_wait().unwrap().is_some() {
            usual = (usual + start.elapsed()) / 2;
        }
        let _ = child.kill();
        child.wait().unwrap();

        check(&repo, &before, &format!("kill {number}"));
        if state(&repo)[0] == before[0] {
            repo.done(&["land", "-m", "Land"]);
        } else {
            landed += 1;
        }
    }
    // Some are killed before the commit, and some after it. Five can all be too early on a busy machine.
    assert!(landed > 0 || !crate::WORLDS, "{landed}");
}

#[test]
fn what_the_user_did_after_a_crash_is_not_written_over() {
    let repo = project();
    make(&repo);
    let out = run(
        &repo,
        &["land", "-m", "Land"],
        "after-branch=1*return(kill)",
    );
    assert_eq!(out.status.signal(), Some(9));
    repo.git(&["reset", "-q"]);
    repo.git(&["add", "edited.txt", "made.txt"]);
    repo.git(&["commit", "-q", "--no-verify", "-m", "mine"]);
    let head = repo.git(&["rev-parse", "HEAD"]);
    repo.done(&["doctor", "--fix"]);
    assert_eq!(repo.git(&["rev-parse", "HEAD"]), head);
    assert_eq!(repo.json(&["log"], 0)[0]["status"], "landed");
    check_clean(&repo);
}

/// How a landing is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LandingKind {
    /// In a separate directory, because the user edited the same file.
    Separate,
    /// On a new branch, in a worktree of its own.
    NewBranch,
    /// Two commits in the user's checkout.
    Each,
}

impl LandingKind {
    fn args(self, branch: &str) -> Vec<&str> {
        match self {
            LandingKind::Separate => vec!["land", "-m", "Land"],
            LandingKind::NewBranch => vec!["land", "-m", "Land", "--branch", branch],
            LandingKind::Each => vec!["land", "--each"],
        }
    }

    fn commits(self) -> usize {
        if self == LandingKind::Each { 2 } else { 1 }
    }
}

/// Kills landings of one kind at random moments. Each leaves no commit or a whole one, and all bytes of
/// the user's.
fn kill_landings(kind: LandingKind, kills: usize) {
    let repo = project();
    hook(
        &repo,
        "pre-commit",
        "for f in $(git diff --cached --name-only --diff-filter=AM); do\n\
         sed -i 's/^raw$/formatted/' $f && git add $f; done",
    );
    let (mut dice, mut usual) = (crate::random_kills::Dice(11), 0.8);
    for number in 0..kills {
        let (one, two) = (format!("one{number}.txt"), format!("two{number}.txt"));
        let text = "raw\n1\n2\n3\n4\n5\n6\n";
        repo.run_plan(&plan("One", &[create(&one, text)]));
        repo.run_plan(&plan("Two", &[create(&two, "raw\n")]));
        if kind == LandingKind::Separate {
            repo.write(&one, format!("{text}mine\n"));
        }
        let new = format!("new{number}");
        let branch = match kind {
            LandingKind::NewBranch => new.as_str(),
            _ => "main",
        };
        let (main, case) = (
            repo.git(&["rev-parse", "main"]),
            format!("{kind:?} {number}"),
        );
        let made = || -> Vec<String> {
            if repo.git(&["branch", "--list", branch]).is_empty() {
                return Vec::new();
            }
            let list = repo.git(&["rev-list", "--reverse", &format!("{main}..{branch}")]);
            list.lines().map(str::to_owned).collect()
        };

        let start = std::time::Instant::now();
        let mut command = repo.teddy_command(&kind.args(&new));
        command.current_dir(repo.path());
        command.stderr(std::process::Stdio::null());
        let mut child = command.stdout(std::process::Stdio::null()).spawn().unwrap();
        let wait = usual * dice.below(1200) as f64 / 1000.0;
        while start.elapsed().as_secs_f64() < wait && child.try_wait().unwrap().is_none() {
            std::thread::sleep(std::time::Duration::from_micros(500));
        }
        if child.try_wait().unwrap().is_some() {
            usual = (usual + start.elapsed().as_secs_f64()) / 2.0;
        }
        let _ = child.kill();
        child.wait().unwrap();
        for _ in 0..2 {
            let out = repo.teddy(&["doctor", "--fix"]);
            assert_eq!(out.code, 0, "{case}: {out}");
        }

        let count = made().len();
        if kind == LandingKind::NewBranch && count == 0 {
            assert_eq!(repo.git(&["branch", "--list", branch]), "", "{case}");
        }
        let check_own = || {
            assert_eq!(repo.git(&["show", ":staged.txt"]), "1\n2\nstaged", "{case}");
            assert_eq!(repo.read("edited.txt"), "1\n2\nedited\n", "{case}");
            assert_eq!(repo.read("new.txt"), "new\n", "{case}");
            let is_mine = repo.read(&one).ends_with("6\nmine\n");
            assert_eq!(is_mine, kind == LandingKind::Separate, "{case}");
            check_clean(&repo);
            let fsck = repo.git(&["fsck", "--strict", "--no-dangling"]);
            assert_eq!(fsck, "", "{case}");
        };
        check_own();
        if count < kind.commits() {
            let out = repo.teddy(&kind.args(&new));
            assert_eq!(out.code, 0, "{case}, {count} made: {out}");
        }

        let commits = made();
        assert_eq!(commits.len(), kind.commits(), "{case}, {count} made");
        for commit in &commits {
            let names = repo.git(&["show", "--format=", "--name-only", commit]);
            for name in names.lines() {
                let text = repo.git(&["show", &format!("{commit}:{name}")]);
                assert!(text.starts_with("formatted"), "{case}: {name} {text}");
                assert!(!text.contains("mine"), "{case}");
            }
        }
        check_own();
        if kind == LandingKind::NewBranch {
            // The next round lands these no more.
            assert_eq!(repo.git(&["rev-parse", "main"]), main, "{case}");
        }
    }
}

#[test]
fn a_killed_landing_outside_the_checkout_is_nothing_or_whole() {
    let kills = teddy::host::env::var("TEDDY_KILLS").and_then(|kills| kills.parse().ok());
    let kills = kills.unwrap_or(if crate::WORLDS { 8 } else { 1 });
    kill_landings(LandingKind::Separate, kills);
    kill_landings(LandingKind::NewBranch, kills);
    kill_landings(LandingKind::Each, kills);
}

/// A power cut in the middle of a hook: TeDDy, git and the hook are gone at once.
#[test]
fn what_a_hook_had_put_aside_when_all_were_killed_is_named() {
    for script in [
        "git stash push -q --keep-index",
        "git stash push -q --include-untracked",
        "rm edited.txt new.txt",
        "git reset -q --hard",
        "git checkout -q -- .; git clean -q -f -d",
    ] {
        let repo = project();
        make(&repo);
        let before = repo.tree();
        let script = format!("{script}\nkill -9 $TEDDY_LANDING $PPID $$");
        hook(&repo, "pre-commit", &script);
        let out = run(&repo, &["land", "-m", "Land"], "");
        assert_eq!(out.status.signal(), Some(9), "{script}");

        let index = repo.git(&["show", ":staged.txt"]);
        assert_eq!(index, "1\n2\nstaged", "{script}");
        let out = repo.teddy(&["doctor", "--fix"]);
        assert_eq!(out.code, 0, "{script}: {out}");
        let said = "changed while git committed: ";
        let (_, rest) = out.stderr.split_once(said).expect(&out.stderr);
        let (_, rest) = rest.split_once("; `").expect(&out.stderr);
        let command = rest.split('`').next().unwrap();
        let mut shell = repo.command("sh");
        let shell = shell.current_dir(repo.path()).args(["-c", command]);
        crate::support::Output::of(shell).check(0, &[]);
        assert_eq!(repo.tree(), before, "{script}: {out}");
        check_clean(&repo);
    }
}
