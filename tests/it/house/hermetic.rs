//! The tests don't depend on the machine: some of them run in a hostile environment.

use std::fmt::Write as _;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process};

use crate::support::container::{containers, without};
use crate::support::source::files;
use crate::support::{Output, PATIENCE, TestRepo, skip_reporter, skipped, watchdog};

/// Tests that read git configuration, attributes, the environment or the temporary directory, or that
/// interrupt a program.
const PART: [&str; 4] = [
    "cli::catalogue::turns::a_run_that_is_interrupted",
    "turn::plan::",
    "files::record::",
    "hostile::private_git::commands_commit_large_files",
];
/// Breaks any test that reads it.
const GIT_CONFIG: &str = r#"
[user]
	name = System
	email = system@localhost
[core]
	hooksPath = /nonexistent/hooks
	pager = false
	editor = false
	autocrlf = true
	excludesFile = /nonexistent/ignore
	quotePath = false
[init]
	defaultBranch = system
	templateDir = /nonexistent/templates
[commit]
	gpgSign = true
[tag]
	gpgSign = true
[gpg]
	program = /nonexistent/gpg
[merge]
	conflictStyle = zdiff3
[diff]
	external = /nonexistent/diff
	noprefix = true
[status]
	short = true
[color]
	ui = always
[log]
	showSignature = true
[alias]
	status = !exit 66
[url "/nonexistent/"]
	insteadOf = file://
[filter "lfs"]
	clean = /nonexistent/lfs clean %f
	smudge = /nonexistent/lfs smudge %f
	process = /nonexistent/lfs process
	required = true
"#;
const GIT_ATTRIBUTES: &str = "* text eol=crlf filter=lfs\n";
/// Mounts hostile system files in a mount namespace, then runs a command.
const ON_ANOTHER_MACHINE: &str = r#"
set -e
for etc in /etc /usr/local/etc; do
    test -d "$etc" || continue
    copy="$MACHINE$etc"
    mkdir -p "$copy"
    cp -a "$etc/." "$copy" 2> /dev/null || true
    cp "$MACHINE/gitconfig" "$MACHINE/gitattributes" "$copy"
    mount --bind "$copy" "$etc"
done
umask 077
# As in a job that a script starts in the background.
trap '' INT
exec "$@"
"#;

/// Returns a command that runs its arguments with hostile system files. `None` if this process
/// cannot mount.
fn on_another_machine(repo: &TestRepo) -> Option<Command> {
    let machine = repo.beside("machine");
    std::fs::create_dir(&machine).unwrap();
    std::fs::write(machine.join("gitconfig"), GIT_CONFIG).unwrap();
    std::fs::write(machine.join("gitattributes"), GIT_ATTRIBUTES).unwrap();

    let start = |arguments: &[&str]| {
        let mut command = repo.command("unshare");
        command.env("MACHINE", &machine).arg("--mount");
        // Unprivileged users can only mount in a user namespace.
        if !rustix::process::geteuid().is_root() {
            command.args(["--user", "--map-root-user"]);
        }
        command.args(["sh", "-c", ON_ANOTHER_MACHINE, "sh"]);
        command.args(arguments);
        command
    };
    let works = start(&["true"])
        .output()
        .is_ok_and(|output| output.status.success());
    works.then(|| start(&["env"]))
}

#[test]
fn the_suite_passes_whatever_the_machine_is_like() {
    let repo = TestRepo::new();
    let temporary = repo.beside("a temporary directory");
    std::fs::create_dir(&temporary).unwrap();
    let mut command = on_another_machine(&repo).unwrap_or_else(|| {
        skipped("system files of another machine: no mount namespace can be made");
        repo.command("env")
    });

    for name in ["GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_GLOBAL", "HOME"] {
        command.env_remove(name);
    }
    for (name, value) in [
        ("TMPDIR", temporary.to_str().unwrap()),
        // Otherwise insta asks cargo, which another user can be unable to start.
        ("INSTA_WORKSPACE_ROOT", env!("CARGO_MANIFEST_DIR")),
        ("GIT_DIR", "/nonexistent/git"),
        ("GIT_INDEX_FILE", "/nonexistent/index"),
        ("GIT_EDITOR", "false"),
        ("GIT_AUTHOR_NAME", "Someone"),
        ("XDG_CONFIG_HOME", "/dev/null/config"),
        ("XDG_CACHE_HOME", "/dev/null/cache"),
        ("XDG_DATA_HOME", "/dev/null/data"),
        ("LC_ALL", "tr_TR.UTF-8"),
        ("LANGUAGE", "tr"),
        ("TZ", "Pacific/Kiritimati"),
        ("TERM", "unheard-of"),
        ("COLORTERM", "truecolor"),
        ("CLICOLOR_FORCE", "1"),
        ("COLUMNS", "20"),
        ("PAGER", "false"),
        ("EDITOR", "false"),
        ("http_proxy", "http://127.0.0.1:9"),
        ("ALL_PROXY", "http://127.0.0.1:9"),
        ("SSH_AUTH_SOCK", "/nonexistent/agent"),
        ("GPG_AGENT_INFO", "/nonexistent/gpg"),
        ("OPENAI_API_KEY", "not-a-key"),
        ("TEDDY_MODEL", "not-a-model"),
        ("TEDDY_SESSION", "not-a-session"),
        ("TEDDY_CONFIG", "/nonexistent/teddy.yaml"),
    ] {
        command.env(name, value);
    }

    command.arg(std::env::current_exe().unwrap()).args(PART);
    command
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    // As long as several tests.
    let output = Output::wait_for(command.spawn().unwrap(), &command, 8 * PATIENCE);
    let mut failed = String::new();
    for line in output
        .stdout
        .lines()
        .filter(|line| line.ends_with("... FAILED"))
    {
        writeln!(failed, "{line}").unwrap();
    }
    assert_eq!(output.code, 0, "{failed}{output}");
    let passed = output.stdout.matches("... ok").count();
    assert!(passed > 30, "only {passed} tests ran: {output}");
}

#[test]
fn commands_and_teddy_read_the_same_git_configuration() {
    let repo = TestRepo::new()
        .file(".gitattributes", "*.up filter=up\n")
        .file("a.up", "text\n");
    repo.commit("init");
    let config = |name: &str, settings: &str| {
        let path = repo.beside(name);
        std::fs::write(&path, settings).unwrap();
        path
    };
    let upper = "[filter \"up\"]\n\tclean = tr a-z A-Z\n\tsmudge = tr A-Z a-z\n";
    let (filter, empty) = (config("filter", upper), config("empty", ""));
    let plan = crate::plans::plan(
        "Add",
        &[crate::plans::execute(
            "echo new > b.up; git add b.up; git show :b.up",
        )],
    );

    for (number, (system, ignores_system, global, cleaned)) in [
        (&empty, false, &filter, true),
        (&filter, false, &empty, true),
        (&filter, true, &empty, false),
        (&empty, true, &empty, false),
    ]
    .into_iter()
    .enumerate()
    {
        let mut command = repo.teddy_command(&["-s", &format!("s{number}"), "execute", "-", "-y"]);
        command.env_remove("GIT_CONFIG_NOSYSTEM");
        command
            .env("GIT_CONFIG_SYSTEM", system)
            .env("GIT_CONFIG_GLOBAL", global);
        if ignores_system {
            command.env("GIT_CONFIG_NOSYSTEM", "true");
        }
        repo.done(&["new", &format!("s{number}")]);
        let output = repo.reads(command, &plan);
        assert_eq!(output.code, 0, "{number}: {output}");

        let expected = if cleaned { "NEW\n" } else { "new\n" };
        let printed = repo.done(&["-s", &format!("s{number}"), "show", "@", "output/01.txt"]);
        assert_eq!(printed, expected, "{number}: git in the command");
        let recorded = repo.git(&["show", &format!("teddy/sessions/s{number}^2:b.up")]);
        assert_eq!(recorded, expected.trim_end(), "{number}: TeDDy");
        repo.remove("b.up");
    }
}

#[test]
fn a_program_that_hangs_is_ended_and_named() {
    let repo = TestRepo::new();
    let mut command = repo.command("sleep");
    let child = command.arg("600").stdout(Stdio::piped()).spawn().unwrap();
    let pid = Pid::from_child(&child);
    let limit = Duration::from_millis(100);
    let wait = AssertUnwindSafe(|| Output::wait_for(child, &command, limit));
    let panic = std::panic::catch_unwind(wait).unwrap_err();
    let message = panic.downcast_ref::<String>().unwrap();
    assert!(message.starts_with("hangs for 100ms: "), "{message}");
    assert!(message.ends_with("\"sleep\" \"600\""), "{message}");
    while test_kill_process(pid).is_ok() {
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}

/// Runs a test of this module again with a limit of 100 ms, and calls `hang` there. Returns what the
/// run wrote to stderr.
#[expect(clippy::disallowed_methods, reason = "tests pin the environment")]
fn run_of_a_test_that_hangs(name: &str, hang: fn()) -> String {
    let repo = TestRepo::new();
    if std::env::var_os(watchdog::VARIABLE).is_some() {
        hang();
    }
    let mut command = repo.command(std::env::current_exe().unwrap().to_str().unwrap());
    command
        .args(["--exact", name])
        .env(watchdog::VARIABLE, "100");
    let output = Output::of(&mut command);
    assert_eq!(output.code, -1, "{output}");
    output.stderr
}

#[test]
fn a_test_with_an_endless_loop_is_ended_and_named() {
    let name = "house::hermetic::a_test_with_an_endless_loop_is_ended_and_named";
    let stderr = run_of_a_test_that_hangs(name, || {
        loop {
            std::hint::spin_loop();
        }
    });
    // On a busy machine, it has less CPU time when the limit by the clock ends it.
    let [cpu, clock] =
        ["100ms of CPU time", "1s"].map(|limit| format!("test {name} hangs: more than {limit}\n"));
    assert!(stderr == cpu || stderr == clock, "{stderr}");
}

#[test]
fn a_test_that_waits_forever_is_ended_and_named() {
    let name = "house::hermetic::a_test_that_waits_forever_is_ended_and_named";
    let stderr = run_of_a_test_that_hangs(name, || {
        loop {
            std::thread::park();
        }
    });
    assert_eq!(stderr, format!("test {name} hangs: more than 1s\n"));
}

#[test]
fn what_is_skipped_is_named_on_one_line_at_the_end() {
    let mut reporter = skip_reporter(Stdio::piped());
    let mut input = reporter.stdin.take().unwrap();
    write!(input, "python3\nbash\npython3\n").unwrap();
    drop(input);
    let output = Output::from(reporter.wait_with_output().unwrap());
    assert_eq!(output.stderr, "skipped: bash; python3\n");
}

/// Bug: what a test printed was hidden, because a test that is skipped passes.
#[test]
fn every_test_that_is_skipped_is_noted() {
    let printed = ["print", "ln!(\"skipped"].concat();
    let found = files("tests", ".rs").into_iter();
    let found = found.filter(|file| {
        file.text
            .split_whitespace()
            .collect::<String>()
            .contains(&printed)
    });
    assert_eq!(found.map(|file| file.path).collect::<Vec<_>>(), [""; 0]);
}

/// Tests that need namespaces, of three modules.
const NEED_NAMESPACES: [&str; 3] = [
    "worktree::same_view::a_turn_and_its_replay_run_the_project_s_own_environment",
    "worktree::overlay_refused::a_cache_on_another_file_system_is_used_as_any_other",
    "agents::acp::commands_and_agents_behind_it_see_the_ignored_files_at_the_path_of_the_checkout",
];

#[test]
fn without_namespaces_the_tests_that_need_them_are_skipped_and_named() {
    let repo = TestRepo::new();
    if !containers(&repo) {
        return;
    }
    let mut tests = repo.command(std::env::current_exe().unwrap().to_str().unwrap());
    tests.args(["--exact", "-q"]).args(NEED_NAMESPACES);
    let out = Output::of(&mut without("namespaces", &repo, &tests));
    assert_eq!(out.code, 0, "{out}");
    assert!(out.stdout.contains("3 passed"), "{out}");
    let named = format!(
        "skipped: `unshare {}` is not possible here; no overlays here\n",
        unshare()
    );
    assert_eq!(out.stderr, named, "{out}");
}

/// Options with which this user could mount.
fn unshare() -> &'static str {
    match rustix::process::geteuid().is_root() {
        true => "-m",
        false => "-Urm",
    }
}

/// Returns the processes and mounts that belong to a temporary directory.
fn remains(temporary: &Path) -> Vec<String> {
    let has = |bytes: Vec<u8>| {
        let name = temporary.as_os_str().as_bytes();
        bytes.windows(name.len()).any(|part| part == name)
    };
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let read = |file: &str| std::fs::read(entry.path().join(file)).unwrap_or_default();
        // A process that only waits to be reaped has no command line.
        if !read("cmdline").is_empty() && (has(read("environ")) || has(read("mountinfo"))) {
            found.push(String::from_utf8_lossy(&read("cmdline")).into_owned());
        }
    }
    found
}

#[test]
fn a_run_that_is_stopped_leaves_no_process_and_no_mount() {
    let repo = TestRepo::new();
    let temporary = repo.beside("temporary");
    std::fs::create_dir(&temporary).unwrap();
    let mut command = repo.command(std::env::current_exe().unwrap().to_str().unwrap());
    command
        .args([
            "hostile::processes",
            "worktree::overlay::",
            "turn::unattended",
        ])
        .env("TMPDIR", &temporary)
        .env("INSTA_WORKSPACE_ROOT", env!("CARGO_MANIFEST_DIR"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0);
    let mut child = command.spawn().unwrap();
    let begun = Instant::now();
    // More than the test program itself.
    while remains(&temporary).len() < 4 {
        assert!(begun.elapsed() < PATIENCE, "no test started");
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    kill_process_group(Pid::from_child(&child), Signal::INT).unwrap();
    child.wait().unwrap();
    let stopped = Instant::now();
    while !remains(&temporary).is_empty() {
        let left = stopped.elapsed() < PATIENCE;
        assert!(left, "{:#?}", remains(&temporary));
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}
