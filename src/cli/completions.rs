//! `teddy completions`

use std::process::ExitCode;

use super::app::App;
use super::exit;

/// Print the completion script of a shell
///
/// `git teddy <TAB>` works in bash too: git's own completion calls the function `_git_teddy`, which the script has.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  source <(teddy completions bash)\n  teddy completions fish > ~/.config/fish/completions/teddy.fish")]
pub(super) struct Args {
    /// The shell
    shell: clap_complete::Shell,
}

/// How bash completes `git teddy`.
const GIT_BASH: &str = r#"
_git_teddy() {
    COMP_WORDS=(teddy "${words[@]:$((__git_cmd_idx + 1))}")
    COMP_CWORD=$((cword - __git_cmd_idx))
    _teddy teddy "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
}
"#;

/// Prints the script.
pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut super::parser(), "teddy", &mut script);
    if args.shell == clap_complete::Shell::Bash {
        script.extend_from_slice(GIT_BASH.as_bytes());
    }
    app.print(script)?;
    Ok(exit::DONE.into())
}
