//! Preview and risks of a TAKE.

use super::TakePath;
use crate::plan::action::behavior::PreviewPart;
use crate::plan::state::{KnownState, StateMode};
use crate::plan::validate::Step;
use crate::text::counted;
use crate::text::path::is_deceptive;
use crate::text::visible::visible;

/// Bytes of a link's target that are shown.
const MAX_TARGET: usize = 300;

/// Returns the preview: a description, then a diff if both states are known.
pub(super) fn preview<'a>(take: &'a TakePath, step: &'a Step) -> Vec<PreviewPart<'a>> {
    let mut parts = vec![PreviewPart::Words(words(take, step))];
    let is_link = |mode: Option<StateMode>| mode == Some(StateMode::Link);
    let becomes = take.becomes.as_ref().map(|state| state.mode);
    let is_shown = step.after.is_some() || step.removed;
    if is_shown && !is_link(becomes) && step.before != step.after {
        parts.push(PreviewPart::Difference {
            path: &take.path,
            before: step.before.as_deref(),
            after: step.after.as_deref(),
        });
    }
    parts
}

fn words(take: &TakePath, step: &Step) -> Vec<String> {
    let size = |bytes: u64| counted(bytes, "byte");
    let was = take.was.as_ref();
    let was = was.map(|was| format!("{}, {}", was.mode, size(was.imprint.size)));
    let Some(becomes) = &take.becomes else {
        let was = was.unwrap_or_default();
        return vec![format!("removed ({was})")];
    };

    let there = match becomes.mode {
        StateMode::Link => format!("{} to `{}`", becomes.mode, target(step).unwrap_or_default()),
        mode => format!("{mode}, {}", size(becomes.imprint.size)),
    };
    let mut words = vec![match was {
        Some(was) => format!("{was} → {there}"),
        None => format!("new {there}"),
    }];
    let same = |was: &KnownState| was.imprint == becomes.imprint;
    if take.was.as_ref().is_some_and(same) {
        words.push("its bytes stay as they are".to_owned());
    }
    words.push(format!(
        "bytes: `{}`, sha256:{}",
        becomes.artifact, becomes.imprint.hash
    ));
    words
}

/// Returns the target of a link, if known.
fn target(step: &Step) -> Option<String> {
    let bytes = step.after.as_deref()?;
    let target = String::from_utf8_lossy(&bytes[..bytes.len().min(MAX_TARGET)]);
    Some(visible(&target).into_owned())
}

/// Returns risks that a list of file names does not reveal.
pub(super) fn risks(take: &TakePath, step: &Step) -> Vec<String> {
    let path = &take.path;
    let mut found = Vec::new();
    let was = take.was.as_ref();
    let Some(becomes) = &take.becomes else {
        let size = was.map_or(0, |was| was.imprint.size);
        found.push(format!("{path} is removed ({})", counted(size, "byte")));
        return found;
    };

    let is_new_mode = was.map(|was| was.mode) != Some(becomes.mode);
    match becomes.mode {
        StateMode::Executable if is_new_mode => {
            found.push(format!("{path} becomes executable"));
        }
        StateMode::Link => found.extend(link(take, step)),
        StateMode::Plain | StateMode::Executable => {}
    }

    let text = step
        .after
        .as_deref()
        .and_then(|bytes| std::str::from_utf8(bytes).ok());
    let text = text.filter(|text| becomes.mode != StateMode::Link && !text.contains('\0'));
    let hidden = text.map_or(0, deceptive);
    if hidden > 0 {
        found.push(format!(
            "{path} has {hidden} hidden or misleading characters, shown as \\u{{..}}"
        ));
    }

    found
}

/// Describes where a link points, and whether that is outside the project.
fn link(take: &TakePath, step: &Step) -> Option<String> {
    let bytes = step.after.as_deref()?;
    let (path, target) = (&take.path, target(step)?);
    Some(if leads_out(path.as_str(), bytes) {
        format!("{path} becomes a link out of the project, to `{target}`")
    } else {
        format!("{path} becomes a link to `{target}`")
    })
}

/// Returns whether a link target is outside the project's files, judging by its text: elsewhere, in a
/// `.git` directory, or in TeDDy's own.
pub(super) fn leads_out(path: &str, target: &[u8]) -> bool {
    let Ok(target) = std::str::from_utf8(target) else {
        return true;
    };
    let mut folders: Vec<&str> = path.split('/').collect();
    folders.pop();
    if target.starts_with('/') {
        return true;
    }

    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                if folders.pop().is_none() {
                    return true;
                }
            }
            name => folders.push(name),
        }
    }
    let is_ours = folders
        .first()
        .is_some_and(|name| name.eq_ignore_ascii_case(".teddy"));
    is_ours || folders.iter().any(|name| name.eq_ignore_ascii_case(".git"))
}

/// Counts invisible and misleading characters.
fn deceptive(text: &str) -> usize {
    let text = text.replace("\r\n", "\n");
    let hidden = |c: &char| !matches!(c, '\t' | '\n') && is_deceptive(*c);
    text.chars().filter(hidden).count()
}
