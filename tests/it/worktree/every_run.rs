//! Each kind of run has the same view: turns, agents, lanes and checks of races, bisect, compare and
//! replay, and `worktree.setup` in each of them.

use crate::plans::{create, execute, plan};
use crate::scripted_agent::scripted_command;
use crate::support::overlay::{CHECKOUT, OVERLAY, overlays};
use crate::support::{Output, TestRepo, skipped};

/// Prints what a script does in each kind of run.
struct Runs {
    repo: TestRepo,
    backend: &'static str,
    /// Shell command that appends its output to [`Runs::output`].
    command: String,
}

impl Runs {
    /// `OUT` in the script stands for a directory that commands and agents can write.
    fn new(repo: TestRepo, backend: &'static str, script: &str, setup: &str) -> Runs {
        let out = repo.beside("out");
        std::fs::create_dir(&out).unwrap();
        let out = out.display().to_string();
        let path = |name: &str| repo.beside(name).display().to_string();
        repo.put("../script.sh", script.replace("OUT", &out));
        repo.put("../setup.sh", setup.replace("OUT", &out));
        let command = format!("sh {} >> {out}/seen 2>&1", path("script.sh"));
        let dir = repo.beside("agent");
        std::fs::create_dir(&dir).unwrap();
        let agent = scripted_command(&dir, &format!("{command}; echo Done."));
        repo.put("../one.md", plan("Make b", &[create("b.txt", "b\n")]));
        repo.put("../two.md", plan("Make c", &[create("c.txt", "c\n")]));
        repo.put("../run.md", plan("Run", &[execute(&command)]));
        repo.configure(&format!(
            "execute: {{ writable: ['{out}'] }}\nworktree: {{ setup: 'sh {} >> {out}/seen 2>&1' }}\n\
             models:\n  agent: {{ kind: agent, run: [{}] }}\n  one: {{ kind: command, run: [cat, '{}'] }}\n",
            path("setup.sh"),
            agent.display(),
            path("one.md")
        ));
        Runs {
            repo,
            backend,
            command,
        }
    }

    fn teddy(&self, args: &[&str]) -> Output {
        self.repo.teddy(&[&["-c", self.backend], args].concat())
    }

    /// Returns the different lines that were printed since the last call, in order.
    fn output(&self) -> Vec<String> {
        let file = self.repo.beside("out/seen");
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        let _ = std::fs::remove_file(file);
        let mut lines: Vec<String> = Vec::new();
        for line in text.lines() {
            if lines.iter().all(|earlier| earlier != line) {
                lines.push(line.to_owned());
            }
        }
        lines
    }

    /// Compares what each kind of run prints.
    fn check(&self, expected: &str) {
        let always_bad = format!("{}; false", self.command);
        let kinds: [(&str, &[&str], i32); 7] = [
            ("turn", &["execute", "../run.md", "-y"], 0),
            ("replay", &["verify", "--rerun", "1"], 0),
            (
                "compare",
                &["compare", "s:1", "s:2", "--check", &self.command],
                0,
            ),
            ("bisect", &["bisect", "run", &always_bad], 1),
            (
                "agent",
                &["-s", "talk", "plan", "-m", "go", "--model", "agent"],
                0,
            ),
            ("lane", &["race", "go", "--with", "agent"], 0),
            (
                "check",
                &["race", "go", "--with", "one", "--check", &self.command],
                0,
            ),
        ];
        self.teddy(&["new", "talk"]).check(0, &[]);
        self.teddy(&["new", "s"]).check(0, &[]);
        for (kind, args, code) in kinds {
            self.teddy(args).check(code, &[]);
            let output = self.output().join("\n");
            assert_eq!(output, expected, "{kind}, {}", self.backend);
            if kind == "turn" {
                self.teddy(&["execute", "../two.md", "-y"]).check(0, &[]);
            }
        }
    }
}

/// Files with a secret, in the project, beside it and in the home directory.
const SECRETS: [&str; 9] = [
    ".env",
    "deep/er/credentials.json",
    "node_modules/dep/.env",
    "untracked.pem",
    "keyed.log",
    ".hg/store",
    ".git/config",
    "../home/.ssh/id_test",
    "../teddy.yaml",
];

/// Says where it runs, reads a dependency, and looks for secrets by all names.
const LOOK: &str = "
test \"$PWD\" = 'TOP' && echo KIND at the checkout || echo KIND in a copy
cat node_modules/dep/index.js a.txt | sed 's/^/KIND has /'
grep -s hunter2 SECRETS | sed 's/^/KIND read /'
(echo x > 'TOP/../outside') 2> /dev/null && echo KIND wrote outside
true";

#[test]
fn every_run_and_its_set_up_have_the_dependencies_and_no_secret() {
    for backend in [OVERLAY, CHECKOUT] {
        if backend == OVERLAY && !overlays() {
            continue;
        }
        let repo = TestRepo::new()
            .file(
                ".gitignore",
                "/node_modules\n.env\ncredentials.json\n*.log\n.hg\n",
            )
            .file("a.txt", "tracked\n");
        repo.commit("init");
        repo.write("node_modules/dep/index.js", "dependency\n");
        repo.git(&[
            "config",
            "remote.origin.pushurl",
            "https://me:hunter2@host/x",
        ]);
        for secret in SECRETS {
            // The others have a shape by which they are found.
            if !matches!(secret, ".git/config" | "keyed.log" | "../teddy.yaml") {
                repo.write(secret, "hunter2\n");
            }
        }
        let key = "a9Zk3Qx7Lm2Vt8Rb5Nw4".repeat(2);
        repo.write("keyed.log", format!("token = \"ghp_{key}\" # hunter2\n"));
        let top = repo.path().display().to_string();
        let everywhere = SECRETS.map(|secret| format!("{secret} '{top}/{secret}'"));
        let look = LOOK
            .replace("TOP", &top)
            .replace("SECRETS", &everywhere.join(" "));
        let (run, setup) = (look.replace("KIND", "run"), look.replace("KIND", "setup"));
        let runs = Runs::new(repo, backend, &run, &setup);
        let settings = runs.repo.beside("teddy.yaml");
        let text = std::fs::read_to_string(&settings).unwrap();
        std::fs::write(&settings, format!("{text}# hunter2\n")).unwrap();

        let place = match backend {
            OVERLAY => "at the checkout",
            _ => "in a copy",
        };
        let lines =
            |kind: &str| format!("{kind} {place}\n{kind} has dependency\n{kind} has tracked");
        runs.check(&format!("{}\n{}", lines("setup"), lines("run")));
        assert!(!runs.repo.beside("outside").exists());
    }
}

const MEET: &str = r#"
python3 - <<'END'
import multiprocessing, os, socket
from multiprocessing import shared_memory
memory = shared_memory.SharedMemory(create=True, size=10)
other = shared_memory.SharedMemory(memory.name)
memory.buf[0] = 7
assert other.buf[0] == 7
other.close()
memory.close()
memory.unlink()
with multiprocessing.Lock():
    print('shared memory')
for name in (os.path.join(os.environ['TMPDIR'], 'socket'), os.path.join(os.getcwd(), 'socket'), 'socket'):
    server = socket.socket(socket.AF_UNIX)
    server.bind(name)
    server.listen()
    client = socket.socket(socket.AF_UNIX)
    client.connect(name)
    client.sendall(b'x')
    assert server.accept()[0].recv(1) == b'x'
    os.unlink(name)
print('local sockets')
END"#;

#[test]
fn shared_memory_and_local_sockets_work_in_every_run() {
    if teddy::host::process::find("python3").is_none() {
        return skipped("no python3 here");
    }
    if !overlays() {
        return;
    }
    let repo = TestRepo::new().file("a.txt", "a\n");
    repo.commit("init");
    let runs = Runs::new(repo, OVERLAY, MEET, "true");
    runs.check("shared memory\nlocal sockets");
}
