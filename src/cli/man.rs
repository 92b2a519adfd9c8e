//! `teddy man`: shows or writes manual pages.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Command;
use clap_mangen::Man;

use super::app::App;
use crate::host::file::{FileMode, Root, make_shared_dirs, replace_entry};
use crate::host::{foreground, process, screen};

/// Show the manual page, or write one page per command
///
/// Into a pipe or file the page goes as it is, for `man -l -`.
///
/// `git teddy --help` shows `git-teddy.1` once `man` can find it; `man` searches `share/man/man1`
/// beside each `bin` directory of PATH.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  teddy man | man -l -\n  teddy man --out ~/.cargo/share/man/man1\n  man teddy-restore"
)]
pub(super) struct Args {
    /// Write `teddy.1`, `git-teddy.1` and `teddy-<command>.1` to this directory, created if it does
    /// not exist
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    out: Option<PathBuf>,
}

/// Footer of a page.
const SOURCE: &str = concat!("teddy ", env!("CARGO_PKG_VERSION"));

/// Last section of a command's page.
const SEE_ALSO: &str = ".SH SEE ALSO\nteddy(1), for exit codes and environment variables\n";

pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<()> {
    let mut command = super::parser().disable_help_subcommand(true);
    command.build();
    let Some(out_dir) = args.out else {
        show(app, &mut command)?;
        return Ok(());
    };

    let out_dir = app.dir()?.join(out_dir);
    let dir =
        open_output_dir(&out_dir).with_context(|| format!("making `{}`", out_dir.display()))?;
    let root = page(&command)?;
    for (name, page) in [
        ("teddy".to_owned(), root.clone()),
        ("git-teddy".to_owned(), root),
    ]
    .into_iter()
    .chain(subcommand_pages(&command)?)
    {
        let name = PathBuf::from(format!("{name}.1"));
        let written = match dir.kind(&name)? {
            None => dir.create_new(&name, &page, FileMode::Plain),
            // A link is replaced, so that nothing is written where it leads.
            Some(_) => replace_entry(&dir, &name, &page, FileMode::Plain),
        };
        written.with_context(|| format!("writing `{}`", out_dir.join(&name).display()))?;
    }

    if app.global.json {
        app.print_json(&serde_json::json!({ "folder": out_dir }))?;
    } else {
        app.note(&format!("Wrote the manual to {}.", out_dir.display()));
    }

    Ok(())
}

/// Opens the directory for the pages, and makes it if it does not exist. Its parents can be links,
/// and it cannot: the user might not know where a link in a project leads.
fn open_output_dir(out_dir: &Path) -> anyhow::Result<Root> {
    let mut path = out_dir.components().as_path().to_owned();
    if let Some(name) = path.file_name().map(std::ffi::OsStr::to_owned) {
        let above = path.parent().unwrap_or(Path::new("/")).to_owned();
        if !above.exists() {
            make_shared_dirs(&above)?;
        }
        path = above.canonicalize()?.join(name);
    }
    let is_link = path
        .symlink_metadata()
        .is_ok_and(|metadata| metadata.is_symlink());
    anyhow::ensure!(
        !is_link,
        "it is a symbolic link; name the directory it leads to"
    );
    make_shared_dirs(&path)?;
    Ok(Root::open_strictly(&path.canonicalize()?)?)
}

/// Shows the page: through `man` at a terminal if available, else as help.
fn show(app: &App, command: &mut Command) -> anyhow::Result<()> {
    let page = page(command)?;
    if app.global.json {
        return app.print_json(&serde_json::json!({ "page": String::from_utf8_lossy(&page) }));
    }
    if !screen::is_stdout() {
        return app.print(page);
    }

    if process::find("man").is_some() && foreground::read_manual(&page)?.success() {
        return Ok(());
    }
    let help = command.render_long_help().to_string();
    Ok(crate::host::output::page(&help, None)?)
}

/// Returns the pages of all subcommands, by name.
fn subcommand_pages(command: &Command) -> anyhow::Result<Vec<(String, Vec<u8>)>> {
    let mut pages = Vec::new();
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
        pages.push((name(sub).to_owned(), page(sub)?));
        pages.extend(subcommand_pages(sub)?);
    }
    Ok(pages)
}

/// Returns the name of a command's page, such as `teddy-change-plan`.
fn name(command: &Command) -> &str {
    command
        .get_display_name()
        .unwrap_or_else(|| command.get_name())
}

fn page(command: &Command) -> anyhow::Result<Vec<u8>> {
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ");
    let is_root = name(command) == command.get_name();
    let (names, usage) = if is_root {
        (
            format!("{0}, git-{0}", name(command)),
            format!("{usage}\ngit {usage}"),
        )
    } else {
        (name(command).to_owned(), usage.to_owned())
    };

    let about = command
        .get_about()
        .map(ToString::to_string)
        .unwrap_or_default();
    // The library's own synopsis omits the values of options.
    let man = Man::new(command.clone().override_usage(usage)).source(SOURCE);
    let mut text = Vec::new();
    man.render_title(&mut text)?;
    text.extend_from_slice(
        format!(".SH NAME\n{}\n", escaped(&format!("{names} - {about}"))).as_bytes(),
    );
    man.render_synopsis_section(&mut text)?;
    man.render_description_section(&mut text)?;
    if command.get_arguments().next().is_some() {
        man.render_options_section(&mut text)?;
    }

    if command.has_subcommands() {
        man.render_subcommands_section(&mut text)?;
    }

    let footer = match is_root {
        true => definitions("EXIT STATUS", EXIT_STATUS) + &definitions("ENVIRONMENT", ENVIRONMENT),
        false => SEE_ALSO.to_owned(),
    };
    text.extend_from_slice((examples(command) + &footer).as_bytes());
    Ok(text)
}

fn definitions(title: &str, rows: &[(&str, &str)]) -> String {
    let row = |(name, text): &(&str, &str)| format!(".TP\n{}\n{}\n", escaped(name), escaped(text));
    format!(".SH {title}\n{}", rows.iter().map(row).collect::<String>())
}

/// Returns the section with a command's examples, line by line.
fn examples(command: &Command) -> String {
    let help = command
        .get_after_help()
        .map(ToString::to_string)
        .unwrap_or_default();
    let lines = help
        .lines()
        .filter(|line| !matches!(*line, "Examples:" | "Example:"));
    format!(
        ".SH EXAMPLES\n.nf\n{}.fi\n",
        lines
            .map(|line| format!("{}\n", escaped(line)))
            .collect::<String>()
    )
}

/// Escapes a line for roff. Hyphens stay copyable as such.
fn escaped(line: &str) -> String {
    let text = line
        .replace('\\', "\\e")
        .replace('-', "\\-")
        .replace('\'', "\\(aq")
        .replace('`', "\\(ga")
        .replace('^', "\\(ha")
        .replace('~', "\\(ti");
    if text.starts_with('.') {
        format!("\\&{text}")
    } else {
        text
    }
}

const EXIT_STATUS: &[(&str, &str)] = &[
    ("0", "success"),
    (
        "1",
        "failure: an action failed, or something else went wrong. If an error such as a full disk interrupted the plan, your files are unchanged. Also if you answered no to a question such as Send ...?, so that nothing was done",
    ),
    ("2", "the command line is wrong"),
    (
        "3",
        "the plan was rejected; the report says why, and another plan may be waiting",
    ),
    (
        "4",
        "the turn is recorded, but your files were not updated, because it overlaps with your own edits or a file cannot be written; or land changed nothing, because a turn overlaps with HEAD, or your files lack what would land",
    ),
    (
        "5",
        "the model waits for your answer, or the work is unfinished and no command continues it",
    ),
    ("75", "another teddy process is working here; try again"),
    ("127", "record did not find the program that it should run"),
    (
        "130",
        "interrupted by ctrl-c, TERM or HUP: your files are unchanged, unless the turn had already been recorded (safety)",
    ),
];

const ENVIRONMENT: &[(&str, &str)] = &[
    ("TEDDY_SESSION", "the session to work on; ignored if empty"),
    (
        "TEDDY_LOCK_TIMEOUT",
        "how many seconds a command waits for another process (30); it says for whom after one second",
    ),
    (
        "TEDDY_CONFIG",
        "your configuration file, instead of $XDG_CONFIG_HOME/teddy/config.yaml",
    ),
    (
        "TEDDY_SERVERS",
        "the addresses where setup looks for model servers, instead of the usual local ports; empty for none",
    ),
    (
        "TEDDY_DISCOVERY",
        "off: start no program and ask no server to find a model, and offer none; doctor does not ask whether the model's server is there",
    ),
    ("TEDDY_NOW", "the current time (RFC 3339), for tests"),
    (
        "OPENAI_API_KEY, OPENAI_BASE_URL, ANTHROPIC_API_KEY, ANTHROPIC_BASE_URL",
        "as elsewhere; see models",
    ),
    (
        "XDG_CONFIG_HOME, XDG_CACHE_HOME",
        "where settings and trust, and where worktrees and caches are kept",
    ),
    (
        "VISUAL, EDITOR, GIT_EDITOR, PAGER, GIT_PAGER, NO_COLOR",
        "as elsewhere",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the rows of a table in the document as plain text.
    fn rows(heading: &str) -> Vec<(String, String)> {
        let document = include_str!("../../docs/cli.md");
        let (_, section) = document.split_once(heading).expect("the heading is there");
        let table = section.lines().skip_while(|line| !line.starts_with("|---"));
        let rows = table.skip(1).take_while(|line| line.starts_with('|'));
        rows.map(|line| {
            let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
            (plain(cells[0]), plain(cells[1]))
        })
        .collect()
    }

    fn plain(cell: &str) -> String {
        let mut text = String::new();
        for (at, part) in cell.split("](").enumerate() {
            let part = match at {
                0 => part,
                _ => part.split_once(')').expect("a link ends").1,
            };
            text.push_str(&part.replace(['`', '['], ""));
        }
        text
    }

    #[test]
    fn the_tables_are_those_of_the_document() {
        let check = |heading: &str, table: &[(&str, &str)]| {
            let table = table.iter().map(|(name, text)| (*name, *text));
            let rows = rows(heading);
            let rows = rows
                .iter()
                .map(|(name, text)| (name.as_str(), text.as_str()));
            assert_eq!(table.collect::<Vec<_>>(), rows.collect::<Vec<_>>());
        };
        check("\n## Exit codes\n", EXIT_STATUS);
        check("\n## Environment\n", ENVIRONMENT);
    }
}
