//! Web server and HTML export of sessions: access control, addresses, pages.

pub mod files;
pub mod pages;

use std::path::PathBuf;

use pages::ProjectPages;

use crate::git::refs;
use crate::host::serve::is_same_token;
use crate::host::serve::{PageAnswer, PageRequest, plain};
use crate::project::{Project, ProjectOptions, UserDirs};
use crate::text::digest;
use crate::ui::html::layout::{ICON, POLICY, PageLocation, PageMode, SCRIPT, STYLE, trouble};
use crate::ui::web::pages::{WebPage, parse_page};

// Answers the requests of the web server. Read-only.
//
// Opens the project for each page, so no state becomes stale, and a repository that is temporarily
// missing affects only requests made meanwhile.

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
            None => return self.trouble(path, 404, "Not found", "There is no such page."),
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
                return self.trouble(path, 503, "The repository cannot be read", &why);
            }
        };
        match self.render(&project, &page) {
            Ok(text) if page == WebPage::State => plain(200, &text),
            Ok(text) => file("text/html; charset=utf-8", &text),
            Err(error) => {
                let why = format!("{error:#}");
                self.trouble(path, 404, "This cannot be shown", &why)
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
            WebPage::Plan(session) => pages.plan(session),
            WebPage::Compare(names) => pages.compare(names),
            WebPage::Search(request) => pages.search(request),
            WebPage::State => state_digest(project),
            // The caller has answered requests for files.
            _ => pages.sessions(),
        }
    }

    fn trouble(&self, path: &str, status: u16, title: &str, why: &str) -> PageAnswer {
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

// Access control of the web server: secret path and host name.
//
// Any web page can make the browser send requests to this machine, but does not know the secret. A
// DNS name that an attacker points at this machine (DNS rebinding) arrives in the `Host` header
// and is refused before the secret is compared.

/// Requirements for every request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebGuard {
    /// First component of every path.
    pub token: String,
    /// Port in the `Host` header.
    pub port: u16,
}

/// Answer to a request without the secret.
const NOT_FOUND: &str = "There is nothing here. The address that `teddy web` printed is whole only \
    with the secret word in it.\n";

impl WebGuard {
    /// Returns the address of the first page.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/{}/", self.port, self.token)
    }

    /// Returns the path below the secret, or the answer that refuses the request.
    pub fn inside<'a>(&self, asked: &'a PageRequest) -> Result<&'a str, PageAnswer> {
        let is_ours = |host: &str| {
            let names = ["127.0.0.1", "localhost"];
            names
                .iter()
                .any(|name| host.eq_ignore_ascii_case(&format!("{name}:{}", self.port)))
        };
        if !asked.host.as_deref().is_some_and(is_ours) {
            return Err(plain(
                403,
                "This server answers only to the name 127.0.0.1.\n",
            ));
        }

        let path = asked.path.strip_prefix('/').unwrap_or_default();
        let (token, subpath) = path
            .split_once('/')
            .map_or((path, None), |(a, b)| (a, Some(b)));
        // Constant time, so that timing does not reveal the secret.
        match (is_same_token(token, &self.token), subpath) {
            (true, Some(subpath)) => Ok(subpath),
            // Relative links need the trailing slash.
            (true, None) => Err(PageAnswer {
                headers: vec![("location", format!("/{}/", self.token))],
                ..plain(308, "")
            }),
            (false, _) => Err(plain(404, NOT_FOUND)),
        }
    }
}

/// Adds headers that forbid everything a page does not need.
pub fn with_security_headers(mut answered: PageAnswer) -> PageAnswer {
    let headers = [
        (
            "content-security-policy",
            format!("{POLICY}; frame-ancestors 'none'"),
        ),
        ("x-content-type-options", "nosniff".to_owned()),
        ("x-frame-options", "DENY".to_owned()),
        ("referrer-policy", "no-referrer".to_owned()),
        ("cross-origin-resource-policy", "same-origin".to_owned()),
        ("cross-origin-opener-policy", "same-origin".to_owned()),
        ("cache-control", "no-store".to_owned()),
    ];
    answered.headers.extend(headers);
    answered
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(host: Option<&str>, path: &str, expected: Result<&str, u16>) {
        let guard = WebGuard {
            token: "w0rd".to_owned(),
            port: 80,
        };
        let asked = PageRequest {
            path: path.to_owned(),
            query: String::new(),
            host: host.map(str::to_owned),
        };
        let result = guard.inside(&asked).map_err(|answered| answered.status);
        assert_eq!(result, expected, "{host:?} {path}");
    }

    #[test]
    fn only_the_whole_address_leads_inside() {
        let here = Some("127.0.0.1:80");
        check(here, "/w0rd/", Ok(""));
        check(here, "/w0rd/s/demo/1.html", Ok("s/demo/1.html"));
        check(Some("LOCALHOST:80"), "/w0rd/", Ok(""));
        check(here, "/w0rd", Err(308));
        check(here, "/w0rdy/", Err(404));
        check(here, "/W0RD/", Err(404));
        check(here, "//w0rd/", Err(404));
        check(here, "/", Err(404));
        check(here, "", Err(404));
    }

    #[test]
    fn another_name_leads_nowhere() {
        for host in [
            "evil.example",
            "evil.example:80",
            "127.0.0.1",
            "127.0.0.1:81",
            "localhost",
            "",
        ] {
            check(Some(host), "/w0rd/", Err(403));
        }
        check(None, "/w0rd/", Err(403));
    }
}
