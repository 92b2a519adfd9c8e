//! `demo`: plays a whole session with recorded answers in a scratch repository.
//!
//! Each step runs as a process, by this program or the installed git, so the output is real. Writes
//! only below the given directory. Needs no key and no network.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context as _;

use crate::host::{env, process};

pub trait DemoStage {
    fn heading(&mut self, text: &str);
    fn command(&mut self, text: &str);
    fn output(&mut self, text: &str);
}

/// `dir` is empty or does not exist. Returns the directory of the demo's repository.
pub fn demo(dir: &Path, stage: &mut dyn DemoStage) -> anyhow::Result<PathBuf> {
    let in_use = std::fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_some());
    anyhow::ensure!(
        !in_use,
        "`{}` is not empty; name another directory",
        dir.display()
    );
    let project = dir.join("greet");
    std::fs::create_dir_all(&project).with_context(|| format!("making `{}`", project.display()))?;
    let dir = dir.canonicalize()?;

    prepare(&dir)?;
    let project = dir.join("greet");
    for step in DEMO_STEPS {
        match step {
            DemoStep::Heading(text) => stage.heading(text),
            DemoStep::Run(line, expected) => run(&dir, line, *expected, stage)?,
        }
    }

    Ok(project)
}

fn prepare(dir: &Path) -> anyhow::Result<()> {
    let write = |path: PathBuf, text: &str| {
        std::fs::write(&path, text).with_context(|| format!("writing `{}`", path.display()))
    };
    for (name, text) in DEMO_FILES {
        write(dir.join("greet").join(name), text)?;
    }

    std::fs::create_dir_all(dir.join("answers"))?;
    for (name, text) in DEMO_ANSWERS {
        write(dir.join("answers").join(name), text)?;
    }

    let answers = serde_json::to_string(&dir.join("answers"))?;
    write(
        dir.join("teddy.yaml"),
        &format!("model: recorded\nmodels:\n  recorded: {{ kind: replay, path: {answers} }}\n"),
    )
}

fn run(dir: &Path, line: &str, expected: i32, stage: &mut dyn DemoStage) -> anyhow::Result<()> {
    stage.command(line);
    let tokens = shlex::split(line).context("a step of the demo is not a command line")?;
    let (program, arguments) = tokens
        .split_first()
        .context("a step of the demo is empty")?;
    let mut command = match program.as_str() {
        "teddy" => process::command(env::current_exe()?),
        other => process::command(other),
    };

    set_environment(&mut command, dir);
    command
        .current_dir(dir.join("greet"))
        .args(arguments)
        .stdin(Stdio::null());

    // One pipe for both streams preserves their order.
    let (mut reader, writer) = std::io::pipe()?;
    let mut child = command
        .stdout(writer.try_clone()?)
        .stderr(writer)
        .spawn()
        .with_context(|| format!("starting `{program}`"))?;
    drop(command);
    let mut text = Vec::new();

    std::io::Read::read_to_end(&mut reader, &mut text)?;
    let code = child.wait()?.code();
    stage.output(&String::from_utf8_lossy(&text));
    let ended = code.map_or("was killed".into(), |code| {
        format!("ended with exit code {code}")
    });
    anyhow::ensure!(
        code == Some(expected),
        "`{line}` {ended} instead of {expected}"
    );

    Ok(())
}

/// The demo must not depend on the user's environment.
fn set_environment(command: &mut Command, dir: &Path) {
    for (name, _) in env::all() {
        let text = name.to_string_lossy();
        if text.starts_with("GIT_") || text.starts_with("TEDDY_") {
            command.env_remove(&name);
        }
    }

    for role in ["AUTHOR", "COMMITTER"] {
        command
            .env(format!("GIT_{role}_NAME"), "Demo")
            .env(format!("GIT_{role}_EMAIL"), "demo@localhost");
    }

    command
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_PAGER", "cat")
        .env("TEDDY_CONFIG", dir.join("teddy.yaml"))
        .env("XDG_CACHE_HOME", dir.join("cache"))
        .env("NO_COLOR", "1");
}

enum DemoStep {
    Heading(&'static str),
    /// With the expected exit code.
    Run(&'static str, i32),
}

const DEMO_FILES: [(&str, &str); 1] = [("greet.sh", "#!/bin/sh\n# Greets.\necho \"Hello!\"\n")];

const DEMO_ANSWERS: [(&str, &str); 4] = [
    ("01.md", include_str!("../../fixtures/demo/01.md")),
    ("02.md", include_str!("../../fixtures/demo/02.md")),
    ("03.md", include_str!("../../fixtures/demo/03.md")),
    ("04.md", include_str!("../../fixtures/demo/04.md")),
];

const DEMO_STEPS: &[DemoStep] = &[
    DemoStep::Heading("A small program under git"),
    DemoStep::Run("git init -q -b main", 0),
    DemoStep::Run("git add greet.sh", 0),
    DemoStep::Run("git commit -q -m 'Add greet'", 0),
    DemoStep::Heading("A session: its model answers from recorded files"),
    DemoStep::Run("teddy new greet-by-name", 0),
    DemoStep::Run("teddy context add greet.sh test.sh", 0),
    DemoStep::Heading("Turn 1: a file is made, a command runs its tests"),
    DemoStep::Run(
        "teddy -q plan -m 'Greet people by name. Start with a test.'",
        0,
    ),
    DemoStep::Run("teddy execute -y", 0),
    DemoStep::Heading(
        "Turn 2: the plan does not fit the file; TeDDy finds out before anything runs, and the model is asked again",
    ),
    DemoStep::Run("teddy -q plan -m 'Now make the test pass.'", 3),
    DemoStep::Run("teddy execute -y", 3),
    DemoStep::Heading("Turn 3: the corrected plan, and an edit of your own meanwhile"),
    DemoStep::Run("sh -c 'echo \"my own notes\" > notes.txt'", 0),
    DemoStep::Run("teddy execute -y", 0),
    DemoStep::Heading(
        "Turn 4: the fences of this answer are wrong in the usual way, and are repaired",
    ),
    DemoStep::Run("teddy -q plan -m 'Describe it.'", 0),
    DemoStep::Run("teddy execute -y", 0),
    DemoStep::Heading("What plain git says"),
    DemoStep::Run("git status --short", 0),
    DemoStep::Run(
        "git log --oneline --first-parent teddy/sessions/greet-by-name",
        0,
    ),
    DemoStep::Run(
        "git show --stat --format='%an: %s' teddy/sessions/greet-by-name^2",
        0,
    ),
    DemoStep::Run(
        "git diff teddy/sessions/greet-by-name~3^2 teddy/sessions/greet-by-name^2 -- greet.sh",
        0,
    ),
    DemoStep::Run("git show teddy/sessions/greet-by-name:user_prompt.txt", 0),
    DemoStep::Heading("Back to turn 1: the turns after it are undone, your own notes stay"),
    DemoStep::Run("teddy restore 1", 0),
    DemoStep::Run("git status --short", 0),
    DemoStep::Run("teddy undo", 0),
    DemoStep::Heading("Another way from turn 3 on"),
    DemoStep::Run("teddy branch 3 another-way", 0),
    DemoStep::Run("teddy restore @", 0),
    DemoStep::Run("teddy sessions", 0),
    DemoStep::Run("teddy log -s greet-by-name", 0),
];
