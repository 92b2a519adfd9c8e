//! Finds complete blocks: those followed only by text and further complete blocks, up to the next
//! structure.

use super::line::{Fence, Info};
use super::token::{Token, TokenKind};

/// What Markdown finds from a token on.
#[derive(Clone, Copy)]
struct Behind {
    /// Whether only text and complete blocks follow, up to the next structure.
    clear: bool,
    /// Number of structure lines.
    structure: u32,
}

/// Sets [`Token::whole`]: where Markdown closes a block opened at each fence, if only text and
/// complete blocks follow.
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
            // Markdown treats a fence indented by four columns as text.
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

/// Returns the nearest fence that closes the block, and records this fence for earlier ones. A
/// longer fence before a shorter one also closes every block that the shorter one could.
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

/// Returns the number of recorded fences, longest first, that are longer than this.
fn first_not_longer(known: &[(u16, usize)], len: u16) -> usize {
    known.partition_point(|&(other, _)| other > len)
}
