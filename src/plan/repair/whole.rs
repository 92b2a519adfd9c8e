//! Blocks that are whole by the fence rule, whatever stands behind them: text and further blocks,
//! each of them whole too, up to the next line that the grammar knows.

use super::line::{Fence, Info};
use super::token::{Token, TokenKind};

/// What Markdown finds from a token on.
#[derive(Clone, Copy)]
struct Behind {
    /// Text and whole blocks alone, up to the next line that the grammar knows.
    clear: bool,
    /// How many lines that the grammar knows there are.
    structure: u32,
}

/// Says of every fence where Markdown closes a block that opens there, if that leaves only text and
/// whole blocks behind it.
pub(super) fn mark(tokens: &mut [Token]) {
    let mut closers: [Vec<(u16, usize)>; 2] = [Vec::new(), Vec::new()];
    let nothing = Behind {
        clear: true,
        structure: 0,
    };
    let mut behind = vec![nothing; tokens.len() + 1];

    for at in (0..tokens.len()).rev() {
        let next = behind[at + 1];
        behind[at] = match tokens[at].kind {
            TokenKind::Gap(_) | TokenKind::Title { .. } => next,
            TokenKind::Fence(fence) if fence.indent > 3 => next,
            TokenKind::Fence(fence) => {
                let closer = closer(&mut closers, fence, at);
                let whole = closer.filter(|&closer| {
                    behind[closer].structure == next.structure && behind[closer + 1].clear
                });
                tokens[at].whole = whole.map(|closer| tokens[closer].line);
                Behind {
                    clear: whole.is_some(),
                    ..next
                }
            }
            _ => Behind {
                clear: true,
                structure: next.structure + 1,
            },
        };
    }
}

/// Returns the nearest fence behind one that closes its block, and remembers the fence for those in
/// front of it. A longer one in front of a shorter one hides it from nothing that it could close.
fn closer(closers: &mut [Vec<(u16, usize)>; 2], fence: Fence, at: usize) -> Option<usize> {
    let known = &mut closers[usize::from(fence.mark == b'~')];
    let first = known.partition_point(|&(len, _)| len >= fence.len);
    let found = first.checked_sub(1).map(|last| known[last].1);
    if fence.info == Info::Bare {
        known.truncate(first_not_longer(known, fence.len));
        known.push((fence.len, at));
    }

    found
}

/// Returns how many of some fences, longest first, are longer than this.
fn first_not_longer(known: &[(u16, usize)], len: u16) -> usize {
    known.partition_point(|&(other, _)| other > len)
}
