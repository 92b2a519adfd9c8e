//! A running `teddy web` and an HTTP client.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::plans::{create, edit, execute, plan};
use crate::support::TestRepo;

/// A browser runs this if a page does not escape it.
pub const HOSTILE: &str = "<script>document.title='x'</script><img src=x onerror=alert(1)>\"'&";

/// Killed when dropped.
pub struct Web {
    child: Child,
    /// The printed address, with its secret.
    pub url: String,
    pub host: String,
    /// Path of the start page, which contains the secret.
    pub root: String,
}

pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Web {
    pub fn start(repo: &TestRepo, args: &[&str]) -> Web {
        Web::start_with(repo, args, &[])
    }

    pub fn start_with(repo: &TestRepo, args: &[&str], environment: &[(&str, &str)]) -> Web {
        let mut command = repo.teddy_command(&[&["web"], args].concat());
        let mut child = command
            .current_dir(repo.path())
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        out.read_line(&mut line).unwrap();
        let url = line.trim().to_owned();
        let rest = url
            .strip_prefix("http://")
            .unwrap_or_else(|| panic!("no address: {line}"));
        let (host, _) = rest.split_once('/').unwrap();
        let (host, root) = (host.to_owned(), rest[host.len()..].to_owned());
        Web {
            child,
            host,
            root,
            url,
        }
    }

    /// `page` is relative to `root`.
    pub fn get(&self, page: &str) -> Answer {
        ask(
            &self.host,
            &format!("GET {}{page} HTTP/1.1\r\nHost: {}", self.root, self.host),
        )
    }

    /// Like [`Web::get`], and the status must be 200.
    #[track_caller]
    pub fn page(&self, page: &str) -> String {
        let answer = self.get(page);
        assert_eq!(answer.status, 200, "{page}: {}", answer.body);
        answer.body
    }

    /// Sends SIGINT, waits and returns the exit code.
    pub fn interrupt(mut self) -> Option<i32> {
        let id = Pid::from_raw(self.child.id() as i32).unwrap();
        kill_process(id, Signal::INT).unwrap();
        self.child.wait().unwrap().code()
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a request line and headers. Adds the final lines.
pub fn ask(host: &str, request: &str) -> Answer {
    let mut stream = TcpStream::connect(host).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    write!(stream, "{request}\r\nConnection: close\r\n\r\n").unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.split(' ').nth(1).and_then(|word| word.parse().ok());
    Answer {
        status: status.unwrap_or_else(|| panic!("no status: {text}")),
        head: head.to_ascii_lowercase(),
        body: body.to_owned(),
    }
}

/// A session of two turns, and another session that branches off.
pub fn project() -> TestRepo {
    let repo = TestRepo::new().file("a.txt", "one two three\n");
    repo.commit("init");
    repo.done(&["new", "demo"]);
    let first = plan(
        "Change a word",
        &[edit("a.txt", "one two three", "one 2 three")],
    );
    let second = plan(
        "Say so",
        &[
            create("b.txt", "new\n"),
            execute("echo said; echo loud >&2"),
        ],
    );
    repo.reply(&first).reply(&second);
    // The model gets a fixed name, because the name of a `replay:` model contains a random path.
    let answers = repo.beside("answers");
    repo.configure(&format!(
        "model: recorded\nmodels: {{ recorded: {{ kind: replay, path: {} }} }}\n",
        answers.display()
    ));
    repo.done(&["context", "add", "a.txt"]);
    for message in ["Write the number as a digit.", "Say what was done."] {
        repo.done(&["plan", "-m", message]);
        repo.done(&["execute", "-y"]);
    }
    repo.done(&["branch", "1", "other-way"]);
    repo
}
