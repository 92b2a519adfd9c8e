//! A machine on which nothing is but what a test puts there: for what somebody new has.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use crate::fake::Fake;
use crate::screen::Screen;
use crate::support::{Output, TestRepo};

/// What any program needs of the machine.
const TOOLS: [&str; 5] = ["cat", "env", "git", "sh", "sleep"];

/// A machine of its own: the only programs are those of the test.
pub struct Machine {
    /// The repository in use.
    pub repo: TestRepo,
    /// The servers that are asked.
    servers: String,
}

impl Machine {
    /// Makes a machine on which nothing is to be found.
    pub fn new() -> Machine {
        let repo = TestRepo::new().file("a.txt", "one\n");
        repo.commit("init");
        std::fs::create_dir(repo.beside("bin")).unwrap();
        for tool in TOOLS {
            let found = teddy::host::process::find(tool);
            std::os::unix::fs::symlink(found.unwrap(), repo.beside("bin").join(tool)).unwrap();
        }
        Machine {
            repo,
            servers: String::new(),
        }
    }

    /// Puts a program on the `PATH`.
    pub fn program(self, name: &str, script: &str) -> Machine {
        let file = self.repo.beside("bin").join(name);
        write_program(&file, script);
        self
    }

    /// Puts a program on the `PATH` that says its version, and else runs a script.
    pub fn model(self, name: &str, version: &str, script: &str) -> Machine {
        let script =
            format!("if [ \"$1\" = --version ]; then echo '{version}'; exit; fi\n{script}");
        self.program(name, &script)
    }

    /// Has a server asked.
    pub fn server(mut self, fake: &Fake) -> Machine {
        self.servers = format!("{} {}", self.servers, fake.origin);
        self
    }

    /// Returns the variables that make it the machine.
    pub fn variables(&self) -> Vec<(&'static str, String)> {
        vec![
            ("PATH", self.repo.beside("bin").display().to_string()),
            ("TEDDY_SERVERS", self.servers.clone()),
            ("TEDDY_DISCOVERY", "on".to_owned()),
        ]
    }

    /// Runs teddy in the repository.
    pub fn teddy(&self, args: &[&str], more: &[(&str, &str)]) -> Output {
        let mut command = self.repo.teddy_command(args);
        command
            .current_dir(self.repo.path())
            .envs(self.variables())
            .envs(more.iter().copied())
            .stdin(std::process::Stdio::null());
        Output::of(&mut command)
    }

    /// Runs teddy at a terminal.
    pub fn screen(&self, args: &[&str], more: &[(&str, &str)]) -> Screen {
        let own = self.variables();
        let own = own.iter().map(|(name, value)| (*name, value.as_str()));
        let variables: Vec<_> = own.chain(more.iter().copied()).collect();
        Screen::open_with(&self.repo, (100, 40), (args, &variables))
    }

    /// Returns the user's configuration file.
    pub fn file(&self) -> PathBuf {
        self.repo.beside("teddy.yaml")
    }

    /// Returns what it says.
    pub fn config(&self) -> String {
        std::fs::read_to_string(self.file()).unwrap_or_default()
    }
}

/// Writes a script that can be run.
pub fn write_program(file: &std::path::Path, script: &str) {
    std::fs::write(file, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755)).unwrap();
}
