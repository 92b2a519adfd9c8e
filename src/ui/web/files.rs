//! Exports sessions as HTML files, without scripts and with keys redacted.

use crate::project::Project;
use crate::query::log::{self, LogRow};
use crate::query::view::timeline::{SessionPage, Timeline, session_page};
use crate::query::view::turn_page::{ChangedFile, plain_turn_page};
use crate::session::bare::Redaction;
use crate::session::name::SessionName;
use crate::session::turn::Turn;
use crate::ui::html::layout::{self, ICON, PageLocation, PageMode, STYLE};
use crate::ui::html::session;
use crate::ui::html::sessions;
use crate::ui::html::turn::{self, ShownTurn};

/// Writes a file, given its path below the output directory and its contents.
type Writing<'a> = dyn FnMut(&str, &str) -> anyhow::Result<()> + 'a;

/// Sessions to export.
pub struct PageFiles<'a> {
    pub project: &'a Project,
    pub name: &'a str,
    pub sessions: &'a [SessionName],
    /// Redacts keys and personal names.
    pub redaction: &'a Redaction,
}

impl PageFiles<'_> {
    /// Writes all pages. A damaged turn becomes a page that says so.
    pub fn write(&self, write: &mut Writing<'_>) -> anyhow::Result<()> {
        let mut timeline = Timeline::default();
        for session in self.sessions {
            let page = self.session(session)?;
            let location = PageLocation::of(session, PageMode::File);
            let text = session::session(location, &self.name(), &page, false);
            write(&layout::session_page(session), &text)?;
            for (at, row) in page.lane.rows.iter().enumerate() {
                let text = self.turn(&page, at);
                write(&layout::turn_page(session, row.number), &text)?;
            }
            timeline.sessions.push(page.lane);
        }

        let first = PageLocation::first(PageMode::File);
        let text = sessions::sessions(first, &self.name(), &timeline, &[]);
        write("index.html", &text)?;
        write("style.css", STYLE)?;
        write("icon.svg", ICON)
    }

    /// The name of the project can contain the name of a person.
    fn name(&self) -> String {
        self.redaction.text(self.name).into_owned()
    }

    /// Reads a session. If its parent is not exported, the page includes the turns shared with it.
    fn session(&self, session: &SessionName) -> anyhow::Result<SessionPage> {
        let mut page = session_page(self.project, session)?;
        let is_there = |name: &SessionName| self.sessions.contains(name);
        if page
            .lane
            .parent
            .take_if(|(parent, _)| !is_there(parent))
            .is_some()
            && let Ok(rows) = log::rows(self.project, session)
        {
            page.lane.rows = rows;
        }

        // Links to sessions that are not exported would be dead.
        page.forks
            .values_mut()
            .for_each(|forks| forks.retain(&is_there));
        // Local state, which means nothing to the reader of an export.
        page.lane.in_use = false;
        self.redaction.session(&mut page);
        Ok(page)
    }

    fn turn(&self, page: &SessionPage, at: usize) -> String {
        let (session, rows) = (&page.lane.name, &page.lane.rows);
        let location = PageLocation::of(session, PageMode::File);
        let repository = &self.project.repository;
        let row = &rows[at];
        let read = Turn::read(repository, session, row.commit);
        let turn_page =
            match read.and_then(|turn| plain_turn_page(self.project, &turn, self.redaction)) {
                Ok(turn_page) => turn_page,
                // A damaged turn must not prevent the export of the others.
                Err(error) => {
                    let title = format!("Turn {} cannot be shown", row.number);
                    let why = format!("{error:#}");
                    return layout::trouble(location, &title, &self.redaction.text(&why));
                }
            };

        let link = |row: &LogRow| layout::turn_page(session, row.number);
        // Rows end at a damaged turn, and the shared ones can be further back.
        let shared = page.lane.parent.as_ref();
        let shared = shared.filter(|(_, number)| number + 1 == row.number);
        let shared = shared.map(|(parent, number)| layout::turn_page(parent, *number));
        let shown_turn = ShownTurn {
            project: &self.name(),
            session,
            page: &turn_page,
            neighbors: [
                rows.get(at + 1).map(link).or(shared),
                at.checked_sub(1).map(|at| link(&rows[at])),
            ],
            load: &|file: &ChangedFile| {
                let [before, after] = [file.before(repository), file.after(repository)];
                (self.redaction.file(before), self.redaction.file(after))
            },
        };
        turn::turn(location, &shown_turn)
    }
}
