//! Web server and HTML export of sessions: access control, addresses, pages.

pub mod files;

use std::path::PathBuf;

use anyhow::Context as _;

use crate::git::{diff, refs};
use crate::host::serve::{PageAnswer, PageRequest, is_same_token, plain};
use crate::plan;
use crate::project::{Project, ProjectOptions, UserDirs};
use crate::query::find::{LinePattern, Query, TurnPart, find};
use crate::query::history::remote_rows;
use crate::query::view::timeline::{session_page, timeline};
use crate::query::view::turn_page::{ChangedFile, FileView, turn_page};
use crate::session::artifact;
use crate::session::name::SessionName;
use crate::text::{digest, percent_decoded};
use crate::ui::html::changes::Changes;
use crate::ui::html::layout::{self, ICON, POLICY, PageLocation, PageMode, SCRIPT, STYLE, trouble};
use crate::ui::html::served::{self, ShownPlan, WebSearch};
use crate::ui::html::session;
use crate::ui::html::sessions;
use crate::ui::html::turn::{self, ShownTurn};
use crate::workflow::compare::sides;
use crate::workflow::dry_run::dry_run;
use crate::workspace::file_move::PathChange;

// Answers the requests of the web server. Read-only.
//
// Opens the project for each page, so no state becomes stale, and a repository that is temporarily
// missing affects only requests made meanwhile.

const TEDDY_REFS: &str = "refs/teddy/";

/// Configuration of the web server.
pub struct Site {
    /// Access control.
    pub guard: WebGuard,
    pub name: String,
    /// Directory of the project.
    pub dir: PathBuf,
    pub user_dirs: UserDirs,
    /// Options from the command line.
    pub options: ProjectOptions,
}

impl Site {
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
        match page {
            WebPage::Session(session) => self.session(project, session),
            WebPage::Turn(session, number) => self.turn(project, session, *number),
            WebPage::Plan(session) => self.plan(project, session),
            WebPage::Compare(names) => self.compare(project, names),
            WebPage::Search(request) => self.search(project, request),
            WebPage::State => state_digest(project),
            // The caller has answered requests for files.
            _ => self.sessions(project),
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

/// Files in the comparison of two turns.
const MAX_FILES: usize = 1000;

impl Site {
    fn sessions(&self, project: &Project) -> anyhow::Result<String> {
        Ok(sessions::sessions(
            PageLocation::first(PageMode::Live),
            &self.name,
            &timeline(project, None)?,
            &remote_rows(project)?,
        ))
    }

    fn session(&self, project: &Project, session: &SessionName) -> anyhow::Result<String> {
        let page = session_page(project, session)?;
        let location = PageLocation::of(session, PageMode::Live);
        let store = project.store();
        let draft = store.tip(session).and_then(|tip| store.draft(&tip));
        // The page of a plan that cannot be read says why.
        let has_plan = draft.map_or(true, |draft| draft.is_planned());
        Ok(session::session(location, &self.name, &page, has_plan))
    }

    fn plan(&self, project: &Project, session: &SessionName) -> anyhow::Result<String> {
        let store = project.store();
        let tip = store.tip(session)?;
        let draft = store.draft(&tip)?;
        let run = dry_run(project, &tip, &draft)?;
        let files: Vec<ChangedFile> = run
            .files
            .iter()
            .take(MAX_FILES)
            .map(|(path, file)| {
                ChangedFile::planned(path, PathChange::of(&file.before, &file.after))
            })
            .collect();
        let written = draft.artifacts.text_or_empty(artifact::PLAN);
        let mistakes: Vec<String> = run
            .diagnostics
            .iter()
            .map(|mistake| mistake.message.clone())
            .collect();
        let shown = ShownPlan {
            project: &self.name,
            session,
            in_use: project.session().is_ok_and(|used| used == *session),
            number: draft.meta.number,
            title: &plan::parse(&written).0.title,
            digest: &digest(&written),
            changes: Changes {
                files: &files,
                left_out: run.files.len() - files.len(),
                load: &|file: &ChangedFile| {
                    let file = run.files.get(&file.path);
                    let before = file.and_then(|file| file.before.as_deref());
                    let after = file.and_then(|file| file.after.as_deref());
                    (FileView::of_version(before), FileView::of_version(after))
                },
            },
            commands: run.commands,
            mistakes: &mistakes,
        };
        Ok(served::waiting(
            PageLocation::of(session, PageMode::Live),
            &shown,
        ))
    }

    fn turn(
        &self,
        project: &Project,
        session: &SessionName,
        number: u64,
    ) -> anyhow::Result<String> {
        let store = project.store();
        let turn = store.turn(session, &number.to_string())?;
        let page = turn_page(project, &turn)?;
        let repository = &project.repository;
        // If the tip is damaged, older turns can still be shown.
        let last = store.tip(session).map_or(number, |tip| tip.number());
        let shown_turn = ShownTurn {
            project: &self.name,
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

    fn compare(&self, project: &Project, names: &[String]) -> anyhow::Result<String> {
        let names = names.get(..2).context("Mark two turns to compare them.")?;
        let sides = sides(project, names)?;
        let [a, b] = sides.as_slice() else {
            anyhow::bail!("two sides are compared")
        };
        let repository = &project.repository;
        let changes = diff::changes(repository, a.tree, b.tree)?;
        let left_out = changes.len().saturating_sub(MAX_FILES);
        let files: Vec<ChangedFile> = changes
            .into_iter()
            .take(MAX_FILES)
            .map(ChangedFile::of)
            .collect();

        let changes = Changes {
            files: &files,
            left_out,
            load: &|file: &ChangedFile| (file.before(repository), file.after(repository)),
        };
        let location = PageLocation::first(PageMode::Live);
        Ok(served::compare(location, &self.name, &sides, &changes))
    }

    /// Renders the search page. An invalid pattern is reported on the page.
    fn search(&self, project: &Project, request: &WebSearch) -> anyhow::Result<String> {
        let location = PageLocation::first(PageMode::Live);
        let page = |result| served::search(location, &self.name, request, result);
        if request.text.is_empty() {
            return Ok(page(None));
        }
        let pattern = match LinePattern::new(&request.text, !request.has_case, false) {
            Ok(pattern) => pattern,
            Err(why) => {
                let why = format!("This is not a regular expression: {why}");
                return Ok(page(Some(Err(why))));
            }
        };

        let query = Query {
            pattern,
            parts: request.parts.clone(),
            path: None,
            session: None,
        };
        let results = find(project, &query)?;
        Ok(page(Some(Ok((&results, &query.pattern)))))
    }
}

/// In characters.
const MAX_PATTERN: usize = 1000;

/// A page or a file of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WebPage {
    Sessions,
    Session(SessionName),
    Turn(SessionName, u64),
    Plan(SessionName),
    /// Comparison of turns.
    Compare(Vec<String>),
    Search(WebSearch),
    /// Digest of the current state, which the script polls.
    State,
    Style,
    Script,
    Icon,
}

/// Parses an address below the secret path. Returns `None` if it is not valid.
pub fn parse_page(path: &str, query: &str) -> Option<WebPage> {
    match path {
        "" | "index.html" => return Some(WebPage::Sessions),
        "state" => return Some(WebPage::State),
        "style.css" => return Some(WebPage::Style),
        "live.js" => return Some(WebPage::Script),
        "icon.svg" => return Some(WebPage::Icon),
        "find.html" => return Some(WebPage::Search(parse_search(query))),
        "compare.html" => {
            let turns = query_fields(query)
                .into_iter()
                .filter(|(name, _)| name == "t");
            return Some(WebPage::Compare(turns.map(|(_, value)| value).collect()));
        }
        _ => {}
    }

    let path = decoded(path.strip_prefix("s/")?)?;
    let (session, page) = path.rsplit_once('/')?;
    // Also rejects `..`: the name must be a valid session name.
    let session = SessionName::from_address(session).ok()?;
    match page {
        "" | "index.html" => Some(WebPage::Session(session)),
        layout::PLAN_PAGE => Some(WebPage::Plan(session)),
        page => Some(WebPage::Turn(
            session,
            page.strip_suffix(".html")?.parse().ok()?,
        )),
    }
}

fn parse_search(query: &str) -> WebSearch {
    let fields = query_fields(query);
    let value = |name: &str| {
        fields
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value)
    };
    let is_asked = |name: &str| {
        fields
            .iter()
            .any(|(key, value)| key == "in" && value == name)
    };
    let parts = served::PARTS.iter().filter(|(_, name)| is_asked(name));
    let mut parts: Vec<TurnPart> = parts.map(|(part, _)| *part).collect();
    if parts.is_empty() {
        // A form without a checked box searches the default parts.
        parts = TurnPart::DEFAULT.to_vec();
    }

    let text = value("q").map_or("", String::as_str);
    WebSearch {
        text: text.chars().take(MAX_PATTERN).collect(),
        parts,
        has_case: value("case").is_some(),
    }
}

fn query_fields(query: &str) -> Vec<(String, String)> {
    let pair = |part: &str| {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        Some((decoded(name)?, decoded(value)?))
    };
    // In a form, `+` is a space.
    let query = query.replace('+', " ");
    query.split('&').filter_map(pair).collect()
}

/// `None` if the result is not valid UTF-8.
fn decoded(text: &str) -> Option<String> {
    String::from_utf8(percent_decoded(text.as_bytes())).ok()
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

#[cfg(test)]
mod pages_tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, expected: Option<WebPage>) {
        assert_eq!(parse_page(path, ""), expected, "{path}");
    }

    #[test]
    fn an_address_means_a_page_or_nothing() {
        let name = |text| SessionName::from_address(text).unwrap();
        check("", Some(WebPage::Sessions));
        check("s/demo/", Some(WebPage::Session(name("demo"))));
        check("s/demo/index.html", Some(WebPage::Session(name("demo"))));
        check(
            "s/change/a-b/12.html",
            Some(WebPage::Turn(name("change/a-b"), 12)),
        );
        check(
            "s/o%22x/demo/0.html",
            Some(WebPage::Turn(name("o\"x/demo"), 0)),
        );
        check("s/demo/plan.html", Some(WebPage::Plan(name("demo"))));
        for nothing in [
            "s/demo",
            "s/",
            "s//1.html",
            "s/../1.html",
            "s/demo/x.html",
            "s/plan.html",
            "s/demo/-1.html",
            "s/demo/1",
            "../style.css",
            "s/%ff/1.html",
            "s/%2/1.html",
            "s/DEMO/1.html",
            "s/demo/99999999999999999999.html",
        ] {
            check(nothing, None);
        }
    }

    #[test]
    fn a_form_says_what_is_searched_for() {
        let Some(WebPage::Search(search)) =
            parse_page("find.html", "q=a+%2B%C3%A9&in=plan&in=x&case=1")
        else {
            panic!("it is a search")
        };
        assert_eq!(search.text, "a +é");
        assert_eq!(
            (search.parts, search.has_case),
            (vec![TurnPart::Plan], true)
        );
        let compared = parse_page("compare.html", "t=a%3A1&t=a%3A2&x=y&t=%ff");
        let names = ["a:1", "a:2"].map(str::to_owned).to_vec();
        assert_eq!(compared, Some(WebPage::Compare(names)));
    }
}
