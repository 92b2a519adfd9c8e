//! The three context lists of a turn, and what their entries come to in a snapshot.

use globset::{Glob, GlobSet, GlobSetBuilder};

use crate::session::artifact::{self, Artifacts};
use crate::session::input::Scope;
use crate::text::context_list;
use crate::text::resource::Resource;

/// The lists.
#[derive(Debug, Clone, Default)]
pub struct Lists {
    /// What each list says, in the order of scopes.
    pub entries: Vec<(Scope, Entry)>,
}

/// One entry of a list.
#[derive(Debug, Clone)]
pub enum Entry {
    /// A file, a folder, a page, an artifact.
    Resource(Resource),
    /// Every file that the pattern fits.
    Pattern(String, GlobSet),
    /// Nothing that could be shown, and why.
    Wrong(String, String),
}

impl Lists {
    /// Reads the lists of a turn; `global` is the text of `.teddy/global.context`.
    pub fn read(artifacts: &Artifacts, global: &str) -> Lists {
        let texts = [
            (Scope::Turn, artifacts.text_or_empty(artifact::TURN_CONTEXT)),
            (
                Scope::Session,
                artifacts.text_or_empty(artifact::SESSION_CONTEXT),
            ),
            (Scope::Global, global.to_owned()),
        ];
        let mut entries = Vec::new();
        for (scope, text) in texts {
            entries.extend(context_list::entries(&text).map(|entry| (scope, Entry::parse(entry))));
        }
        Lists { entries }
    }

    /// Returns whether a resource stands in a list, in a listed folder, or fits a pattern.
    pub fn has(&self, resource: &Resource) -> bool {
        self.entries.iter().any(|(_, entry)| entry.covers(resource))
    }

    /// Returns whether a resource stands in the turn's own list.
    pub fn turn_has(&self, resource: &Resource) -> bool {
        self.entries.iter().any(|(scope, entry)| {
            *scope == Scope::Turn && matches!(entry, Entry::Resource(r) if r == resource)
        })
    }

    /// Returns the resources of the turn's own list.
    pub fn turn(&self) -> Vec<Resource> {
        let own = self
            .entries
            .iter()
            .filter(|(scope, _)| *scope == Scope::Turn);
        own.filter_map(|(_, entry)| {
            if let Entry::Resource(resource) = entry {
                Some(resource.clone())
            } else {
                None
            }
        })
        .collect()
    }
}

impl Entry {
    /// Reads one entry.
    pub fn parse(text: &str) -> Entry {
        if text.contains(['*', '?', '[']) && !crate::text::resource::is_url(text) {
            return match pattern(text) {
                Ok(set) => Entry::Pattern(text.to_owned(), set),
                Err(error) => Entry::Wrong(text.to_owned(), error.to_string()),
            };
        }
        match Resource::parse(text.strip_suffix('/').unwrap_or(text)) {
            Ok(resource) => Entry::Resource(resource),
            Err(error) => Entry::Wrong(text.to_owned(), error.to_string()),
        }
    }

    /// Returns whether a resource is this entry or below it.
    fn covers(&self, resource: &Resource) -> bool {
        match (self, resource) {
            (Entry::Resource(own), _) if own == resource => true,
            (Entry::Resource(Resource::File(folder)), Resource::File(path)) => path
                .as_str()
                .strip_prefix(folder.as_str())
                .is_some_and(|rest| rest.starts_with('/')),
            (Entry::Pattern(_, set), Resource::File(path)) => set.is_match(path.as_str()),
            _ => false,
        }
    }
}

/// Makes a pattern; `*` stays inside a folder, `**` does not.
fn pattern(text: &str) -> Result<GlobSet, globset::Error> {
    let relative = text
        .strip_prefix("./")
        .or_else(|| text.strip_prefix('/'))
        .unwrap_or(text);
    let glob = globset::GlobBuilder::new(relative)
        .literal_separator(true)
        .build()?;
    GlobSetBuilder::new().add(Glob::clone(&glob)).build()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns whether a list with this entry has this path.
    fn check(entry: &str, path: &str, expected: bool) {
        let lists = Lists::read(&Artifacts::default(), entry);
        assert_eq!(
            lists.has(&Resource::parse(path).expect("a good path")),
            expected,
            "{entry} {path}"
        );
    }

    #[test]
    fn a_folder_has_what_is_below_it() {
        check("src/", "src/a/b.rs", true);
        check("src", "src/a/b.rs", true);
        check("src", "src2/b.rs", false);
    }

    #[test]
    fn a_pattern_has_what_fits_it() {
        check("src/*.rs", "src/a.rs", true);
        check("src/*.rs", "src/x/a.rs", false);
        check("src/**/*.rs", "src/x/a.rs", true);
    }

    #[test]
    fn a_file_outside_the_project_is_wrong() {
        let lists = Lists::read(&Artifacts::default(), "../secret\n");
        assert!(matches!(&lists.entries[0].1, Entry::Wrong(text, _) if text == "../secret"));
    }
}
