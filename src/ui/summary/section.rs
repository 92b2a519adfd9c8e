//! The sections of a summary, and how they share a screen.

use super::difference::{self, FileDifference};
use crate::ui::room::TextArea;
use crate::ui::style::{StyledLine, Tone, wrap_all};

/// How many lines the changes get where another list gets one.
const WEIGHT_OF_CHANGES: usize = 4;

/// What stands below a heading.
pub(super) enum SectionContent<'a> {
    /// A line for each, or more for commands.
    Listed(Vec<StyledLine>),
    /// Files with their differences, and how the rest of them is seen.
    Files(&'a [FileDifference], &'static str),
}

/// A heading and what stands below it.
pub(super) struct SummarySection<'a> {
    /// `CREATE: 1 file`
    pub(super) heading: Option<StyledLine>,
    /// What stands below it.
    pub(super) content: SectionContent<'a>,
    /// The lines that are shown however small the screen is; all of them without a number.
    pub(super) room: Option<usize>,
}

impl SummarySection<'_> {
    /// Tells whether there is nothing to show.
    pub(super) fn is_empty(&self) -> bool {
        self.heading.is_none() && self.wanted() == 0
    }

    /// Returns the lines that it would like to have below its heading.
    pub(super) fn wanted(&self) -> usize {
        match &self.content {
            SectionContent::Listed(listed) => listed.len(),
            SectionContent::Files(files, _) => difference::wanted(files),
        }
    }

    /// Returns how many lines it gets where another one gets one.
    fn weight(&self) -> usize {
        match self.content {
            SectionContent::Files(..) => WEIGHT_OF_CHANGES,
            SectionContent::Listed(_) => 1,
        }
    }

    /// Returns the lines that it takes on any screen of a width.
    pub(super) fn fixed(&self, width: usize) -> usize {
        let listed = match (&self.content, self.room) {
            (SectionContent::Listed(listed), None) => wrap_all(listed.clone(), width).len(),
            _ => 0,
        };
        usize::from(self.heading.is_some()) + listed
    }

    /// Returns its lines, at most so many of the list unless it is shown whole.
    pub(super) fn lines(self, limit: usize, width: usize) -> Vec<StyledLine> {
        let listed = match (self.content, self.room) {
            (SectionContent::Listed(listed), None) => listed,
            (SectionContent::Listed(listed), Some(_)) => shortened(listed, limit),
            (SectionContent::Files(files, key), _) => difference::folded(
                files,
                key,
                TextArea {
                    width,
                    height: limit,
                },
            ),
        };
        self.heading.into_iter().chain(listed).collect()
    }
}

/// Divides lines among the lists that may be shortened: each its least, then one by one who has
/// more.
pub(super) fn shares(sections: &[SummarySection<'_>], left: usize) -> Vec<usize> {
    let wanted = |section: &SummarySection<'_>| section.room.map_or(0, |_| section.wanted());
    let mut shares: Vec<usize> = sections
        .iter()
        .map(|section| section.room.unwrap_or(0).min(section.wanted()))
        .collect();
    let mut left = left.saturating_sub(shares.iter().sum());

    while let Some(at) = (0..sections.len())
        .filter(|&at| shares[at] < wanted(&sections[at]))
        .min_by_key(|&at| shares[at] / sections[at].weight())
        .filter(|_| left > 0)
    {
        shares[at] += 1;
        left -= 1;
    }
    shares
}

/// Returns at most `limit` lines, the last one saying how many are left out.
fn shortened(mut lines: Vec<StyledLine>, limit: usize) -> Vec<StyledLine> {
    if lines.len() > limit {
        let kept = limit.saturating_sub(1);
        let left_out = lines.len() - kept;
        lines.truncate(kept);
        lines.push(StyledLine::of(
            Tone::Warning,
            &format!("      … and {left_out} more: (m)odify lists them all"),
        ));
    }

    lines
}
