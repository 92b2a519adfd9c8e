//! CREATE: the place is free, and one name stands for one file.

use super::world::Found;
use super::{Judge, Mistake};
use crate::plan::action::Action;
use crate::plan::action::create::Create;
use crate::text::visible::visible;

/// Judges a CREATE and makes its file.
pub(super) fn check(judge: &mut Judge<'_>, action: &Action, create: &Create) -> anyhow::Result<()> {
    let found = judge.world.look(&create.path)?;
    if let Some(mistake) = in_the_way(judge, create, &found) {
        judge.miss(action, action.line, mistake);
    }
    let twin = judge.world.twins.add(&create.path);
    if let Some((name, other)) = twin.filter(|_| matches!(found, Found::Absent)) {
        let message = format!(
            "`{}` is the same name as `{}` for some file systems",
            visible(&name),
            visible(&other)
        );
        let hint = if create.path.as_str() == name {
            "choose another name"
        } else {
            "spell the directory as it is"
        };
        judge.miss(action, action.line, Mistake::new(message, hint));
    }
    if !matches!(found, Found::Absent | Found::File(_)) {
        return Ok(());
    }
    let known = judge.world.is_known(&create.path);
    let before = if let Found::File(bytes) = found {
        Some(bytes)
    } else {
        None
    };
    let step = judge.step();
    step.outside_context = before.is_some() && !known;
    step.before = before;
    step.after = (!step.wrong).then(|| create.content.clone().into_bytes());
    // Later actions see the file even if this one is wrong: they are judged for what they are.
    judge
        .world
        .write(&create.path, create.content.clone().into_bytes());
    judge.world.created.insert(create.path.clone());
    Ok(())
}

/// Returns what stands where the file shall be.
fn in_the_way(judge: &Judge<'_>, create: &Create, found: &Found) -> Option<Mistake> {
    let path = visible(create.path.as_str());
    if let Some(obstacle) = found.obstacle() {
        return Some(Mistake::new(
            format!("`{path}` {obstacle}"),
            "choose another path",
        ));
    }
    match found {
        Found::File(_) if create.overwrite => None,
        Found::File(_) if judge.world.created.contains(&create.path) => Some(Mistake::new(
            format!("`{path}` is created twice"),
            "keep one CREATE; change the new file in it, or with an EDIT",
        )),
        Found::File(bytes) if !bytes.is_empty() => Some(Mistake::new(
            format!("`{path}` already exists"),
            "change it with EDIT, or say `- **Overwrite:** true` to replace it as a whole",
        )),
        _ => None,
    }
}
