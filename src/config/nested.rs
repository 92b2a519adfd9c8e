//! Nested YAML mappings and dotted keys.

use serde_yaml::{Mapping, Value};

/// Merges `above` into `below`, recursively.
pub(super) fn overlay(base: &mut Mapping, above: &Mapping) {
    for (key, value) in above {
        match (base.get_mut(key), value) {
            (Some(Value::Mapping(old)), Value::Mapping(new)) => overlay(old, new),
            _ => {
                base.insert(key.clone(), value.clone());
            }
        }
    }
}

/// Sets the value at a path. Creates mappings as needed, replacing other values.
pub(super) fn insert_at(into: &mut Mapping, path: &[&str], value: Value) {
    let [first, tail @ ..] = path else { return };
    let key = Value::String((*first).to_owned());
    if tail.is_empty() {
        into.insert(key, value);
        return;
    }

    let inner = into
        .entry(key)
        .or_insert_with(|| Value::Mapping(Mapping::new()));
    if !inner.is_mapping() {
        *inner = Value::Mapping(Mapping::new());
    }

    if let Value::Mapping(inner) = inner {
        insert_at(inner, tail, value);
    }
}

/// Returns the dotted key of the innermost value for which `is_wrong` is true.
pub(super) fn innermost_key(
    above: &[String],
    values: &Mapping,
    is_wrong: &dyn Fn(&[String], &Value) -> bool,
) -> Option<String> {
    values.iter().find_map(|(key, value)| {
        let key = key.as_str().unwrap_or_default().to_owned();
        let path = [above, &[key]].concat();
        let inner = value.as_mapping();
        inner
            .and_then(|inner| innermost_key(&path, inner, is_wrong))
            .or_else(|| is_wrong(&path, value).then(|| path.join(".")))
    })
}

/// Flattens the first level of nesting: keys are `a` or `a.b`.
pub(super) fn flatten(values: &Mapping) -> Vec<(String, Value)> {
    let mut flat = Vec::new();
    for (key, value) in values {
        let key = key.as_str().unwrap_or_default().to_owned();
        match value {
            Value::Mapping(inner) => {
                flat.extend(inner.iter().map(|(sub, value)| {
                    (
                        format!("{key}.{}", sub.as_str().unwrap_or_default()),
                        value.clone(),
                    )
                }));
            }
            value => flat.push((key, value.clone())),
        }
    }

    flat
}
