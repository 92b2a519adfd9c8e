//! What the server answers: a page, or what is wrong with it. Nothing that is asked writes.
//!
//! The project is opened anew for each page. So a repository that goes away is missed only by the
//! pages that are asked for while it is gone, and a session that changes is seen.

use std::path::PathBuf;

use super::address::{WebPage, read};
use super::guard::{WebGuard, guarded};
use super::pages::ProjectPages;
use crate::git::refs;
use crate::host::serve::{PageAnswer, PageRequest, plain};
use crate::text::digest;
use crate::ui::html::layout::{ICON, PageMode, PagePlace, SCRIPT, STYLE, trouble};
use crate::workflow::project::{Project, ProjectOptions, UserFolders};

/// Where all refs of TeDDy's are.
const REFS: &str = "refs/teddy/";

/// What is served.
pub struct Site {
    /// Who may look.
    pub guard: WebGuard,
    /// How the project is called.
    pub name: String,
    /// Where it is.
    pub folder: PathBuf,
    /// Where the user's things are.
    pub places: UserFolders,
    /// What the command line said.
    pub wanted: ProjectOptions,
}

impl Site {
    /// Answers a request.
    pub fn answer(&self, asked: &PageRequest) -> PageAnswer {
        guarded(match self.guard.inside(asked) {
            Ok(path) => self.page(path, &asked.query),
            Err(refusal) => refusal,
        })
    }

    /// Answers with what an address means.
    fn page(&self, path: &str, query: &str) -> PageAnswer {
        let file = |kind, text: &str| PageAnswer {
            kind,
            ..plain(200, text)
        };
        let page = match read(path, query) {
            None => return self.trouble(path, 404, ("Not found", "There is no such page.")),
            Some(WebPage::Style) => return file("text/css; charset=utf-8", STYLE),
            Some(WebPage::Script) => return file("text/javascript; charset=utf-8", SCRIPT),
            Some(WebPage::Icon) => return file("image/svg+xml", ICON),
            Some(page) => page,
        };

        let places = self.places.clone();
        let project = match Project::open_record(&self.folder, places, self.wanted.clone()) {
            Ok(project) => project,
            Err(error) if page == WebPage::State => return plain(503, &format!("{error:#}\n")),
            Err(error) => {
                let why = format!("{error:#}\n\nThis page comes back when the repository does.");
                return self.trouble(path, 503, ("The repository cannot be read", &why));
            }
        };
        match self.made(&project, &page) {
            Ok(text) if page == WebPage::State => plain(200, &text),
            Ok(text) => file("text/html; charset=utf-8", &text),
            Err(error) => {
                let why = format!("{error:#}");
                self.trouble(path, 404, ("This cannot be shown", &why))
            }
        }
    }

    /// Makes a page.
    fn made(&self, project: &Project, page: &WebPage) -> anyhow::Result<String> {
        let pages = ProjectPages {
            project,
            name: &self.name,
        };
        match page {
            WebPage::Session(session) => pages.session(session),
            WebPage::Turn(session, number) => pages.turn(session, *number),
            WebPage::Compare(names) => pages.compare(names),
            WebPage::Search(wanted) => pages.search(wanted),
            WebPage::State => state(project),
            _ => pages.sessions(),
        }
    }

    /// Answers with a page that says what is wrong.
    fn trouble(&self, path: &str, status: u16, (title, why): (&str, &str)) -> PageAnswer {
        let depth = path.matches('/').count();
        let place = PagePlace {
            depth,
            mode: PageMode::Live,
        };
        PageAnswer {
            kind: "text/html; charset=utf-8",
            ..plain(status, &trouble(place, title, why))
        }
    }
}

/// Returns a word that is another one whenever a session has changed.
fn state(project: &Project) -> anyhow::Result<String> {
    let found = refs::list(&project.repository, REFS)?;
    let mut text = String::new();
    for reference in found {
        text += &format!("{} {}\n", reference.name, reference.target);
    }
    let in_use = project.session().map(|name| name.to_string());
    Ok(digest(&(text + &in_use.unwrap_or_default())))
}
