//! Sections of a summary, and how they share the screen.

use super::difference::{self, FileDifference};
use crate::ui::style::{StyledLine, TextArea, Tone, wrap_all};

/// Weight of the changes, relative to any other section.
const WEIGHT_OF_CHANGES: usize = 4;

/// Contents below a heading.
pub(super) enum SectionContent<'a> {
    Listed(Vec<StyledLine>),
    /// Files with diffs, and the text appended to counts of omitted lines.
    Files(&'a [FileDifference], &'static str),
}

pub(super) struct SummarySection<'a> {
    pub(super) heading: Option<StyledLine>,
    pub(super) body: SectionContent<'a>,
    /// Minimum number of lines. `None` means that the section is never shortened.
    pub(super) min_lines: Option<usize>,
}

impl SummarySection<'_> {
    /// Returns lines below a title; an empty section without any.
    pub(super) fn titled(
        title: &str,
        lines: Vec<StyledLine>,
        min_lines: Option<usize>,
    ) -> SummarySection<'static> {
        SummarySection {
            heading: (!lines.is_empty()).then(|| StyledLine::of(Tone::Strong, title)),
            body: SectionContent::Listed(lines),
            min_lines,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.heading.is_none() && self.needed_lines() == 0
    }

    /// Lines needed to show everything.
    pub(super) fn needed_lines(&self) -> usize {
        match &self.body {
            SectionContent::Listed(listed) => listed.len(),
            SectionContent::Files(files, _) => difference::needed_lines(files),
        }
    }

    fn weight(&self) -> usize {
        match self.body {
            SectionContent::Files(..) => WEIGHT_OF_CHANGES,
            SectionContent::Listed(_) => 1,
        }
    }

    /// Lines that the section takes on any screen of this width.
    pub(super) fn fixed(&self, width: usize) -> usize {
        let listed = match (&self.body, self.min_lines) {
            (SectionContent::Listed(listed), None) => wrap_all(listed.clone(), width).len(),
            _ => 0,
        };
        usize::from(self.heading.is_some()) + listed
    }

    /// `limit` does not apply to a section that is never shortened.
    pub(super) fn lines(self, limit: usize, width: usize) -> Vec<StyledLine> {
        let listed = match (self.body, self.min_lines) {
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

/// Distributes lines among the sections that can be shortened: first their minimum, then line by
/// line to the section with the smallest weighted share.
pub(super) fn shares(sections: &[SummarySection<'_>], budget: usize) -> Vec<usize> {
    let needed =
        |section: &SummarySection<'_>| section.min_lines.map_or(0, |_| section.needed_lines());
    let mut shares: Vec<usize> = sections
        .iter()
        .map(|section| section.min_lines.unwrap_or(0).min(section.needed_lines()))
        .collect();
    let mut remaining = budget.saturating_sub(shares.iter().sum());

    while let Some(at) = (0..sections.len())
        .filter(|&at| shares[at] < needed(&sections[at]))
        .min_by_key(|&at| shares[at] / sections[at].weight())
        .filter(|_| remaining > 0)
    {
        shares[at] += 1;
        remaining -= 1;
    }
    shares
}

/// The last line counts the omitted ones.
fn shortened(mut lines: Vec<StyledLine>, limit: usize) -> Vec<StyledLine> {
    if lines.len() > limit {
        let visible = limit.saturating_sub(1);
        let left_out = lines.len() - visible;
        lines.truncate(visible);
        lines.push(StyledLine::of(
            Tone::Warning,
            &format!("      … and {left_out} more: (m)odify lists them all"),
        ));
    }

    lines
}
