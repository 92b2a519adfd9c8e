//! Injects kills, panics, errors and saves by the user at every failpoint of the crash protocol,
//! under every kind of command, and checks all guarantees afterwards.
//!
//! By default each point gets one fault per command. With `TEDDY_FAULTS=all` it gets all of them.

use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::Output;

use teddy::host::fault::POINTS;

use crate::killed_repo::{Rig, Saver, body, said, tag_of, verdict};
use crate::support::overlay::overlays;
use crate::support::sample;

/// The file that both plans and the user write.
const CONTESTED: &str = "d00/f00.txt";

/// Plans that are meant to crash are numbered from here.
const CRASHED: usize = 10_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    Kill,
    Panic,
    Error,
    Edit,
}

/// The command in which the fault is injected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Under {
    Execute,
    Part,
    Restore,
    New,
    Recover,
    // A multiple of 3, so that [`matrix`] selects the same faults as for `Execute`: an error at
    // `after-whole` is repaired immediately and would not be seen.
    Copy = 6,
}

/// One fault at one point. The rig is reused for all cases of a command.
struct Case<'a> {
    rig: &'a Rig,
    under: Under,
    number: usize,
}

impl Case<'_> {
    fn run(&self, armed: &str) -> Output {
        let name = format!("new-{}", self.number);
        let plan = self.plan(self.number);
        let args: Vec<&str> = match self.under {
            Under::Execute | Under::Part => vec!["execute", &plan, "-y", "-s", "storm"],
            Under::Copy => {
                let backend = "worktree.backend=checkout";
                vec!["execute", &plan, "-y", "-s", "storm", "-c", backend]
            }
            Under::Restore => vec!["restore", "1", "-s", "storm", "--theirs", "-y"],
            Under::New => vec!["new", &name],
            Under::Recover => vec!["doctor", "--fix"],
        };
        self.rig
            .teddy(&args)
            .env("FAILPOINTS", armed)
            .output()
            .unwrap()
    }

    /// Writes a plan that creates and overwrites files. Its command deletes some; under `Part` it
    /// has none.
    fn plan(&self, number: usize) -> String {
        let files = [
            CONTESTED.to_owned(),
            "d00/f01.txt".to_owned(),
            format!("made/{number}.txt"),
        ];
        let command = format!("find made -name '*.txt' ! -name {number}.txt -delete");
        let runs = self.under != Under::Part || number >= CRASHED;
        let command = runs.then_some(command.as_str());
        self.rig.plan(&format!("{number}"), &files, command)
    }

    /// Returns an error if a command does not see all files.
    fn find_all(&self) -> Option<String> {
        let command =
            "for n in 10 11 12 13 14 15 16 17 18 19; do test -s d00/f$n.txt || exit 1; done";
        let plan = self.rig.plan("find", &[], Some(command));
        let output = self.rig.run(&["execute", &plan, "-y", "-s", "storm"]);
        let failed = !output.status.success();
        failed.then(|| format!("a command finds a part: {}", said(&output)))
    }

    /// Leaves something to recover: a publication that is half done, or one that crashed before its
    /// deletions.
    fn crash(&self, point: &str) {
        let plan = self.plan(self.number + CRASHED);
        let at = if point.contains("delete") {
            "publish-prepared"
        } else {
            "publish-after-exchange"
        };
        let output = self
            .rig
            .teddy(&["execute", &plan, "-y", "-s", "storm"])
            .env("FAILPOINTS", format!("{at}=return(kill)"))
            .output();
        assert!(!output.unwrap().status.success());
    }

    fn tip(&self) -> String {
        self.rig.git(&["rev-parse", "refs/teddy/sessions/storm"])
    }

    fn is_interrupted(&self) -> bool {
        let status = "--format=%(trailers:key=Teddy-Status,valueonly,separator=)";
        let tip = "refs/teddy/sessions/storm";
        self.rig.git(&["log", "-1", status, tip]) == "interrupted"
    }

    fn tree(&self) -> String {
        let index = self.rig.beside("index");
        let _ = std::fs::remove_file(&index);
        let run = |args: &[&str]| {
            self.rig
                .command("git")
                .env("GIT_INDEX_FILE", &index)
                .args(args)
                .output()
                .unwrap()
        };
        run(&["add", "-A"]);
        String::from_utf8(run(&["write-tree"]).stdout)
            .unwrap()
            .trim()
            .to_owned()
    }

    /// Injects a fault at a point. Returns whether the command reached the point, and all
    /// violations.
    fn check(&self, point: &str, fault: Fault) -> (bool, Vec<String>) {
        let mut saver = Saver::default();
        if self.under == Under::Part {
            self.rig.must(&["gc", "--idle-days", "0"]);
        }
        if self.under == Under::Recover || point.starts_with("recover-") {
            self.crash(point);
        }
        let (users_state, before, tip) = (self.rig.users_state(), self.tree(), self.tip());
        let crashed = self.rig.path().join(".git/teddy/pending.json").exists();
        let witness = self.rig.beside("witness");
        let _ = std::fs::remove_file(&witness);
        let action = match fault {
            Fault::Kill => "return(kill)".to_owned(),
            Fault::Panic => "panic".to_owned(),
            Fault::Error => "return(error)".to_owned(),
            Fault::Edit => format!(
                "return(sh:{})",
                edit_script(self.rig, &witness, self.number).display()
            ),
        };
        let output = self.run(&format!("{point}=1*{action}"));
        let reached = match fault {
            Fault::Edit => witness.exists(),
            Fault::Kill => output.status.signal() == Some(9),
            Fault::Panic => output.status.code() == Some(101),
            Fault::Error => said(&output).contains(&format!("fault at `{point}`")),
        };
        if !reached {
            assert!(
                output.status.success(),
                "{point} {fault:?} {:?}: {}",
                self.under,
                said(&output)
            );
            return (false, Vec::new());
        }
        if fault == Fault::Edit {
            saver
                .saved
                .insert((CONTESTED.to_owned(), format!("user {}", self.number)));
        }
        let mut wrong = Vec::new();
        if fault == Fault::Error && !crashed && self.tip() == tip && self.tree() != before {
            wrong.push(format!(
                "G5 exit before the commit point, and the files are changed: {}",
                said(&output)
            ));
        }
        for _ in 0..2 {
            let recovered = self.rig.run(&["doctor", "--fix"]);
            if !recovered.status.success() {
                wrong.push(format!("G3 recover: {}", said(&recovered)));
            }
        }
        let expected = if self.is_interrupted() {
            before
        } else if crashed || self.tip() != tip {
            self.rig
                .git(&["rev-parse", &format!("{}^2^{{tree}}", self.tip())])
        } else {
            before
        };
        if fault != Fault::Edit && self.tree() != expected {
            wrong.push("G3 the files are neither as before nor as after".to_owned());
        }
        wrong.extend(verdict(self.rig, &saver, &users_state));
        let next = self.rig.plan("next", &["next.txt".to_owned()], None);
        let output = self.rig.run(&["execute", &next, "-y", "-s", "storm"]);
        if !output.status.success() {
            wrong.push(format!("G8 the next command: {}", said(&output)));
        }
        wrong.extend(self.find_all().filter(|_| self.under == Under::Part));
        (true, wrong)
    }
}

/// Writes a script that acts as the user: it saves the contested file and creates `witness`.
fn edit_script(rig: &Rig, witness: &Path, number: usize) -> std::path::PathBuf {
    let (content, script) = (rig.beside("content"), rig.beside("edit.sh"));
    std::fs::write(&content, body(&format!("user {number}"))).unwrap();
    let target = rig.path().join(CONTESTED);
    std::fs::write(
        &script,
        format!(
            "cp {} {}\ntouch {}\n",
            content.display(),
            target.display(),
            witness.display()
        ),
    )
    .unwrap();
    script
}

/// Outside of the `worlds` target, tries only every fifteenth point. The offset differs by command.
fn points(under: Under) -> impl Iterator<Item = &'static str> {
    sample(POINTS, 15, under as usize)
}

/// Tries every point. Returns those that the command reached.
fn matrix(under: Under) -> BTreeSet<&'static str> {
    let rig = Rig::new(env!("CARGO_BIN_EXE_teddy").as_ref(), 20);
    rig.must(&["new", "storm"]);
    rig.must(&[
        "execute",
        &rig.plan("first", &["d00/f02.txt".to_owned()], None),
        "-y",
    ]);
    let mut reached = BTreeSet::new();
    let mut wrong = Vec::new();
    let all = teddy::host::env::var("TEDDY_FAULTS").is_some_and(|which| which == "all");
    for (at, point) in points(under).enumerate() {
        // A panic and a kill both end the process without cleanup.
        let ends = [Fault::Kill, Fault::Panic];
        let faults = [ends[at % 2], Fault::Error, Fault::Edit, ends[(at + 1) % 2]];
        let one = (at + under as usize) % 3;
        for (nth, fault) in faults
            .into_iter()
            .enumerate()
            .filter(|(nth, _)| all || *nth == one)
        {
            // Gives a restore to turn 1 something to do.
            let files = [
                CONTESTED.to_owned(),
                "d00/f01.txt".to_owned(),
                "made/ground.txt".to_owned(),
            ];
            let output = rig.run(&[
                "execute",
                &rig.plan("ground", &files, None),
                "-y",
                "-s",
                "storm",
            ]);
            assert!(
                output.status.success(),
                "{under:?} before {point} {fault:?}: {wrong:#?}, {}",
                said(&output)
            );
            // An edit by the user, which TeDDy must record before it changes files.
            rig.write("own.md", format!("{at} {nth}\n").as_bytes());
            let case = Case {
                rig: &rig,
                under,
                number: at * 10 + nth,
            };
            let (came_by, found) = case.check(point, fault);
            wrong.extend(
                found
                    .into_iter()
                    .map(|what| format!("{point} {fault:?}: {what}")),
            );
            if came_by {
                reached.insert(point);
            }
        }
    }
    assert_eq!(wrong, [""; 0], "{under:?}");
    reached
}

/// Checks a command, which must reach every point except these: otherwise a point could go
/// untested.
fn check_all_but(under: Under, passed_by: &[&str]) {
    let reached = matrix(under);
    let passed_by: Vec<&str> = points(under)
        .filter(|point| passed_by.contains(point) || OF_A_LANDING.contains(point))
        .collect();
    let missed: Vec<_> = points(under)
        .filter(|point| !reached.contains(point))
        .collect();
    assert_eq!(missed, passed_by, "{under:?}");
}

/// Points that only a landing reaches. `land::faults` tries them.
pub const OF_A_LANDING: [&str; 5] = [
    "recover-landed",
    "after-commit",
    "before-branch",
    "after-branch",
    "after-index",
];

/// Points that only a model's answer reaches.
const OF_AN_ANSWER: [&str; 1] = ["after-answer"];

/// Points that only a plan without commands reaches.
const OF_A_PART: [&str; 2] = ["before-part", "after-part"];

/// Points that only commands in a checkout reach.
const OF_A_COPY: [&str; 1] = ["after-whole"];

/// Points that only commands in an overlay reach.
const OF_AN_OVERLAY: [&str; 2] = ["after-layer", "after-mount"];

/// Points that only a turn reaches that requests or executes a plan.
const OF_A_RUN: [&str; 15] = [
    "after-answer",
    "before-draft-ref",
    "before-worktree",
    "before-part",
    "after-part",
    "after-whole",
    "after-layer",
    "after-mount",
    "after-worktree",
    "before-action",
    "before-write",
    "after-write",
    "before-memos",
    "after-run",
    "after-run-snapshot",
];

#[test]
fn an_execution_survives_every_fault() {
    let of_others = match overlays() {
        true => &OF_A_COPY[..],
        false => &OF_AN_OVERLAY,
    };
    let missed = [&OF_AN_ANSWER[..], &OF_A_PART, of_others].concat();
    check_all_but(Under::Execute, &missed);
}

#[test]
fn an_execution_in_a_copy_survives_every_fault() {
    let missed = [&OF_AN_ANSWER[..], &OF_A_PART, &OF_AN_OVERLAY].concat();
    check_all_but(Under::Copy, &missed);
}

#[test]
fn a_part_of_a_worktree_survives_every_fault_and_is_never_taken_for_whole() {
    let of_commands = [
        "after-whole",
        "after-layer",
        "after-mount",
        "publish-before-delete",
        "publish-after-delete",
    ];
    check_all_but(Under::Part, &[&OF_AN_ANSWER[..], &of_commands].concat());
}

#[test]
fn a_restore_survives_every_fault() {
    check_all_but(Under::Restore, &OF_A_RUN);
}

#[test]
fn a_new_session_survives_every_fault() {
    // `new` does not write the user's files.
    let of_files = |point: &&str| {
        point.starts_with("publish-")
            || point.ends_with("snapshot-ref")
            || ["before-record", "before-intent"].contains(point)
    };
    let missed: Vec<&str> = POINTS
        .into_iter()
        .filter(|point| OF_A_RUN.contains(point) || of_files(point))
        .collect();
    check_all_but(Under::New, &missed);
}

#[test]
fn a_recovery_survives_every_fault() {
    // A recovery records no turn. It continues at the publication.
    let passed: Vec<&str> = POINTS
        .into_iter()
        .filter(|point| {
            !point.starts_with("recover-")
                && !point.starts_with("publish-")
                && !["after-lock", "before-clear"].contains(point)
        })
        .collect();
    check_all_but(Under::Recover, &passed);
}

/// Opens the contested file, and appends to it when the test says so.
const LATE: &str =
    "( exec 3>> $1; touch $2/open; while [ ! -e $2/go ]; do sleep 0.02; done; echo late >&3; touch $2/done ) < /dev/null > /dev/null 2>&1 &
while [ ! -e $2/open ]; do sleep 0.02; done
";

#[test]
#[cfg(target_os = "linux")]
fn a_file_opened_during_the_exchange_is_kept() {
    let rig = Rig::new(env!("CARGO_BIN_EXE_teddy").as_ref(), 20);
    rig.must(&["new", "storm"]);
    let target = rig.path().join(CONTESTED);
    for (number, point) in [
        "publish-prepared",
        "publish-before-exchange",
        "publish-after-exchange",
    ]
    .into_iter()
    .enumerate()
    {
        let case = Case {
            rig: &rig,
            under: Under::Execute,
            number,
        };
        std::fs::write(&target, body(&format!("before {number}"))).unwrap();
        let (signs, script) = (
            rig.beside(&format!("signs-{number}")),
            rig.beside("late.sh"),
        );
        std::fs::create_dir(&signs).unwrap();
        // After the exchange, the program finds and opens the displaced file.
        let opened = format!(
            "f=$(grep -ls 'before {number}' {0}/d00/.teddy-tmp-* {1} | head -1)\nset -- $f {2}\n",
            rig.path().display(),
            target.display(),
            signs.display()
        );
        std::fs::write(&script, opened + LATE).unwrap();
        let output = case.run(&format!("{point}=1*return(sh:{})", script.display()));
        assert_eq!(output.status.code(), Some(4), "{point}: {}", said(&output));
        assert!(
            said(&output).contains("is open for writing in another program"),
            "{point}: {}",
            said(&output)
        );
        std::fs::write(signs.join("go"), "").unwrap();
        while !signs.join("done").exists() {
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        let expected = [body(&format!("before {number}")), b"late\n".to_vec()].concat();
        assert_eq!(std::fs::read(&target).unwrap(), expected, "{point}");
        rig.must(&["restore", "@", "--theirs", "-y"]);
    }
}

#[test]
fn promise_d5_a_save_of_the_same_size_and_time_is_given_back() {
    let rig = Rig::new(env!("CARGO_BIN_EXE_teddy").as_ref(), 20);
    rig.must(&["new", "storm"]);
    let target = rig.path().join(CONTESTED);
    let saved = vec![b'x'; std::fs::read(&target).unwrap().len()];
    let (bytes, script) = (rig.beside("saved"), rig.beside("save.sh"));
    std::fs::write(&bytes, &saved).unwrap();
    let lines = format!(
        "touch -r {0} {1}.time\ncat {1} > {0}\ntouch -r {1}.time {0}\n",
        target.display(),
        bytes.display()
    );
    std::fs::write(&script, lines).unwrap();
    let plan = rig.plan("0", &[CONTESTED.to_owned()], None);
    let output = rig
        .teddy(&["execute", &plan, "-y", "-s", "storm"])
        .env(
            "FAILPOINTS",
            format!("publish-before-exchange=1*return(sh:{})", script.display()),
        )
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(4), "{}", said(&output));
    assert_eq!(std::fs::read(&target).unwrap(), saved);
}

/// Runs a plan that writes one file, and a script at a point of its publication.
fn write_beside(rig: &Rig, file: &str, point: &str, script: &str) -> Output {
    let path = rig.beside("meanwhile.sh");
    std::fs::write(&path, script).unwrap();
    let plan = rig.plan("0", &[file.to_owned()], None);
    let armed = format!("{point}=1*return(sh:{})", path.display());
    let mut command = rig.teddy(&["execute", &plan, "-y", "-s", "storm"]);
    command.env("FAILPOINTS", armed).output().unwrap()
}

#[test]
fn a_file_that_the_user_creates_first_is_kept() {
    let rig = Rig::new(env!("CARGO_BIN_EXE_teddy").as_ref(), 20);
    rig.must(&["new", "storm"]);
    let target = rig.path().join("d00/new.txt");
    let script = format!("echo mine > {}\n", target.display());
    let output = write_beside(&rig, "d00/new.txt", "publish-before-exchange", &script);
    assert_eq!(output.status.code(), Some(4), "{}", said(&output));
    assert_eq!(std::fs::read(&target).unwrap(), b"mine\n");
}

#[test]
fn the_newest_of_two_saves_keeps_the_name_and_the_other_one_is_kept() {
    let rig = Rig::new(env!("CARGO_BIN_EXE_teddy").as_ref(), 20);
    rig.must(&["new", "storm"]);
    let target = rig.path().join(CONTESTED);
    // One program writes to the file that was displaced, another one replaces ours.
    let script = format!(
        "for f in {0}/d00/.teddy-tmp-*; do echo late >> $f; done\necho newest > {0}/save\nmv {0}/save {1}\n",
        rig.path().display(),
        target.display()
    );
    let late = [std::fs::read(&target).unwrap(), b"late\n".to_vec()].concat();
    let output = write_beside(&rig, CONTESTED, "publish-after-exchange", &script);
    assert_eq!(output.status.code(), Some(4), "{}", said(&output));
    assert_eq!(std::fs::read(&target).unwrap(), b"newest\n");
    let rescued = rig.path().join(".git/teddy/undo/rescued");
    let kept = std::fs::read_dir(rescued)
        .unwrap()
        .map(|file| std::fs::read(file.unwrap().path()));
    assert_eq!(kept.map(Result::unwrap).collect::<Vec<_>>(), [late]);
}

#[test]
fn an_edit_between_a_crash_and_its_recovery_is_recorded_as_a_conflict() {
    let rig = Rig::new(env!("CARGO_BIN_EXE_teddy").as_ref(), 20);
    rig.must(&["new", "storm"]);
    let plan = rig.plan("0", &[CONTESTED.to_owned()], None);
    let output = rig
        .teddy(&["execute", &plan, "-y", "-s", "storm"])
        .env("FAILPOINTS", "publish-prepared=return(kill)")
        .output();
    assert!(!output.unwrap().status.success());
    rig.write(CONTESTED, b"mine\n");
    rig.must(&["doctor", "--fix"]);
    let read = || std::fs::read(rig.path().join(CONTESTED)).unwrap();
    assert_eq!(read(), b"mine\n");
    // The turn is not in the file yet, so it can still be applied.
    rig.must(&["restore", "@", "--theirs", "-y", "-s", "storm"]);
    assert_eq!(read(), body(&format!("turn 0 {CONTESTED}")));
}

#[test]
fn a_turn_finishes_the_one_that_was_killed_beside_it() {
    let rig = Rig::new(env!("CARGO_BIN_EXE_teddy").as_ref(), 20);
    rig.must(&["new", "other"]);
    rig.must(&["new", "storm"]);
    let other = rig.beside("other.md");
    std::fs::copy(rig.plan("1", &["d00/f01.txt".to_owned()], None), &other).unwrap();
    let (plan, script) = (
        rig.plan("0", &[CONTESTED.to_owned()], None),
        rig.beside("kill.sh"),
    );
    let lines = format!(
        "FAILPOINTS='publish-prepared=return(kill)' {} execute {} -y -s other\ntrue\n",
        rig.teddy.display(),
        other.display()
    );
    std::fs::write(&script, lines).unwrap();
    let output = rig
        .teddy(&["execute", &plan, "-y", "-s", "storm"])
        .env(
            "FAILPOINTS",
            format!("before-action=1*return(sh:{})", script.display()),
        )
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    for (file, tag) in [(CONTESTED, "0"), ("d00/f01.txt", "1")] {
        let bytes = std::fs::read(rig.path().join(file)).unwrap();
        assert_eq!(bytes, body(&format!("turn {tag} {file}")));
    }
}

#[test]
fn a_folder_that_is_moved_away_meanwhile_takes_nothing_of_ours_with_it() {
    let rig = Rig::new(env!("CARGO_BIN_EXE_teddy").as_ref(), 20);
    rig.must(&["new", "storm"]);
    let points = [
        "publish-prepared",
        "publish-before-delete",
        "publish-after-delete",
        "publish-before-exchange",
        "publish-after-exchange",
    ];
    for (number, point) in points.into_iter().enumerate() {
        let (folder, moved) = (rig.path().join("d00"), rig.path().join("moved"));
        std::fs::write(folder.join("gone.txt"), body(&format!("gone {number}"))).unwrap();
        let before = std::fs::read(folder.join("f01.txt")).unwrap();
        let plan = rig.plan(
            &format!("{number}"),
            &[CONTESTED.to_owned(), "d00/f01.txt".to_owned()],
            Some("rm d00/gone.txt"),
        );
        let script = rig.beside("move.sh");
        std::fs::write(
            &script,
            format!("mv {} {}\n", folder.display(), moved.display()),
        )
        .unwrap();
        let armed = format!("{point}=1*return(sh:{})", script.display());
        let output = rig
            .teddy(&["execute", &plan, "-y", "-s", "storm"])
            .env("FAILPOINTS", armed)
            .output()
            .unwrap();
        assert!(
            matches!(output.status.code(), Some(0 | 4)),
            "{point}: {}",
            said(&output)
        );
        let names = |folder: &Path| {
            std::fs::read_dir(folder)
                .into_iter()
                .flatten()
                .map(|entry| entry.unwrap().file_name())
                .collect::<Vec<_>>()
        };
        let ours = |folder: &Path| {
            names(folder)
                .iter()
                .any(|name| name.to_string_lossy().starts_with(".teddy-tmp-"))
        };
        assert!(
            !ours(&moved) && !ours(&folder),
            "{point}: {:?} {:?}",
            names(&moved),
            names(&folder)
        );
        let after = std::fs::read(moved.join("f01.txt")).unwrap();
        assert!(after == before || tag_of(&after).is_some(), "{point}");
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::rename(&moved, &folder).unwrap();
        assert_eq!(
            verdict(&rig, &Saver::default(), &rig.users_state()),
            [""; 0],
            "{point}"
        );
    }
}

#[test]
fn an_interrupt_before_the_ref_changes_nothing_and_after_it_finishes() {
    let rig = Rig::new(env!("CARGO_BIN_EXE_teddy").as_ref(), 20);
    rig.must(&["new", "storm"]);
    for (number, (point, ending)) in [
        ("before-record", "nothing"),
        ("after-run", "interrupted"),
        ("after-intent", "interrupted"),
        ("after-ref", "executed"),
        ("publish-prepared", "executed"),
    ]
    .iter()
    .enumerate()
    {
        let case = Case {
            rig: &rig,
            under: Under::Execute,
            number,
        };
        let (before, tip) = (case.tree(), case.tip());
        let output = case.run(&format!("{point}=1*return(interrupt)"));
        assert_eq!(
            output.status.code(),
            Some(130),
            "{point}: {}",
            said(&output)
        );
        assert_eq!(case.tip() != tip, *ending != "nothing", "{point}");
        assert_eq!(case.is_interrupted(), *ending == "interrupted", "{point}");
        let expected = if *ending == "executed" {
            rig.git(&["rev-parse", "teddy/sessions/storm^2^{tree}"])
        } else {
            before
        };
        assert_eq!(case.tree(), expected, "{point}");
        assert!(
            !rig.path().join(".git/teddy/pending.json").exists(),
            "{point}"
        );
    }
}
