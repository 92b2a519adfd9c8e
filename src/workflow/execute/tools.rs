//! Implements the effects of a running plan: commands, web pages, searches, progress.

use std::io;
use std::path::Path;

use crate::config::settings;
use crate::host::interrupt;
use crate::host::shell::{self, Script};
use crate::host::supervisor::Launcher;
use crate::plan::action::Action;
use crate::plan::action::execute::Execute;
use crate::plan::run::{Executed, Outcome, Tools};
use crate::session::artifact::Artifacts;
use crate::text::path_alias::PathAliases;
use crate::text::resource::Artifact;
use crate::workflow::confine;
use crate::workflow::context::pages::Pages;
use crate::workflow::user::{Event, User};

const MAX_CAPTURED: usize = 4 << 20;

pub struct PlanTools<'a> {
    pub worktree: &'a Path,
    pub settings: &'a settings::ExecuteSettings,
    pub launcher: Launcher,
    /// Names for the directories of the run in the output of commands.
    pub aliases: PathAliases,
    /// Environment variables of all commands; the plan's own override them.
    pub variables: Vec<(String, String)>,
    pub pages: Pages,
    pub artifacts: &'a dyn Fn(&Artifact) -> bool,
    /// Artifacts of the plan's own turn.
    pub own: &'a Artifacts,
    pub user: &'a mut dyn User,
    /// Processes that could not be ended. Once there is one, no further action runs.
    pub surviving: Vec<String>,
}

impl Tools for PlanTools<'_> {
    fn execute(&mut self, execute: &Execute) -> io::Result<Executed> {
        let cwd = execute.cwd.as_ref().map_or_else(
            || self.worktree.to_owned(),
            |cwd| self.worktree.join(cwd.as_str()),
        );
        let script = Script {
            env: self.variables.iter().chain(&execute.env).cloned().collect(),
            shell: shlex::split(&self.settings.shell).unwrap_or_else(|| vec!["sh".to_owned()]),
            timeout: Some(execute.timeout.unwrap_or(self.settings.timeout())),
            capture: MAX_CAPTURED,
            keep_env: self.settings.keep_env.clone(),
            aliases: self.aliases.clone(),
            launcher: Some(self.launcher.clone()),
            ..Script::new(execute.command.as_str(), cwd)
        };

        let finished = shell::run(&script, &mut |bytes| {
            self.user.report(Event::Output { bytes })
        })?;
        self.surviving.extend(finished.survivors.iter().cloned());
        let policy = self.launcher.policy.as_ref();
        let hint = policy.and_then(|policy| {
            confine::explain_refusal(policy, finished.end.code(), &finished.output.joined())
        });

        Ok(Executed { finished, hint })
    }

    fn fetch(&mut self, url: &str) -> Result<(), String> {
        self.pages.get(url).map(|_| ())
    }

    fn search(&mut self, query: &str) -> Result<String, String> {
        self.pages.search(query)
    }

    fn has_artifact(&self, artifact: &Artifact) -> bool {
        (self.artifacts)(artifact)
    }

    fn taken_bytes(&self, name: &str) -> Option<Vec<u8>> {
        self.own.0.get(name).cloned()
    }

    // No action runs next to a process that could not be ended.
    fn interrupted(&self) -> bool {
        interrupt::requested() || !self.surviving.is_empty()
    }

    fn started(&mut self, index: usize, action: &Action) {
        let label = format!("{} {}", action.kind.name(), action.kind.target());
        self.user.report(Event::Started {
            index,
            label: &label,
        });
    }

    fn finished(&mut self, index: usize, outcome: &Outcome) {
        self.user.report(Event::Finished { index, outcome });
    }
}
