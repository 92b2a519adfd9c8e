//! Global options.

use std::path::{Path, PathBuf};

use clap::ValueHint;

use super::complete;
use crate::ui::style::Paint;

/// Global options.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Global options")]
pub(super) struct Global {
    /// Run as if started in this directory
    #[arg(short = 'C', global = true, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(super) directory: Option<PathBuf>,
    /// The session to work on, instead of the one last used here
    #[arg(short, long, global = true, env = "TEDDY_SESSION", hide_env_values = true, value_name = "NAME", add = complete::with(complete::sessions))]
    pub(super) session: Option<String>,
    /// Override a setting for this call, such as `-c replan.max=0`
    #[arg(short = 'c', global = true, value_name = "KEY=VALUE", add = complete::settings())]
    pub(super) setting: Vec<String>,
    /// Print the result as JSON on standard output
    #[arg(long, global = true)]
    pub(super) json: bool,
    /// Print only errors and warnings
    #[arg(short, long, global = true)]
    pub(super) quiet: bool,
    /// Also print the project, session, model and settings in use, and how long it took
    #[arg(short, long, global = true)]
    pub(super) verbose: bool,
    /// When to use colours
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(super) color: Color,
}

impl Global {
    /// Resolves a path typed after these options.
    pub(super) fn resolve(&self, typed: &Path) -> PathBuf {
        match &self.directory {
            Some(dir) => dir.join(typed),
            None => typed.to_owned(),
        }
    }

    /// Merges the options of a command typed while the program runs into these; new values win.
    pub(super) fn merge(&self, typed: Global) -> Global {
        Global {
            directory: typed.directory.or_else(|| self.directory.clone()),
            session: typed.session.or_else(|| self.session.clone()),
            setting: self.setting.iter().cloned().chain(typed.setting).collect(),
            color: self.color,
            quiet: self.quiet || typed.quiet,
            verbose: self.verbose || typed.verbose,
            json: typed.json,
        }
    }
}

/// When to use colours.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(super) enum Color {
    /// On a terminal, unless `NO_COLOR` is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

impl Color {
    /// Resolves the choice for a stream. `no_color` is the value of `NO_COLOR`.
    pub(super) fn paint(self, is_terminal: bool, no_color: Option<&str>) -> Paint {
        // An empty `NO_COLOR` counts as unset, see no-color.org.
        let is_allowed = no_color.is_none_or(str::is_empty);
        match self {
            Color::Always => Paint::Colors,
            Color::Auto | Color::Never if !is_terminal => Paint::Bare,
            Color::Auto if is_allowed => Paint::Colors,
            Color::Auto | Color::Never => Paint::Weights,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_follow_the_choice_and_the_variable() {
        assert_eq!(Color::Auto.paint(true, None), Paint::Colors);
        assert_eq!(Color::Auto.paint(true, Some("1")), Paint::Weights);
        assert_eq!(Color::Auto.paint(true, Some("")), Paint::Colors);
        assert_eq!(Color::Auto.paint(false, None), Paint::Bare);
        assert_eq!(Color::Always.paint(false, Some("1")), Paint::Colors);
        assert_eq!(Color::Never.paint(true, None), Paint::Weights);
        assert_eq!(Color::Never.paint(false, None), Paint::Bare);
    }
}
