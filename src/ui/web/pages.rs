//! Renders the pages of the web server from a project.

use anyhow::Context as _;

use super::address::WebSearch;
use crate::git::diff;
use crate::session::name::SessionName;
use crate::ui::html::changes::Changes;
use crate::ui::html::compare::{self, Compared};
use crate::ui::html::layout::{self, PageLocation, PageMode};
use crate::ui::html::search::{self, ShownSearch};
use crate::ui::html::session;
use crate::ui::html::sessions::{self, Overview};
use crate::ui::html::turn::{self, ShownTurn};
use crate::workflow::compare::sides;
use crate::workflow::find::{LinePattern, Query, find};
use crate::workflow::history::remote_rows;
use crate::workflow::project::Project;
use crate::workflow::view::session_page::session_page;
use crate::workflow::view::timeline::timeline;
use crate::workflow::view::turn_page::{ChangedFile, turn_page};

/// Files in the comparison of two turns.
const MAX_FILES: usize = 1000;

/// Renders pages of a project.
pub struct ProjectPages<'a> {
    /// The project.
    pub project: &'a Project,
    /// Name of the project.
    pub name: &'a str,
}

impl ProjectPages<'_> {
    /// Renders the list of sessions.
    pub fn sessions(&self) -> anyhow::Result<String> {
        let overview = Overview {
            project: self.name,
            timeline: &timeline(self.project, None)?,
            remote: &remote_rows(self.project)?,
        };
        Ok(sessions::sessions(
            PageLocation::first(PageMode::Live),
            &overview,
        ))
    }

    /// Renders the page of a session.
    pub fn session(&self, session: &SessionName) -> anyhow::Result<String> {
        let page = session_page(self.project, session)?;
        let location = PageLocation::of(session, PageMode::Live);
        Ok(session::session(location, self.name, &page))
    }

    /// Renders the page of a turn.
    pub fn turn(&self, session: &SessionName, number: u64) -> anyhow::Result<String> {
        let store = self.project.store();
        let turn = store.turn(session, &number.to_string())?;
        let page = turn_page(self.project, &turn)?;
        let repository = &self.project.repository;
        // If the tip is damaged, older turns can still be shown.
        let last = store.tip(session).map_or(number, |tip| tip.number());
        let shown_turn = ShownTurn {
            project: self.name,
            session,
            page: &page,
            neighbors: [
                number
                    .checked_sub(1)
                    .map(|at| layout::turn_page(session, at)),
                (number < last).then(|| layout::turn_page(session, number + 1)),
            ],
            load: &|file: &ChangedFile| (file.before(repository), file.after(repository)),
        };
        Ok(turn::turn(
            PageLocation::of(session, PageMode::Live),
            &shown_turn,
        ))
    }

    /// Renders the comparison of two turns.
    pub fn compare(&self, names: &[String]) -> anyhow::Result<String> {
        let names = names.get(..2).context("Mark two turns to compare them.")?;
        let sides = sides(self.project, names)?;
        let [a, b] = sides.as_slice() else {
            anyhow::bail!("two sides are compared")
        };
        let repository = &self.project.repository;
        let changes = diff::changes(repository, a.tree, b.tree)?;
        let left_out = changes.len().saturating_sub(MAX_FILES);
        let files: Vec<ChangedFile> = changes
            .into_iter()
            .take(MAX_FILES)
            .map(ChangedFile::of)
            .collect();

        let compared = Compared {
            project: self.name,
            sides: &sides,
            changes: Changes {
                files: &files,
                left_out,
                load: &|file: &ChangedFile| (file.before(repository), file.after(repository)),
            },
        };
        Ok(compare::compare(
            PageLocation::first(PageMode::Live),
            &compared,
        ))
    }

    /// Renders the search page. An invalid pattern is reported on the page.
    pub fn search(&self, request: &WebSearch) -> anyhow::Result<String> {
        let pattern = LinePattern::new(&request.text, !request.has_case, false);
        let mut searched = ShownSearch {
            project: self.name,
            text: &request.text,
            parts: &request.parts,
            has_case: request.has_case,
            result: None,
        };
        let location = PageLocation::first(PageMode::Live);
        let pattern = match pattern {
            _ if request.text.is_empty() => return Ok(search::search(location, &searched)),
            Ok(pattern) => pattern,
            Err(why) => {
                searched.result = Some(Err(format!("This is not a regular expression: {why}")));
                return Ok(search::search(location, &searched));
            }
        };

        let query = Query {
            pattern,
            parts: request.parts.clone(),
            path: None,
            session: None,
        };
        let results = find(self.project, &query)?;
        searched.result = Some(Ok((&results, &query.pattern)));
        Ok(search::search(location, &searched))
    }
}
