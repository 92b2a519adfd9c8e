//! Benchmarks fetches from a server with many sessions, relative to git on the same server.
//!
//! `cargo bench --bench server` creates a bare repository with 100,000 sessions (about 200 MB),
//! serves it on loopback with `git daemon`, prints a table and fails if a required ratio is
//! exceeded. An argument after `--` changes the number of sessions.
#![allow(clippy::unwrap_used, reason = "a bench fails where it must")]

mod support;

use std::fmt::Write as _;
use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use support::{Row, Workspace, apart, head, run, sample, teddy};

const FILES: usize = 200;
const SAMPLES: usize = 21;
const PLAN: &str = "# Change files\n\n## Rationale\n```text\nA bench.\n```\n\n## Action Plan\n\n### `CREATE`\n- **File Path:** [d0/new.rs](/d0/new.rs)\n- **Description:** Make it.\n\n````\nnew\n````\n";

fn main() {
    let given = std::env::args().skip(1).find_map(|arg| arg.parse().ok());
    let sessions = given.unwrap_or(100_000).max(50);
    let bench = Bench::new(sessions);
    bench.check_one();
    let rows = [bench.fetch(), bench.fetch_again(), bench.list()];
    head("git");
    let missed = rows.into_iter().filter(|row| !row.print()).count();
    assert_eq!(missed, 0, "ratios that must be reached were missed");
}

/// A server with many sessions, and a clone of it.
struct Bench {
    workspace: Workspace,
    home: PathBuf,
    sessions: usize,
    daemon: Child,
}

impl Drop for Bench {
    fn drop(&mut self) {
        let id = i32::try_from(self.daemon.id()).ok();
        if let Some(id) = id.and_then(rustix::process::Pid::from_raw) {
            let _ = rustix::process::kill_process(id, rustix::process::Signal::TERM);
        }
        let _ = self.daemon.wait();
    }
}

impl Bench {
    fn new(sessions: usize) -> Bench {
        let workspace = Workspace::new(FILES);
        let home = workspace.beside("home");
        let plan = workspace.beside("plan.md");
        std::fs::write(&plan, PLAN).unwrap();
        run(&mut teddy(&workspace.path(), &home, &["new", "first"]));
        let execute = ["execute", plan.to_str().unwrap(), "-y"];
        run(&mut teddy(&workspace.path(), &home, &execute));

        let server = workspace.beside("server.git");
        workspace.git(&["init", "-q", "--bare", server.to_str().unwrap()]);
        workspace.git(&[
            "push",
            "-q",
            server.to_str().unwrap(),
            "HEAD:refs/heads/main",
        ]);
        let (port, daemon) = serve(&home, &workspace.beside(""));
        let bench = Bench {
            workspace,
            home,
            sessions,
            daemon,
        };
        bench.fill(&server);

        let url = format!("git://127.0.0.1:{port}/server.git");
        bench.workspace.git(&["remote", "add", "origin", &url]);
        for name in ["sessions/first", "published/main"] {
            let reference = format!("refs/teddy/{name}");
            bench.workspace.git(&["update-ref", "-d", &reference]);
        }
        let teddy_dir = bench.workspace.path().join(".git/teddy");
        std::fs::remove_dir_all(teddy_dir).unwrap();
        bench
    }

    /// Copies the one session that TeDDy made, with a different request in each copy.
    fn fill(&self, server: &std::path::Path) {
        let reference = "refs/teddy/sessions/first";
        let to = server.to_str().unwrap();
        self.workspace.git(&["push", "-q", to, reference]);
        let tip = self.read(&["rev-parse", reference]);
        let parents = self.read(&["log", "-1", "--format=%P", reference]);
        let parents: Vec<&str> = parents.split(' ').collect();
        let tree = self.read(&["rev-parse", &format!("{tip}^{{tree}}")]);
        let message = self.read(&["log", "-1", "--format=%B", reference]);

        let mut git = apart(server, &self.home, "git");
        git.args(["fast-import", "--quiet", "--force"]);
        let mut import = git.stdin(Stdio::piped()).spawn().unwrap();
        let mut stream = std::io::BufWriter::new(import.stdin.take().unwrap());
        for n in 0..self.sessions {
            let mut commit = format!(
                "commit {}\ncommitter TeDDy <teddy@localhost> {} +0000\ndata {}\n{message}\nfrom {}\n",
                reference_of(n),
                1_790_000_000 + n,
                message.len(),
                parents[0]
            );
            for parent in &parents[1..] {
                writeln!(commit, "merge {parent}").unwrap();
            }
            let request = format!("please change them, {n}\n");
            write!(
                commit,
                "M 040000 {tree} \nM 100644 inline user_prompt.txt\ndata {}\n{request}\n",
                request.len()
            )
            .unwrap();
            stream.write_all(commit.as_bytes()).unwrap();
        }

        drop(stream);
        assert!(import.wait().unwrap().success());
        run(apart(server, &self.home, "git").args(["pack-refs", "--all"]));
    }

    /// Checks that a fetch of one session transfers no objects of others.
    fn check_one(&self) {
        let before = self.objects();
        self.teddy(&["fetch", "origin", &name(1)]);
        let came = self.objects() - before;
        assert!(came < 40, "{came} objects came for one session");
        self.teddy(&["show", &format!("origin/{}:1", name(1))]);
    }

    fn fetch(&self) -> Row {
        let (mut ours, mut theirs) = (2..25, 25..48);
        let times = sample(
            SAMPLES,
            || self.teddy(&["fetch", "origin", &name(ours.next().unwrap())]),
            || self.git_fetch(theirs.next().unwrap()),
        );
        row("fetch of one session", times, 3.0, 1.5)
    }

    fn fetch_again(&self) -> Row {
        let times = sample(
            SAMPLES,
            || self.teddy(&["fetch", "origin", &name(2)]),
            || self.git_fetch(25),
        );
        row("the same again", times, 3.0, 1.5)
    }

    fn list(&self) -> Row {
        let times = sample(
            SAMPLES,
            || self.teddy(&["fetch", "-n"]),
            || {
                self.workspace
                    .git(&["ls-remote", "-q", "origin", "refs/teddy/*"])
            },
        );
        row("list of all sessions (git ls-remote)", times, 4.0, 2.0)
    }

    fn git_fetch(&self, n: usize) {
        let reference = reference_of(n);
        let refspec = format!("{reference}:refs/seen/{n}");
        let options = ["fetch", "-q", "--no-tags", "--no-auto-maintenance"];
        self.workspace
            .git(&[&options[..], &["origin", &refspec]].concat());
    }

    fn objects(&self) -> usize {
        let counts = self.read(&["count-objects", "-v"]);
        let count = |line: &str| {
            let (key, value) = line.split_once(": ")?;
            let is_count = ["count", "in-pack"].contains(&key);
            is_count.then(|| value.parse::<usize>().unwrap())
        };
        counts.lines().filter_map(count).sum()
    }

    fn teddy(&self, args: &[&str]) {
        run(&mut teddy(&self.workspace.path(), &self.home, args));
    }

    fn read(&self, args: &[&str]) -> String {
        let mut command = apart(&self.workspace.path(), &self.home, "git");
        let output = command.args(args).output().unwrap();
        assert!(output.status.success(), "git {args:?}");
        String::from_utf8(output.stdout)
            .unwrap()
            .trim_end()
            .to_owned()
    }
}

fn name(n: usize) -> String {
    format!("s-{n:06}")
}

fn reference_of(n: usize) -> String {
    format!("refs/teddy/sessions/{}", name(n))
}

fn row(name: &str, (ours, gits): (Duration, Duration), at_first: f64, goal: f64) -> Row {
    Row {
        name: name.to_owned(),
        ours,
        gits,
        at_first,
        goal,
    }
}

fn serve(home: &std::path::Path, root: &std::path::Path) -> (u16, Child) {
    for _ in 0..20 {
        // Another process can take the port before the daemon does, hence the loop.
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let mut git: Command = apart(root, home, "git");
        git.args(["daemon", "--listen=127.0.0.1", "--export-all"])
            .arg(format!("--port={port}"))
            .arg(format!("--base-path={}", root.display()));
        let daemon = git.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let mut daemon = daemon.unwrap();
        std::thread::sleep(Duration::from_millis(500));
        let is_alive = daemon.try_wait().unwrap().is_none();
        if is_alive && TcpStream::connect(("127.0.0.1", port)).is_ok() {
            return (port, daemon);
        }

        let _ = daemon.kill();
        let _ = daemon.wait();
    }
    panic!("git daemon does not start");
}
