//! Converts between the slots of the model and the text of a file, in which a line merge treats
//! each slot independently.

use std::collections::BTreeMap;

use super::oracle::SLOTS;

/// Texts with conflict markers, which neither the user nor a turn wrote. They get numbers like all
/// others.
#[derive(Debug, Default)]
pub struct Texts {
    /// By number of a slot.
    parts: BTreeMap<u32, String>,
    /// By the numbers of a whole file, if its slots cannot be told apart.
    wholes: BTreeMap<[u32; SLOTS], String>,
}

/// Lines around a slot, so that changes of neighboring slots don't conflict.
fn filler(number: usize) -> String {
    (0..5)
        .map(|line| format!("text {number}.{line}\n"))
        .collect()
}

impl Texts {
    pub fn part(&self, number: usize, value: u32) -> String {
        match self.parts.get(&value) {
            Some(text) => text.clone(),
            None => format!("slot {number} has {value}.\n"),
        }
    }

    /// Numbers that stand for text with conflict markers.
    pub fn marked(&self) -> impl Iterator<Item = u32> {
        let wholes = self.wholes.keys().flatten();
        self.parts.keys().chain(wholes).copied()
    }

    pub fn text(&self, slots: [u32; SLOTS]) -> String {
        if let Some(text) = self.wholes.get(&slots) {
            return text.clone();
        }
        let part = |(number, value): (usize, &u32)| {
            let filler = filler(number);
            format!("{filler}{}{filler}", self.part(number, *value))
        };
        slots.iter().enumerate().map(part).collect()
    }

    /// Parses a file. Unknown text gets a fresh number.
    pub fn slots(&mut self, found: &str, mut fresh: impl FnMut() -> u32) -> [u32; SLOTS] {
        if let Some((slots, _)) = self.wholes.iter().find(|(_, text)| *text == found) {
            return *slots;
        }
        let Some(parts) = parts(found) else {
            let slots = [(); SLOTS].map(|()| fresh());
            self.wholes.insert(slots, found.to_owned());
            return slots;
        };

        let mut slots = [0; SLOTS];
        for (number, part) in parts.into_iter().enumerate() {
            let plain = part.strip_prefix(&format!("slot {number} has "));
            let plain = plain.and_then(|rest| rest.strip_suffix(".\n")?.parse().ok());
            let known = || self.parts.iter().find(|(_, text)| *text == part);
            slots[number] = match plain.or_else(|| known().map(|(value, _)| *value)) {
                Some(value) => value,
                None => {
                    let value = fresh();
                    self.parts.insert(value, part.to_owned());
                    value
                }
            };
        }
        slots
    }
}

/// Splits a file into slots. `None` if the lines around them have changed.
fn parts(mut found: &str) -> Option<[&str; SLOTS]> {
    let mut parts = [""; SLOTS];
    for (number, part) in parts.iter_mut().enumerate() {
        let filler = filler(number);
        found = found.strip_prefix(&filler)?;
        (*part, found) = found.split_once(&filler)?;
    }
    found.is_empty().then_some(parts)
}
