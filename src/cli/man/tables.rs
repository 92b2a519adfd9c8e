//! Exit codes and environment variables for the manual, as in `docs/cli.md`.

pub(super) const EXIT_STATUS: &[(&str, &str)] = &[
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
        "the turn is recorded, but your files were not updated, because it overlaps with your own edits; or land changed nothing, because a turn overlaps with HEAD, or your files lack what would land",
    ),
    (
        "5",
        "the model waits for your answer, or the work is unfinished and no command continues it",
    ),
    ("75", "another teddy process is working here; try again"),
    (
        "130",
        "interrupted by ctrl-c, TERM or HUP: your files are unchanged, unless the turn had already been recorded (safety)",
    ),
];

pub(super) const ENVIRONMENT: &[(&str, &str)] = &[
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
        let document = include_str!("../../../docs/cli.md");
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
