//! A machine without any model, for tests of a new user's first steps.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use crate::fake::Fake;
use crate::screen::Screen;
use crate::support::{Output, TestRepo};

/// Programs that TeDDy and the scripts need.
const TOOLS: [&str; 5] = ["cat", "env", "git", "sh", "sleep"];

/// `PATH` contains only `TOOLS` and the test's own programs.
pub struct Machine {
    pub repo: TestRepo,
    /// Addresses that discovery probes, separated by spaces.
    servers: String,
}

impl Machine {
    pub fn new() -> Machine {
        let repo = TestRepo::on_disk().file("a.txt", "one\n");
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

    pub fn program(self, name: &str, script: &str) -> Machine {
        let file = self.repo.beside("bin").join(name);
        write_program(&file, script);
        self
    }

    /// Like [`Machine::program`], and answers `--version`.
    pub fn model(self, name: &str, version: &str, script: &str) -> Machine {
        let script =
            format!("if [ \"$1\" = --version ]; then echo '{version}'; exit; fi\n{script}");
        self.program(name, &script)
    }

    /// Lets discovery probe this server.
    pub fn server(mut self, fake: &Fake) -> Machine {
        self.servers = format!("{} {}", self.servers, fake.origin);
        self
    }

    pub fn variables(&self) -> Vec<(&'static str, String)> {
        vec![
            ("PATH", self.repo.beside("bin").display().to_string()),
            ("TEDDY_SERVERS", self.servers.clone()),
            ("TEDDY_DISCOVERY", "on".to_owned()),
        ]
    }

    pub fn teddy(&self, args: &[&str], more: &[(&str, &str)]) -> Output {
        let mut command = self.repo.teddy_command(args);
        command
            .current_dir(self.repo.path())
            .envs(self.variables())
            .envs(more.iter().copied())
            .stdin(std::process::Stdio::null());
        Output::of(&mut command)
    }

    pub fn screen(&self, args: &[&str], more: &[(&str, &str)]) -> Screen {
        let own = self.variables();
        let own = own.iter().map(|(name, value)| (*name, value.as_str()));
        let variables: Vec<_> = own.chain(more.iter().copied()).collect();
        Screen::open_with(&self.repo, (100, 40), (args, &variables))
    }

    pub fn file(&self) -> PathBuf {
        self.repo.beside("teddy.yaml")
    }

    pub fn config(&self) -> String {
        std::fs::read_to_string(self.file()).unwrap_or_default()
    }
}

pub fn write_program(file: &std::path::Path, script: &str) {
    std::fs::write(file, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755)).unwrap();
}
