//! Any text as a name: a path, a link, a resource, an address of the web.
//!
//! Nothing panics; a path that is let through stays inside and names nothing of git's; what is
//! written as a link is read as the same name.

#![no_main]

use libfuzzer_sys::fuzz_target;
use teddy::host::web;
use teddy::text::link;
use teddy::text::path::{RepoPath, is_deceptive};
use teddy::text::resource::Resource;

fuzz_target!(|text: &str| {
    if let Ok(path) = RepoPath::parse(text) {
        check_path(&path);
        assert_eq!(link::read(&link::write_path(path.as_str())).as_deref(), Ok(path.as_str()), "a link is read as another path");
    }
    if let Ok(name) = link::read(text)
        && let Ok(path) = RepoPath::parse(&name)
    {
        check_path(&path);
    }
    for name in link::read_all(text).into_iter().flatten() {
        let _ = Resource::parse(&name);
    }
    if let Ok(resource) = Resource::parse(text) {
        assert_eq!(Resource::parse(&resource.to_string()).as_ref(), Ok(&resource), "a resource is read as another one");
        if let Resource::Url(url) = &resource {
            assert_eq!(link::read(&link::write_url(url)).as_deref(), Ok(url.as_str()), "a link is read as another address");
        }
    }
    if let Ok(url) = web::parse(text) {
        assert!(matches!(url.scheme(), "http" | "https"), "{url}");
        assert!(url.username().is_empty() && url.password().is_none(), "{url}");
    }
});

/// Fails where a path leaves the project, names something of git's or deceives.
fn check_path(path: &RepoPath) {
    let text = path.as_str();
    assert_eq!(RepoPath::parse(text).as_ref(), Ok(path), "a path is read as another one");
    assert!(!text.starts_with('/') && text.len() <= 4096, "{text:?}");
    for part in text.split('/') {
        assert!(!matches!(part, "" | "." | "..") && part.len() <= 255, "{text:?}");
        let folded = part.to_lowercase();
        assert!(!folded.starts_with("git~") && folded.trim_end_matches(['.', ' ']) != ".git", "{text:?}");
    }
    assert!(!text.chars().any(|c| c.is_control() || is_deceptive(c) || c == '\\'), "{text:?}");
}
