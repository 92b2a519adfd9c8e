//! Answers the requests of the web server. Read-only.
//!
//! Opens the project for each page, so no state becomes stale, and a repository that is temporarily
//! missing affects only requests made meanwhile.

use std::path::PathBuf;

use super::address::{WebPage, parse_page};
use super::guard::{WebGuard, with_security_headers};
use super::pages::ProjectPages;
use crate::git::refs;
use crate::host::serve::{PageAnswer, PageRequest, plain};
use crate::text::digest;
use crate::ui::html::layout::{ICON, PageLocation, PageMode, SCRIPT, STYLE, trouble};
use crate::workflow::project::{Project, ProjectOptions, UserDirs};

/// Prefix of all refs of TeDDy.
const TEDDY_REFS: &str = "refs/teddy/";

/// Configuration of the web server.
pub struct Site {
    /// Access control.
    pub guard: WebGuard,
    /// Name of the project.
    pub name: String,
    /// Directory of the project.
    pub dir: PathBuf,
    /// Directories of the user.
    pub user_dirs: UserDirs,
    /// Options from the command line.
    pub options: ProjectOptions,
}

impl Site {
    /// Answers a request.
    pub fn answer(&self, asked: &PageRequest) -> PageAnswer {
        with_security_headers(match self.guard.inside(asked) {
            Ok(path) => self.page(path, &asked.query),
            Err(refusal) => refusal,
        })
    }

    fn page(&self, path: &str, query: &str) -> PageAnswer {
        let file = |kind, text: &str| PageAnswer {
            kind,
            ..plain(200, text)
        };
        let page = match parse_page(path, query) {
            None => return self.trouble(path, 404, ("Not found", "There is no such page.")),
            Some(WebPage::Style) => return file("text/css; charset=utf-8", STYLE),
            Some(WebPage::Script) => return file("text/javascript; charset=utf-8", SCRIPT),
            Some(WebPage::Icon) => return file("image/svg+xml", ICON),
            Some(page) => page,
        };

        let user_dirs = self.user_dirs.clone();
        let project = match Project::open_record(&self.dir, user_dirs, self.options.clone()) {
            Ok(project) => project,
            // The script polls this address and needs only the status.
            Err(error) if page == WebPage::State => return plain(503, &format!("{error:#}\n")),
            Err(error) => {
                let why = format!("{error:#}\n\nThis page comes back when the repository does.");
                return self.trouble(path, 503, ("The repository cannot be read", &why));
            }
        };
        match self.render(&project, &page) {
            Ok(text) if page == WebPage::State => plain(200, &text),
            Ok(text) => file("text/html; charset=utf-8", &text),
            Err(error) => {
                let why = format!("{error:#}");
                self.trouble(path, 404, ("This cannot be shown", &why))
            }
        }
    }

    fn render(&self, project: &Project, page: &WebPage) -> anyhow::Result<String> {
        let pages = ProjectPages {
            project,
            name: &self.name,
        };
        match page {
            WebPage::Session(session) => pages.session(session),
            WebPage::Turn(session, number) => pages.turn(session, *number),
            WebPage::Compare(names) => pages.compare(names),
            WebPage::Search(request) => pages.search(request),
            WebPage::State => state_digest(project),
            // The caller has answered requests for files.
            _ => pages.sessions(),
        }
    }

    fn trouble(&self, path: &str, status: u16, (title, why): (&str, &str)) -> PageAnswer {
        // The page can be below any directory, and its links are relative.
        let depth = path.matches('/').count();
        let location = PageLocation {
            depth,
            mode: PageMode::Live,
        };
        PageAnswer {
            kind: "text/html; charset=utf-8",
            ..plain(status, &trouble(location, title, why))
        }
    }
}

/// Returns a digest that changes with every session and with the session in use.
fn state_digest(project: &Project) -> anyhow::Result<String> {
    let references = refs::list(&project.repository, TEDDY_REFS)?;
    let mut text = String::new();
    for reference in references {
        text += &format!("{} {}\n", reference.name, reference.target);
    }
    let in_use = project.session().map(|name| name.to_string());
    Ok(digest(&(text + &in_use.unwrap_or_default())))
}
