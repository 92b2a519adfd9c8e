//! Preview and risks of a TAKE.

use super::TakePath;
use crate::plan::action::behavior::PreviewPart;
use crate::plan::state::{KnownState, StateMode};
use crate::plan::validate::Step;
use crate::text::counted;
use crate::text::path::is_deceptive;
use crate::text::sanitize::sanitize_line;

/// Bytes of a link's target that are shown.
const MAX_LINK_TARGET: usize = 300;

/// Returns the preview: a description, then a diff if both states are known.
pub(super) fn preview_take<'a>(take: &'a TakePath, step: &'a Step) -> Vec<PreviewPart<'a>> {
    let mut parts = vec![PreviewPart::Text(describe_take(take, step))];
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

fn describe_take(take: &TakePath, step: &Step) -> Vec<String> {
    let size = |bytes: u64| counted(bytes, "byte");
    let before = take.previous.as_ref();
    let before = before.map(|before| format!("{}, {}", before.mode, size(before.imprint.size)));
    let Some(becomes) = &take.becomes else {
        let before = before.unwrap_or_default();
        return vec![format!("removed ({before})")];
    };

    let after = match becomes.mode {
        StateMode::Link => format!(
            "{} to `{}`",
            becomes.mode,
            link_target(step).unwrap_or_default()
        ),
        // Kept bytes restore the mode and usually change the size.
        _ if take.keep_bytes => {
            let mode = take.previous.as_ref().map_or(becomes.mode, |was| was.mode);
            let length = step.after.as_ref().map(|after| after.len() as u64);
            format!("{mode}, {}", size(length.unwrap_or(becomes.imprint.size)))
        }
        mode => format!("{mode}, {}", size(becomes.imprint.size)),
    };
    let mut lines = vec![match before {
        Some(before) => format!("{before} → {after}"),
        None => format!("new {after}"),
    }];
    let same = |state: &KnownState| state.imprint == becomes.imprint;
    if take.previous.as_ref().is_some_and(same) {
        lines.push("its bytes stay as they are".to_owned());
    }
    if take.keep_bytes {
        lines.push("your encoding, line ends and mode stay".to_owned());
    }
    lines.push(format!(
        "bytes: `{}`, sha256:{}",
        becomes.artifact, becomes.imprint.hash
    ));
    lines
}

fn link_target(step: &Step) -> Option<String> {
    let bytes = step.after.as_deref()?;
    let target = String::from_utf8_lossy(&bytes[..bytes.len().min(MAX_LINK_TARGET)]);
    Some(sanitize_line(&target).into_owned())
}

/// Returns risks that a list of file names does not reveal.
pub(super) fn take_risks(take: &TakePath, step: &Step) -> Vec<String> {
    let path = &take.path;
    let mut risks = Vec::new();
    let before = take.previous.as_ref();
    let Some(becomes) = &take.becomes else {
        let size = before.map_or(0, |before| before.imprint.size);
        risks.push(format!("{path} is removed ({})", counted(size, "byte")));
        return risks;
    };

    match becomes.mode {
        StateMode::Executable if before.is_none_or(|was| was.mode == StateMode::Link) => {
            risks.push(format!("{path} is executable"));
        }
        StateMode::Link => risks.extend(describe_link(take, step)),
        StateMode::Plain | StateMode::Executable => {}
    }

    let text = step
        .after
        .as_deref()
        .and_then(|bytes| std::str::from_utf8(bytes).ok());
    let text = text.filter(|text| becomes.mode != StateMode::Link && !text.contains('\0'));
    let hidden = text.map_or(0, count_deceptive);
    if hidden > 0 {
        risks.push(format!(
            "{path} has {hidden} hidden or misleading characters, shown as \\u{{..}}"
        ));
    }

    risks
}

/// Describes where a link points, and whether that is outside the project.
fn describe_link(take: &TakePath, step: &Step) -> Option<String> {
    let bytes = step.after.as_deref()?;
    let (path, target) = (&take.path, link_target(step)?);
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
    let mut dirs: Vec<&str> = path.split('/').collect();
    dirs.pop();
    if target.starts_with('/') {
        return true;
    }

    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                if dirs.pop().is_none() {
                    return true;
                }
            }
            name => dirs.push(name),
        }
    }
    let is_ours = dirs
        .first()
        .is_some_and(|name| name.eq_ignore_ascii_case(".teddy"));
    is_ours || dirs.iter().any(|name| name.eq_ignore_ascii_case(".git"))
}

/// Counts invisible and misleading characters.
fn count_deceptive(text: &str) -> usize {
    let text = text.replace("\r\n", "\n");
    let hidden = |c: &char| !matches!(c, '\t' | '\n') && is_deceptive(*c);
    text.chars().filter(hidden).count()
}
