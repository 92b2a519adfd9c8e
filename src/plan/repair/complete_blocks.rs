//! Finds complete blocks: those followed only by text and further complete blocks, up to the next
//! structure.

use super::line::{Fence, Info};
use super::token::{Token, TokenKind};

/// What Markdown finds from a token on.
#[derive(Clone, Copy)]
struct FollowingBlocks {
    /// Whether only text and complete blocks follow, up to the next structure.
    clear: bool,
    /// Number of structure lines.
    structure: u32,
}

/// Sets [`Token::complete_until`] of each fence.
pub(super) fn mark_complete_blocks(tokens: &mut [Token]) {
    let mut closers: [Vec<(u16, usize)>; 2] = [Vec::new(), Vec::new()];
    let nothing = FollowingBlocks {
        clear: true,
        structure: 0,
    };
    let mut following = vec![nothing; tokens.len() + 1];

    for at in (0..tokens.len()).rev() {
        let next = following[at + 1];
        following[at] = match tokens[at].kind {
            TokenKind::Gap(_) | TokenKind::Title { .. } => next,
            // Markdown treats a fence indented by four columns as text.
            TokenKind::Fence(fence) if fence.indent > 3 => next,
            TokenKind::Fence(fence) => {
                let closer = nearest_closer(&mut closers, fence, at);
                let closing = closer.filter(|&closer| {
                    following[closer].structure == next.structure && following[closer + 1].clear
                });
                tokens[at].complete_until = closing.map(|closer| tokens[closer].line);
                FollowingBlocks {
                    clear: closing.is_some(),
                    ..next
                }
            }
            _ => FollowingBlocks {
                clear: true,
                structure: next.structure + 1,
            },
        };
    }
}

/// Returns the nearest fence that closes the block, and records this fence for earlier ones. A
/// longer fence before a shorter one also closes every block that the shorter one could.
fn nearest_closer(closers: &mut [Vec<(u16, usize)>; 2], fence: Fence, at: usize) -> Option<usize> {
    let same_mark = &mut closers[usize::from(fence.mark == b'~')];
    let first = same_mark.partition_point(|&(len, _)| len >= fence.len);
    let nearest = first.checked_sub(1).map(|last| same_mark[last].1);
    if fence.info == Info::Bare {
        same_mark.truncate(first_not_longer(same_mark, fence.len));
        same_mark.push((fence.len, at));
    }

    nearest
}

/// Returns the number of recorded fences, longest first, that are longer than this.
fn first_not_longer(closers: &[(u16, usize)], len: u16) -> usize {
    closers.partition_point(|&(other, _)| other > len)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::repair::{Spelling, lines, token};

    #[test]
    fn a_fence_opens_a_block_up_to_an_indentation_of_three_columns() {
        for (indent, expected) in [("", Some(2)), ("   ", Some(2)), ("    ", None)] {
            let text = format!("{indent}```sh\nx\n{indent}```\n");
            let mut tokens = token::tokenize(&lines::read_lines(&text, Spelling::Exact));
            mark_complete_blocks(&mut tokens);
            let opener = tokens.iter().find(|token| token.line == 0).unwrap();
            assert_eq!(opener.complete_until, expected, "{text}");
        }
    }
}
