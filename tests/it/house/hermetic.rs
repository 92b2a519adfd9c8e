//! The tests don't depend on the machine: some of them run in a hostile environment.

use std::fmt::Write as _;
use std::process::Command;

use crate::support::{Output, TestRepo, skipped};

/// Tests that read git configuration, attributes, the environment or the temporary directory.
const PART: [&str; 5] = [
    "turn::execute::",
    "turn::plan::",
    "files::record::",
    "hostile::private_git::commands_commit_large_files",
    "look::history::",
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
    let output = Output::of(command.current_dir(env!("CARGO_MANIFEST_DIR")));
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
    assert!(passed > 50, "only {passed} tests ran: {output}");
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
