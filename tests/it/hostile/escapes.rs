//! TeDDy ends every process that a command starts, however it hides.
//!
//! CI also runs this module as root.

use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};

use super::ground::{Ground, plan, run};
use crate::support::{PATIENCE, sample};

/// Creates `$1`, then appends to a file of the worktree until it is killed.
const LIFE: &str = ": > \"$1\"\nwhile :; do echo x >> late.txt; sleep 0.05; done\n";
/// Forks a binary tree of depth `$2`, in which every process stays alive.
const BUSH: &str = ": > \"$1\"\n[ $2 = 0 ] || { setsid sh bush.sh \"$1\" $(($2 - 1)) $3 & setsid sh bush.sh \"$1\" $(($2 - 1)) $3 & }\nwhile :; do sleep 1; done\n";
/// Forks and exits in a loop, faster than `/proc` can be listed.
const CHAIN: &str = "import os, sys\nos.setsid()\nopen(sys.argv[1], 'w').close()\nwhile True:\n    if os.fork():\n        os._exit(0)\n";
/// A process stopped by its tracer, which sleeps.
const TRACED: &str = "import ctypes, os, signal, sys, time\nlibc = ctypes.CDLL(None)\nos.setsid()\nif os.fork():\n    os.waitpid(-1, os.WUNTRACED)\n    open(sys.argv[1], 'w').close()\n    time.sleep(3600)\nlibc.ptrace(0, 0, 0, 0)\nos.kill(os.getpid(), signal.SIGSTOP)\ntime.sleep(3600)\n";
/// A child subreaper (`prctl` 36) with an orphan.
const REAPER: &str = "import ctypes, os, sys, time\nctypes.CDLL(None).prctl(36, 1, 0, 0, 0)\nif os.fork() == 0:\n    if os.fork() == 0:\n        os.setsid()\n        open(sys.argv[1], 'w').close()\n        time.sleep(3600)\n    os._exit(0)\ntime.sleep(3600)\n";

/// Ways to outlive a command, and the program that each needs. The process creates `BEGUN` and has
/// the argument `TOKEN`.
pub const ESCAPES: &[(&str, &str)] = &[
    ("sh", "sh life.sh BEGUN TOKEN &"),
    (
        "setsid",
        "env -i PATH=\"$PATH\" setsid sh life.sh BEGUN TOKEN &",
    ),
    (
        "setsid",
        "(setsid sh -c '(setsid sh life.sh \"$0\" TOKEN &) &' BEGUN &)",
    ),
    (
        "nohup",
        "nohup sh life.sh BEGUN TOKEN > /dev/null 2>&1 < /dev/null &",
    ),
    (
        "setsid",
        "trap '' TERM HUP INT; setsid sh life.sh BEGUN TOKEN &",
    ),
    (
        "setsid",
        "setsid sh life.sh BEGUN TOKEN & until [ -e BEGUN ]; do :; done; kill -STOP $!",
    ),
    (
        "unshare",
        "unshare -U -p -f setsid sh life.sh BEGUN TOKEN || sh life.sh BEGUN TOKEN &",
    ),
    ("setsid", "setsid sh bush.sh BEGUN 6 TOKEN &"),
    ("python3", "python3 chain.py BEGUN TOKEN &"),
    ("python3", "python3 traced.py BEGUN TOKEN &"),
    ("python3", "setsid python3 reaper.py BEGUN TOKEN &"),
];

pub fn ground() -> Ground {
    let ground = Ground::new();
    ground
        .repo
        .put("life.sh", LIFE)
        .put("bush.sh", BUSH)
        .put("chain.py", CHAIN)
        .put("traced.py", TRACED)
        .put("reaper.py", REAPER);
    ground
}

/// A unique argument that marks processes. Dropping it kills them, so that a failed test leaves
/// none behind.
pub struct Token(pub String);

impl Token {
    pub fn new() -> Token {
        Token(format!("token-{}", uuid::Uuid::now_v7()))
    }

    /// Returns the live processes that have the token.
    pub fn living(&self) -> Vec<i32> {
        let numbers = std::fs::read_dir("/proc").unwrap().filter_map(|entry| {
            let name = entry.unwrap().file_name();
            name.to_str()?.parse::<i32>().ok()
        });
        let has_token = |pid: &i32| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains(&self.0)
        };
        numbers.filter(has_token).collect()
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            let left = self.living();
            if left.is_empty() {
                return;
            }
            for pid in left.into_iter().filter_map(Pid::from_raw) {
                let _ = kill_process(pid, Signal::KILL);
            }
        }
    }
}

/// Returns a command that starts an escape, waits until it runs, then continues with `then`.
pub fn escape(how: &str, token: &Token, then: &str) -> String {
    let begun = format!("\"$TMPDIR/begun-{}\"", token.0);
    let started = how.replace("BEGUN", &begun).replace("TOKEN", &token.0);
    format!("{started}\nuntil [ -e {begun} ]; do sleep 0.01; done\n{then}")
}

/// Tries escapes with extra arguments and variables. Returns those that survived.
fn survivors<'a>(
    escapes: impl IntoIterator<Item = &'a (&'static str, &'static str)>,
    arguments: &[&str],
    variables: &[(&str, &str)],
) -> Vec<String> {
    let mut wrong = Vec::new();
    let there = |program: &str| teddy::host::process::find(program).is_some();
    let escapes = escapes.into_iter().filter(|(program, _)| there(program));
    let ground = ground();
    for (_, how) in escapes {
        let token = Token::new();
        let text = plan(&run(&escape(how, &token, "true")));
        std::fs::write(ground.repo.beside("plan.md"), text).unwrap();
        let all = [
            &["execute", "../plan.md", "-y", "--no-replan"][..],
            arguments,
        ]
        .concat();
        let output = ground.teddy_with(&all, variables);

        let left = token.living();
        if !left.is_empty() || output.status.code() != Some(0) {
            let words = super::ground::words(&output);
            wrong.push(format!("{how}: {left:?} live on; {words}"));
        }
    }
    wrong
}

#[test]
fn attack_7_nothing_that_a_confined_command_starts_outlives_it() {
    // A namespace ends whatever is in it, so half of them are tried.
    assert_eq!(
        survivors(sample(ESCAPES, 2, 0), &[], &[]),
        Vec::<String>::new()
    );
}

#[test]
fn attack_7_nothing_that_a_free_command_starts_outlives_it() {
    assert_eq!(
        survivors(ESCAPES, &["-c", "execute.sandbox=off"], &[]),
        Vec::<String>::new()
    );
}

#[test]
fn attack_7_old_kernels_end_everything_too() {
    let kernels = [
        "no-namespaces=return",
        "landlock=return(5)",
        "no-proc-children=return;landlock=return(5)",
    ];
    for (number, kernel) in kernels.into_iter().enumerate() {
        // Each escape on each kernel, or on one of them.
        let escapes = sample(ESCAPES, kernels.len(), number);
        assert_eq!(
            survivors(escapes, &[], &[("FAILPOINTS", kernel)]),
            Vec::<String>::new(),
            "{kernel}"
        );
    }
}
