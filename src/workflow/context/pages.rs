//! Web pages and searches. Each page is fetched once per turn and stored with it, so that the
//! turn's input can be reproduced.

use std::collections::{BTreeMap, BTreeSet};

use crate::config::settings;
use crate::host::env;
use crate::host::search::{SearchEngine, search};
use crate::host::web::{FetchRules, fetch};
use crate::model::known;
use crate::plan::run::found_line;
use crate::project::Project;
use crate::session::artifact::{self, Artifacts};
use crate::session::draft::Draft;
use crate::session::turn::Turn;
use crate::text::digest;

const NOT_THEN: &str = "there was nothing when the turn ran";

pub struct Pages {
    rules: FetchRules,
    engine: SearchEngine,
    /// Of earlier turns.
    cached: BTreeMap<String, String>,
    /// By this turn.
    fetched: BTreeMap<String, Result<String, String>>,
    /// For a replay: lines of the original outputs. Nothing is fetched then.
    recorded: Option<BTreeSet<String>>,
}

impl Pages {
    /// For a replay: only what the turn stored is available.
    #[must_use]
    pub fn offline(mut self, turn: &Artifacts) -> Pages {
        self.know(turn);
        let outputs = turn
            .0
            .keys()
            .filter(|name| name.starts_with(artifact::OUTPUT))
            .filter_map(|name| turn.text(name));
        self.recorded = Some(
            outputs
                .flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>())
                .collect(),
        );

        self
    }

    pub fn know(&mut self, artifacts: &Artifacts) {
        let page_names = artifacts
            .0
            .keys()
            .filter(|name| name.starts_with(artifact::PAGES));
        for text in page_names.filter_map(|name| artifacts.text(name)) {
            if let Some((url, page)) = text.split_once("\n\n") {
                self.cached.insert(url.to_owned(), page.to_owned());
            }
        }
    }

    /// As address, blank line, text.
    pub fn keep_in(&self, artifacts: &mut Artifacts) {
        for (url, page) in &self.fetched {
            if let Ok(page) = page {
                artifacts.insert(
                    &format!("{}{}.md", artifact::PAGES, digest(url)),
                    format!("{url}\n\n{page}"),
                );
            }
        }
    }

    pub fn get(&mut self, url: &str) -> Result<String, String> {
        if let Some(result) = self.fetched.get(url) {
            return result.clone();
        }

        let page = match self.cached.remove(url) {
            Some(page) => Ok(page),
            None if self.recorded.is_some() => Err(NOT_THEN.to_owned()),
            None => fetch(url, &self.rules)
                .map(|page| page.text)
                .map_err(|error| error.to_string()),
        };
        // Failures too, so that a page is requested only once.
        self.fetched.insert(url.to_owned(), page.clone());
        page
    }

    pub fn search(&self, query: &str) -> Result<String, String> {
        if let Some(recorded) = &self.recorded {
            return if recorded.contains(&found_line(query)) {
                Ok(String::new())
            } else {
                Err(NOT_THEN.to_owned())
            };
        }

        let hits = search(&self.engine, query).map_err(|error| error.to_string())?;
        let lines = hits
            .iter()
            .map(|hit| format!("- {}\n  {}\n  {}\n", hit.title, hit.url, hit.snippet));
        let text: String = lines.collect();
        Ok(if text.is_empty() {
            "No result.\n".to_owned()
        } else {
            text
        })
    }
}

pub fn pages(project: &Project) -> Pages {
    let rules = FetchRules {
        allowed_hosts: project.settings.web.allow_hosts.clone(),
        ..FetchRules::default()
    };
    Pages {
        rules,
        engine: engine(project),
        cached: BTreeMap::new(),
        fetched: BTreeMap::new(),
        recorded: None,
    }
}

/// Why RESEARCH cannot search, with the setting to change.
pub fn search_obstacle(project: &Project) -> Option<String> {
    let research = &project.settings.research;
    let why = match engine(project) {
        SearchEngine::None => "no search engine is set up; `research.engine` names one".to_owned(),
        SearchEngine::Searxng { base_url } if base_url.is_empty() => {
            "`research.base_url` does not say where SearXNG is".to_owned()
        }
        SearchEngine::Brave { key } | SearchEngine::Tavily { key } if key.is_empty() => {
            let usual = usual_key(research.engine).unwrap_or_default();
            let name = research.api_key_env.as_deref().unwrap_or(usual);
            format!("the search engine's key is missing; `{name}` is not set")
        }
        SearchEngine::Command { run, .. } if run.is_empty() => {
            "`research.run` names no program".to_owned()
        }
        _ => return None,
    };
    Some(why)
}

fn engine(project: &Project) -> SearchEngine {
    let research = &project.settings.research;
    let configured = research.api_key_env.as_deref();
    let key = || {
        let name = configured.or(usual_key(research.engine));
        name.and_then(env::var).unwrap_or_default()
    };

    match research.engine {
        Some(settings::EngineKind::Searxng) => SearchEngine::Searxng {
            base_url: research.base_url.clone().unwrap_or_default(),
        },
        Some(settings::EngineKind::Brave) => SearchEngine::Brave { key: key() },
        Some(settings::EngineKind::Tavily) => SearchEngine::Tavily { key: key() },
        Some(settings::EngineKind::Command) => SearchEngine::Command {
            run: research.run.clone(),
            keep: research.api_key_env.iter().cloned().collect(),
        },
        None => SearchEngine::None,
    }
}

fn usual_key(engine: Option<settings::EngineKind>) -> Option<&'static str> {
    match engine? {
        settings::EngineKind::Brave => Some(known::BRAVE_KEY),
        settings::EngineKind::Tavily => Some(known::TAVILY_KEY),
        settings::EngineKind::Searxng | settings::EngineKind::Command => None,
    }
}

/// With those stored with the draft and the previous turn, if they are the user's: others can store
/// any text under an address.
pub fn pages_of(project: &Project, tip: &Turn, draft: &Draft) -> anyhow::Result<Pages> {
    let mut pages = pages(project);
    if project.checkout().is_own_turn(tip)? {
        pages.know(&Artifacts(project.repository.files(tip.tree)?));
    }
    if project.journal().owns_draft(&tip.session, draft) {
        pages.know(&draft.artifacts);
    }
    Ok(pages)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kept_page_is_not_fetched_again() {
        let fetched = BTreeMap::from([
            ("http://a.example/".to_owned(), Ok("one\n\ntwo".to_owned())),
            ("http://b.example/".to_owned(), Err("gone".to_owned())),
        ]);
        let pages = Pages {
            rules: FetchRules::default(),
            engine: SearchEngine::None,
            cached: BTreeMap::new(),
            fetched,
            recorded: None,
        };
        let mut artifacts = Artifacts::default();
        pages.keep_in(&mut artifacts);
        assert_eq!(artifacts.0.len(), 1);
        let mut later = Pages {
            rules: FetchRules::default(),
            engine: SearchEngine::None,
            cached: BTreeMap::new(),
            fetched: BTreeMap::new(),
            recorded: None,
        };
        later.know(&artifacts);
        let mut unused = Artifacts::default();
        later.keep_in(&mut unused);
        assert_eq!(
            unused.0.len(),
            0,
            "a page that no turn shows any more is not carried along"
        );
        assert_eq!(later.get("http://a.example/"), Ok("one\n\ntwo".to_owned()));
    }
}
