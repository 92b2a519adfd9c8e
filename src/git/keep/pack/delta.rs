//! Deltas in git's format (`gitformat-pack`, "Deltified representation"): both sizes, then pieces
//! that are copied from the base or inserted.
//!
//! The algorithm is for objects that are nearly equal, such as trees of the same directory with a
//! few changed files.

use memchr::memmem;

/// Length from which equal bytes count as a match.
const DELTA_ANCHOR: usize = 32;
/// Distance within which the next match is searched.
const DELTA_WINDOW: usize = 16 << 10;
/// Maximum length of one copy instruction.
const MAX_COPY: usize = 0xff_ffff;
/// Maximum length of one insert instruction.
const MAX_INSERT: usize = 0x7f;

/// Returns the delta from `base` to `target`. It can be longer than the target if they have little
/// in common.
pub(super) fn encode_delta(base: &[u8], target: &[u8]) -> Vec<u8> {
    let mut delta = Vec::new();
    put_size(&mut delta, base.len());
    put_size(&mut delta, target.len());

    let (mut old, mut new) = (0, 0);
    while new < target.len() {
        let same = common_prefix_len(&base[old..], &target[new..]);
        put_copy(&mut delta, old, same);
        (old, new) = (old + same, new + same);

        let [passed, inserted] = next_match(&base[old..], &target[new..]);
        put_insert(&mut delta, &target[new..new + inserted]);
        (old, new) = (old + passed, new + inserted);
    }
    delta
}

fn common_prefix_len(one: &[u8], other: &[u8]) -> usize {
    const BLOCK: usize = 1024;
    let blocks = one.chunks_exact(BLOCK).zip(other.chunks_exact(BLOCK));
    let block_bytes = BLOCK * blocks.take_while(|(one, other)| one == other).count();
    let tail = one[block_bytes..].iter().zip(&other[block_bytes..]);
    block_bytes + tail.take_while(|(one, other)| one == other).count()
}

/// Returns how many bytes to skip in each until they match again, at most the search distance.
fn next_match(old: &[u8], new: &[u8]) -> [usize; 2] {
    let [near_old, near_new] = [old, new].map(|text| &text[..text.len().min(DELTA_WINDOW)]);
    let anchor = |text: &[u8], near: &[u8]| {
        let position = memmem::find(near, text.get(..DELTA_ANCHOR)?)?;
        Some(position)
    };

    let changed = same_offset(near_old, near_new).map(|at| [at, at]);
    let added = anchor(old, near_new).map(|at| [0, at]);
    let removed = anchor(new, near_old).map(|at| [at, 0]);
    let nearest = [changed, added, removed].into_iter().flatten();
    let nearest = nearest.min_by_key(|[passed, inserted]| passed + inserted);
    nearest.unwrap_or([near_old.len(), near_new.len()])
}

fn same_offset(one: &[u8], other: &[u8]) -> Option<usize> {
    let mut run = 0;
    for (at, (one, other)) in one.iter().zip(other).enumerate() {
        run = if one == other { run + 1 } else { 0 };
        if run == DELTA_ANCHOR {
            return Some(at + 1 - DELTA_ANCHOR);
        }
    }
    None
}

fn put_size(delta: &mut Vec<u8>, mut size: usize) {
    while size > 0x7f {
        delta.push(size as u8 | 0x80);
        size >>= 7;
    }
    delta.push(size as u8);
}

fn put_copy(delta: &mut Vec<u8>, mut start: usize, mut length: usize) {
    while length > 0 {
        let piece = length.min(MAX_COPY);
        let op_at = delta.len();
        delta.push(0x80);
        let [start_bytes, length_bytes] =
            [start, piece].map(|number| (number as u32).to_le_bytes());
        // Zero bytes are omitted; a bit mask tells which bytes follow.
        for (bit, byte) in start_bytes.into_iter().chain(length_bytes).enumerate() {
            if byte != 0 {
                delta.push(byte);
                delta[op_at] |= 1 << bit;
            }
        }
        (start, length) = (start + piece, length - piece);
    }
}

fn put_insert(delta: &mut Vec<u8>, bytes: &[u8]) {
    for piece in bytes.chunks(MAX_INSERT) {
        delta.push(piece.len() as u8);
        delta.extend_from_slice(piece);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn size(delta: &mut &[u8]) -> usize {
        let (mut size, mut shift) = (0, 0);
        loop {
            let byte = delta[0];
            *delta = &delta[1..];
            size |= usize::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                return size;
            }
        }
    }

    fn apply(base: &[u8], mut delta: &[u8]) -> Vec<u8> {
        assert_eq!(size(&mut delta), base.len());
        let length = size(&mut delta);
        let mut target = Vec::new();
        while let Some((&code, tail)) = delta.split_first() {
            delta = tail;
            if code & 0x80 == 0 {
                assert_ne!(code, 0, "reserved");
                target.extend_from_slice(&delta[..code.into()]);
                delta = &delta[code.into()..];
                continue;
            }

            let mut number = |bits: std::ops::Range<u8>| {
                let mut number = 0;
                for (shift, bit) in bits.enumerate() {
                    if code & (1 << bit) != 0 {
                        number |= usize::from(delta[0]) << (8 * shift);
                        delta = &delta[1..];
                    }
                }
                number
            };
            let (start, length) = (number(0..4), number(4..7));
            assert_ne!(length, 0, "git takes it for 65536");
            target.extend_from_slice(&base[start..start + length]);
        }
        assert_eq!(target.len(), length);
        target
    }

    fn check(base: &[u8], target: &[u8], expected: usize) {
        let delta = encode_delta(base, target);
        assert!(apply(base, &delta) == target, "{base:?} {target:?}");
        assert!(delta.len() <= expected, "{} bytes", delta.len());
    }

    fn tree(files: usize, id: impl Fn(usize) -> usize) -> Vec<u8> {
        let mut data = Vec::new();
        for file in 0..files {
            data.extend_from_slice(format!("100644 file_{file:06}.rs\0").as_bytes());
            let id = (id(file) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            for turn in 0..20 {
                data.push((id >> (turn * 3)) as u8);
            }
        }
        data
    }

    #[test]
    fn what_is_alike_is_copied() {
        check(b"", b"", 2);
        check(b"abc", b"", 2);
        check(b"", b"abc", 6);
        check(&[7; 200], &[7; 200], 6);

        let base = tree(5000, |file| file);
        check(&base, &base, 13);
        let changed = tree(5000, |file| if file % 1000 == 7 { 1 } else { file });
        check(&base, &changed, 300);
        check(&base, &tree(4990, |file| file), 20);
        check(&base, &tree(5010, |file| file), 500);
        // One file is added at the start, one is removed there.
        check(&base[41..], &base, 70);
        check(&base, &base[41..], 20);
    }

    #[test]
    fn pieces_of_any_length_are_copied() {
        let long: Vec<u8> = (0..MAX_COPY * 2 + 70_000)
            .map(|at| (at >> 8) as u8)
            .collect();
        check(&long, &long, 40);
        for length in [255, 256, 65_535, 65_536, 65_537] {
            check(&long[..length], &long[..length], 15);
        }
    }

    proptest! {
        #[test]
        fn a_delta_makes_what_it_was_made_of(
            base in prop::collection::vec(0_u8..3, 0..300),
            edits in prop::collection::vec((any::<prop::sample::Index>(), 0_usize..50, prop::collection::vec(0_u8..3, 0..50)), 0..6),
            repeat in 1_usize..200,
        ) {
            let base = base.repeat(repeat);
            let mut target = base.clone();
            for (at, removed, added) in edits {
                let start = at.index(target.len() + 1);
                let end = (start + removed).min(target.len());
                target.splice(start..end, added);
            }
            check(&base, &target, usize::MAX);
            check(&target, &base, usize::MAX);
        }
    }
}
