//! `teddy man`

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;

use super::app::App;
use super::exit;

/// Print the manual page, or write one for each command
///
/// `git teddy --help` shows `git-teddy.1` where it is installed.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  teddy man | man -l -\n  teddy man --out ~/.local/share/man/man1")]
pub(super) struct Args {
    /// Write `teddy.1`, `git-teddy.1` and `teddy-<command>.1` into this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Prints or writes the pages.
pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<ExitCode> {
    let command = super::parser();
    let Some(folder) = args.out else {
        app.print(page(command)?)?;
        return Ok(exit::DONE.into());
    };
    std::fs::create_dir_all(&folder).with_context(|| format!("making `{}`", folder.display()))?;
    let mut pages = vec![("teddy".to_owned(), command.clone()), ("git-teddy".to_owned(), command.clone().name("git-teddy"))];
    pages.extend(command.get_subcommands().map(|sub| (format!("teddy-{}", sub.get_name()), sub.clone())));
    for (name, command) in pages {
        let path = folder.join(format!("{name}.1"));
        std::fs::write(&path, page(command)?).with_context(|| format!("writing `{}`", path.display()))?;
    }
    app.say(&format!("Wrote the manual to {}.", folder.display()));
    Ok(exit::DONE.into())
}

/// Writes a page.
fn page(command: clap::Command) -> anyhow::Result<Vec<u8>> {
    let mut text = Vec::new();
    clap_mangen::Man::new(command).render(&mut text)?;
    Ok(text)
}
