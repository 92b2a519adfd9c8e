//! `teddy completions`: prints completion scripts.

use std::path::Path;

use anyhow::Context as _;
use clap_complete::Shell;

use super::app::App;
use super::complete;
use crate::host::env;

/// Print the completion script for a shell
///
/// Completes commands, options, sessions, turns, agents, models and files. The script asks this
/// program for them, so load it each time a shell starts. `git teddy <TAB>` works too if git's own
/// completion is loaded.
#[derive(clap::Args)]
#[command(
    after_help = "Examples, for the file that the shell reads at its start:\n  source <(teddy completions bash)\n  source <(teddy completions zsh)          after compinit\n  teddy completions fish | source"
)]
pub(super) struct Args {
    /// The shell
    shell: Shell,
}

/// Name of the generated bash function.
const BASH: &str = "_clap_complete_teddy";
/// Wrapper around it. Bash splits words at `:` and `=`, which occur in `session:turn` and
/// `--option=value`. Also completes `git teddy`: git's completion calls a function of this name.
const AROUND_BASH: &str = r#"
_teddy() {
    local word glue="" breaks="" typed=()
    [[ $COMP_WORDBREAKS == *:* ]] && breaks+=":"
    [[ $COMP_WORDBREAKS == *=* ]] && breaks+="="
    for word in "${COMP_WORDS[@]:0:COMP_CWORD+1}"; do
        if [[ ${#typed[@]} -gt 0 && ( -n $glue || $word == [:=]* ) ]]; then
            typed[${#typed[@]}-1]+=$word
        else
            typed+=("$word")
        fi
        [[ $word == *[:=] ]] && glue=yes || glue=""
    done
    local COMP_WORDS=("${typed[@]}") COMP_CWORD=$((${#typed[@]} - 1))
    word=${typed[COMP_CWORD]}
    _clap_complete_teddy teddy "$word"
    [[ -n $breaks && -n ${COMPREPLY-} ]] || return 0
    COMPREPLY=("${COMPREPLY[@]#"${word%"${word##*[$breaks]}"}"}")
}
_git_teddy() {
    local COMP_WORDS=(teddy "${words[@]:$((__git_cmd_idx + 1))}") COMP_CWORD=$((cword - __git_cmd_idx))
    _teddy
}
"#;
/// The same for zsh, which passes the words after `git` as the command's own. A file `_teddy` in
/// `fpath` runs at the first completion and has to complete that one, too.
const GIT_ZSH: &str = r#"
_git-teddy() { _clap_dynamic_completer_teddy }
zstyle ':completion:*:*:git:*' user-commands teddy:'sessions for AI-assisted coding'
[[ ${funcstack[1]-} != _teddy ]] || _clap_dynamic_completer_teddy "$@"
"#;
/// The same for fish.
const GIT_FISH: &str = r#"complete --keep-order --exclusive --command git --condition '__fish_seen_subcommand_from teddy' --arguments "(VARIABLE=fish PROGRAM -- (commandline --current-process --tokenize --cut-at-cursor)[2..] (commandline --current-token))"
"#;

pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<()> {
    let program = program();
    let shell = complete::SHELLS
        .completer(&args.shell.to_string())
        .expect("both lists have the same shells");
    let mut script = Vec::new();
    shell.write_registration(complete::VARIABLE, "teddy", "teddy", &program, &mut script)?;
    let script =
        String::from_utf8(script).context("the program has a path that no script can name")?;
    let script = match args.shell {
        Shell::Bash => {
            let quoted = shlex::try_quote(&program)
                .context("the program has a path that no script can name")?;
            // The generator adds a second pair of quotes around the quoted program.
            let script = script.replace(&format!("\"{quoted}\" -- "), &format!("{quoted} -- "));
            format!(
                "{}{AROUND_BASH}",
                script.replace(&format!("-F {BASH} "), "-F _teddy ")
            )
        }
        Shell::Zsh => format!("{script}{GIT_ZSH}"),
        Shell::Fish => {
            // As in the script, with quotes that survive two rounds of parsing.
            let start = script.split_once("=fish ").map(|(_, start)| start);
            let quoted = start.and_then(|start| start.rsplit_once(" -- (commandline"));
            let quoted = quoted.map_or(program.as_str(), |(quoted, _)| quoted);
            format!(
                "{script}{}",
                GIT_FISH
                    .replace("VARIABLE", complete::VARIABLE)
                    .replace("PROGRAM", quoted)
            )
        }
        _ => script,
    };

    if app.global.json {
        app.print_json(&serde_json::json!({ "script": script }))
    } else {
        app.print(script)
    }
}

/// Returns how the script calls this program: by the name or path with which it was started.
fn program() -> String {
    let called = env::args().into_iter().next().unwrap_or_default();
    let is_name = Path::new(&called).components().count() == 1;
    let path = env::current_dir()
        .ok()
        .filter(|_| !is_name)
        .map(|dir| dir.join(&called).into_os_string());
    path.unwrap_or(called).to_string_lossy().into_owned()
}
