//! Bounds lists and amounts while they are deserialized. Metadata can come from elsewhere, and a
//! few bytes of YAML can expand to many times their size in memory.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::model::{MOST_TOKENS, TokenUsage};

/// Limit for a list in `meta.yaml`.
pub const MOST_ENTRIES: usize = 100_000;
// Total size of the texts in a list, because YAML aliases can repeat a long one.
const MOST_BYTES: usize = 8 << 20;
// Size at which lists that a command can make long are truncated on writing.
const MOST_WRITTEN: usize = 256 << 10;
const MOST_DOLLARS: f64 = 1_000_000.0;

pub trait LimitedEntry {
    fn text_bytes(&self) -> usize;
}

impl LimitedEntry for String {
    fn text_bytes(&self) -> usize {
        self.len()
    }
}

impl LimitedEntry for u64 {
    fn text_bytes(&self) -> usize {
        0
    }
}

pub fn deserialize<'de, D: Deserializer<'de>, T: Deserialize<'de> + LimitedEntry>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    list_up_to(deserializer, MOST_ENTRIES, MOST_BYTES)
}

pub fn list_up_to<'de, D: Deserializer<'de>, T: Deserialize<'de> + LimitedEntry>(
    deserializer: D,
    entries: usize,
    bytes: usize,
) -> Result<Vec<T>, D::Error> {
    deserializer.deserialize_seq(LimitedList {
        entries,
        bytes,
        of: PhantomData,
    })
}

/// Serializes the entries that fit into a size limit, but at least one. The tens of thousands of
/// files that a command can leave must not make the turn unreadable.
pub fn serialize<S: Serializer, T: Serialize + LimitedEntry>(
    list: &[T],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut remaining = MOST_WRITTEN;
    let fits = list.iter().enumerate().take_while(|(at, entry)| {
        let size = entry.text_bytes();
        let fits = *at == 0 || size <= remaining;
        remaining = remaining.saturating_sub(size);
        fits
    });
    serializer.collect_seq(fits.map(|(_, entry)| entry))
}

/// `key` converts the keys and returns `None` for an invalid one.
pub fn map_up_to<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
    entries: usize,
    key: fn(&str) -> Option<Vec<u8>>,
) -> Result<BTreeMap<Vec<u8>, T>, D::Error> {
    let of = PhantomData;
    deserializer.deserialize_map(LimitedMap { entries, key, of })
}

/// `None` if the amount is out of range.
pub fn dollars<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    let amount = Option::<f64>::deserialize(deserializer)?;
    Ok(amount.filter(|dollars| (0.0..=MOST_DOLLARS).contains(dollars)))
}

/// Deserializes a number of tokens that can be unknown, clamped to a maximum.
pub fn known_tokens<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let known = Option::<u64>::deserialize(deserializer)?;
    Ok(known.map(|tokens| tokens.min(MOST_TOKENS)))
}

/// Deserializes a number of tokens, clamped to a maximum.
pub fn tokens<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    u64::deserialize(deserializer).map(|tokens| tokens.min(MOST_TOKENS))
}

/// Like [`tokens`], for each number.
pub fn usage<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<TokenUsage>, D::Error> {
    let usage = Option::<TokenUsage>::deserialize(deserializer)?;
    Ok(usage.map(|usage| TokenUsage {
        input: usage.input.min(MOST_TOKENS),
        output: usage.output.min(MOST_TOKENS),
        cached: usage.cached.min(MOST_TOKENS),
        cache_written: usage.cache_written.min(MOST_TOKENS),
    }))
}

struct LimitedList<T> {
    entries: usize,
    bytes: usize,
    of: PhantomData<T>,
}

impl<'de, T: Deserialize<'de> + LimitedEntry> Visitor<'de> for LimitedList<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<T>, A::Error> {
        let (mut list, mut bytes) = (Vec::new(), 0_usize);
        // Checked for each entry, before the next one is allocated.
        while let Some(entry) = seq.next_element::<T>()? {
            bytes = bytes.saturating_add(entry.text_bytes());
            if list.len() == self.entries || bytes > self.bytes {
                return Err(A::Error::custom(format!(
                    "a list has more than {} entries or {} bytes",
                    self.entries, self.bytes
                )));
            }
            list.push(entry);
        }
        Ok(list)
    }
}

struct LimitedMap<T> {
    entries: usize,
    key: fn(&str) -> Option<Vec<u8>>,
    of: PhantomData<T>,
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for LimitedMap<T> {
    type Value = BTreeMap<Vec<u8>, T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
        let mut map = BTreeMap::new();
        while let Some((name, value)) = access.next_entry::<String, T>()? {
            let key = (self.key)(&name).ok_or_else(|| A::Error::custom("not a path"))?;
            map.insert(key, value);
            if map.len() > self.entries {
                return Err(A::Error::custom("a map has too many entries"));
            }
        }
        Ok(map)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize, Serialize)]
    struct File {
        #[serde(serialize_with = "serialize", deserialize_with = "deserialize")]
        paths: Vec<String>,
    }

    /// Compares the length of a YAML list, or the error.
    fn check(text: &str, expected: Result<usize, &str>) {
        let read = serde_yaml::from_str::<File>(&format!("paths: {text}"));
        let actual = read.map(|file| file.paths.len());
        let actual = actual.map_err(|error| error.to_string());
        match (actual, expected) {
            (Err(actual), Err(expected)) => assert!(actual.contains(expected), "{actual}"),
            (actual, expected) => assert_eq!(actual, expected.map_err(str::to_owned)),
        }
    }

    #[test]
    fn a_list_has_an_end() {
        let message = "a list has more than 100000 entries or 8388608 bytes";
        check("[]", Ok(0));
        check("[a, b]", Ok(2));
        let many = |count: usize| format!("[{}]", "a,".repeat(count));
        check(&many(MOST_ENTRIES), Ok(MOST_ENTRIES));
        check(&many(MOST_ENTRIES + 1), Err(message));
        let long = format!("[&x {}{}]", "a".repeat(1 << 20), ", *x".repeat(7));
        check(&long, Ok(8));
        check(&long.replace(']', ", *x]"), Err(message));
    }

    #[test]
    fn an_amount_that_no_turn_has_is_left_out() {
        #[derive(Deserialize)]
        struct Amounts {
            #[serde(default, deserialize_with = "dollars")]
            cost: Option<f64>,
            #[serde(deserialize_with = "tokens")]
            tokens: u64,
        }
        let check = |cost: &str, expected: Option<f64>| {
            let text = format!("cost: {cost}\ntokens: {}\n", u64::MAX);
            let read: Amounts = serde_yaml::from_str(&text).unwrap();
            assert_eq!((read.cost, read.tokens), (expected, MOST_TOKENS), "{cost}");
        };
        check("0.25", Some(0.25));
        check("0", Some(0.0));
        check("1.0e+300", None);
        check("-1", None);
        check(".nan", None);
        check(".inf", None);
        check("null", None);
    }

    #[test]
    fn as_much_is_written_as_fits_and_never_nothing() {
        let written = |paths: Vec<String>| {
            let text = serde_yaml::to_string(&File { paths }).unwrap();
            serde_yaml::from_str::<File>(&text).unwrap().paths.len()
        };
        assert_eq!(written(Vec::new()), 0);
        assert_eq!(written(vec!["a".repeat(1024); 300]), 256);
        assert_eq!(written(vec!["a".repeat(300 << 10); 2]), 1);
    }
}
