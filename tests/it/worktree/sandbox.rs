//! Scripts in the sandbox of the running kernel.
//!
//! CI also runs this module as root.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use teddy::host::sandbox::{Availability, Network, Policy, availability, describe};
use teddy::host::shell::{Script, ScriptEnd, run_until};

use crate::worktree::shell::launcher;

/// A project with a worktree to run in and a home directory with a secret.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Place {
        Place::at(tempfile::tempdir().unwrap())
    }

    fn at(folder: tempfile::TempDir) -> Place {
        let place = Place { folder };
        for name in ["work", "home/.ssh", "home/src", "cache"] {
            fs::create_dir_all(place.path(name)).unwrap();
        }
        fs::write(place.path("home/.ssh/id"), "secret").unwrap();
        fs::write(place.path("home/src/a"), "open").unwrap();
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn policy(&self) -> Policy {
        Policy {
            write: vec![self.path("work"), self.path("cache"), "/dev/null".into()],
            hidden: vec![self.path("home/.ssh"), self.path("home/missing")],
            ..Policy::default()
        }
    }

    /// Returns exit code and output.
    fn run(&self, policy: Option<Policy>, text: &str) -> (ScriptEnd, String) {
        let mut script = Script::new(text, self.path("work"));
        script.launcher = Some(launcher(policy));
        script.env = vec![("HOME".to_owned(), self.path("home").display().to_string())];
        let finished = run_until(&script, &AtomicBool::new(false), &mut |_| ()).unwrap();
        let output = String::from_utf8(finished.output.joined()).unwrap();
        (finished.end, output)
    }

    /// Compares the output under the usual policy.
    fn check(&self, text: &str, expected: &str) {
        let (end, output) = self.run(Some(self.policy()), text);
        assert_eq!(
            (
                output
                    .replace(&self.folder.path().display().to_string(), "DIR")
                    .as_str(),
                end
            ),
            (expected, ScriptEnd::Exited(0))
        );
    }
}

#[test]
fn this_kernel_enforces_everything() {
    assert_eq!(availability(), Availability::Full);
    assert_eq!(describe(Some(&Policy::default())), "sandboxed, no network");
    assert_eq!(describe(None), "not sandboxed");
}

#[test]
fn a_script_writes_where_it_may() {
    let place = Place::new();
    place
        .check("echo a > x; mkdir d; mv x d/y; cat d/y; echo b > ../cache/c; echo n > /dev/null; echo t > $TMPDIR/t && echo ok", "a\nok\n");
    assert_eq!(fs::read(place.path("cache/c")).unwrap(), b"b\n");
}

#[test]
fn a_script_renames_and_links_in_its_folders_and_moves_across_them() {
    // `ln` has no fallback. `mv` copies from one mount to another.
    Place::new().check(
        "mkdir d e && echo a > d/x && ln d/x e/y && mv e/y ../cache/z && cat ../cache/z",
        "a\n",
    );
}

/// Landlock denies; without it, a read-only mount does.
fn is_refusal(line: &str) -> bool {
    ["ermission denied", "Read-only file system"]
        .iter()
        .any(|why| line.contains(why))
}

#[test]
fn a_script_writes_nowhere_else() {
    let place = Place::new();
    let text = "exec 2>&1; echo x > ../home/new; echo x >> ../home/src/a; rm -rf ../home/src; mkdir ../new; ln -s x ../link; mv ../cache ../c2; true";
    let (end, output) = place.run(Some(place.policy()), text);
    assert_eq!(
        (end, output.lines().filter(|line| is_refusal(line)).count()),
        (ScriptEnd::Exited(0), 6),
        "{output}"
    );
    assert_eq!(fs::read(place.path("home/src/a")).unwrap(), b"open");
    assert_eq!(fs::read_dir(place.folder.path()).unwrap().count(), 3);
}

#[test]
fn hidden_files_are_not_read_through_any_name() {
    let place = Place::new();
    std::os::unix::fs::symlink(place.path("home/.ssh"), place.path("home/keys")).unwrap();
    let text = "cat ../home/src/a; echo; for f in ../home/.ssh/id ../home/keys/id; do cat $f 2> /dev/null || echo no; done; ls ../home/src";
    place.check(text, "open\nno\nno\na\n");
}

#[test]
fn read_wins_over_hidden() {
    let place = Place::new();
    let policy = Policy {
        hidden: vec![place.path("home")],
        read: vec![place.path("home/src")],
        ..place.policy()
    };
    let (_, output) = place.run(
        Some(policy),
        "cat ../home/src/a; cat ../home/.ssh/id 2> /dev/null || echo no",
    );
    assert_eq!(output, "openno\n");
}

#[test]
fn in_an_add_only_tree_nothing_is_removed() {
    let place = Place::new();
    let policy = Policy {
        add: vec![place.path("home/src")],
        ..place.policy()
    };
    let text = "cd ../home/src; mkdir d && echo new > d/f && cat d/f; rm -f a 2> /dev/null; mv a b 2> /dev/null; rm -rf . 2> /dev/null; cat a d/f";
    assert_eq!(
        place.run(Some(policy), text),
        (ScriptEnd::Exited(0), "new\nopennew\n".to_owned())
    );
}

#[test]
fn without_network_a_script_has_one_of_its_own() {
    let place = Place::new();
    let probe = format!(
        "SANDBOX_PROBE=1 '{}' -q --nocapture --exact {PROBE} | grep can",
        std::env::current_exe().unwrap().display()
    );
    let probe = probe.replace(
        "/proc/self/exe",
        &fs::read_link("/proc/self/exe")
            .unwrap()
            .display()
            .to_string(),
    );
    let on = Policy {
        network: Network::On,
        ..place.policy()
    };
    assert_eq!(
        place.run(Some(on), &probe).1,
        "can listen\ncan send\ncan pair\ncan connect\n"
    );
    // No local socket can be reached where the policy names no directory for them.
    place.check(&probe, "can listen\ncan send\ncan pair\n");
}

/// Bug: nothing else could be made in such a directory, so Python's `multiprocessing` failed.
#[test]
fn only_the_project_stays_in_a_private_directory() {
    let memory = PathBuf::from("/dev/shm");
    let Ok(folder) = tempfile::tempdir_in(&memory) else {
        return crate::support::skipped("no shared memory here");
    };
    let place = Place::at(folder);
    fs::write(place.path("work/a"), "mine\n").unwrap();
    let policy = Policy {
        read: vec![place.path("home/src/a")],
        private: vec![memory.clone()],
        hidden: vec![place.path("home"), place.path("")],
        ..place.policy()
    };
    let text = "cat a ../home/src/a; echo; echo $(ls ..; ls ../home; ls /dev/shm)
        echo own > /dev/shm/own && cat /dev/shm/own; echo b > b
        (echo x > ../home/src/a) 2> /dev/null || echo refused";
    let (end, output) = place.run(Some(policy), text);
    assert_eq!(end, ScriptEnd::Exited(0));
    // Names that begin with a dot are not listed.
    assert_eq!(output, "mine\nopen\ncache home work src\nown\nrefused\n");
    assert_eq!(fs::read(place.path("work/b")).unwrap(), b"b\n");
    assert!(!memory.join("own").exists());
}

/// The test below.
const PROBE: &str = "worktree::sandbox::the_test_program_is_a_probe";

/// Started as a probe, prints which sockets it can create. Otherwise does nothing.
#[test]
fn the_test_program_is_a_probe() {
    if teddy::host::env::is_set("SANDBOX_PROBE") {
        use std::os::unix::net::{UnixListener, UnixStream};
        let listener = UnixListener::bind("socket").expect("a local socket can be made");
        let results = [
            ("listen", std::net::TcpListener::bind("127.0.0.1:0").is_ok()),
            ("send", std::net::UdpSocket::bind("[::1]:0").is_ok()),
            ("pair", UnixStream::pair().is_ok()),
            ("connect", UnixStream::connect("socket").is_ok()),
        ];
        drop(listener);
        let _ = fs::remove_file("socket");
        results
            .iter()
            .filter(|(_, can)| *can)
            .for_each(|(what, _)| println!("can {what}"));
    }
}

#[test]
fn other_processes_are_out_of_reach() {
    let place = Place::new();
    let pid = std::process::id();
    place.check(&format!("kill -0 {pid} 2> /dev/null || echo no; cat /proc/{pid}/environ > /dev/null 2>&1 || echo no"), "no\nno\n");
}

#[test]
fn a_script_has_no_terminal_and_its_own_session() {
    let place = Place::new();
    for policy in [None, Some(place.policy())] {
        let (_, output) =
            place.run(policy, "sh -c ': > /dev/tty' 2> /dev/null || echo none; [ $(cut -d' ' -f6 /proc/$$/stat) = $PPID ] && echo own");
        assert_eq!(output, "none\nown\n");
    }
}

#[test]
fn pipes_and_descriptors_work_inside() {
    let place = Place::new();
    place.check(
        "echo a | cat; echo b > /dev/stderr; echo c > /dev/stdout; sh -c 'echo d'",
        "a\nb\nc\nd\n",
    );
}
