//! Runs the screen of comments on lines, in the review.

use super::{EditingScreens, Modify};
use crate::session::comments::LineComment;
use crate::text::sanitize::sanitize_line;
use crate::ui::ask::NOT_ALONE;
use crate::ui::commenting::{Commenting, CommentingCommand, HELP};
use crate::ui::editing::{EditingPrompts as _, TerminalPrompts};
use crate::ui::pager::Pager;
use crate::ui::style::{StyledLine, Tone};
use crate::ui::terminal::Full;
use crate::ui::{draw, summary};
use crate::workflow::user::{Decision, ReviewRequest};

/// Lines for title and keys.
const FRAME: u16 = 2;

impl Modify {
    /// Returns how the plan is declined: with the comments, if there are any.
    pub fn declined(&self) -> Decision {
        match self.comments.is_empty() {
            true => Decision::Skip(None),
            false => Decision::Comment(self.comments.clone()),
        }
    }

    /// Shows the differences of the running plan with comments, on a full screen of its own.
    pub fn comment(
        &mut self,
        proposal: &ReviewRequest<'_>,
        prompts: &mut TerminalPrompts,
    ) -> anyhow::Result<Option<Decision>> {
        let mut stage = EditingScreens {
            full: Full::enter()?,
            prompts,
        };
        self.comment_on(&mut stage, proposal, None)
    }

    /// Returns the decision, or `None` if the user goes back.
    pub(super) fn comment_on(
        &mut self,
        stage: &mut EditingScreens<'_>,
        proposal: &ReviewRequest<'_>,
        path: Option<&str>,
    ) -> anyhow::Result<Option<Decision>> {
        let running = self.running(proposal)?;
        let files = match &running {
            Some((plan, simulation)) => summary::reviewed_files(plan, simulation),
            None => summary::reviewed_files(proposal.plan, proposal.simulation),
        };
        let mut screen = Commenting::new(files, self.comments.clone(), proposal.comments, path);
        loop {
            let area = stage.full.area()?;
            screen.fit(usize::from(area.height.saturating_sub(FRAME)));
            let (title, paint) = (&self.draft.plan.title, stage.prompts.paint);
            let body = screen.visible_lines(usize::from(area.width));
            let footer = screen.footer();
            stage
                .full
                .draw(|frame| draw::page(frame, title, body.into_iter(), footer, paint))?;

            match screen.press(&stage.full.next_key()?) {
                Some(CommentingCommand::Back) => return Ok(None),
                Some(CommentingCommand::Send) if stage.full.is_alone()? => {
                    return Ok(Some(self.declined()));
                }
                Some(CommentingCommand::Send) => {
                    screen.list.notice = Some(NOT_ALONE.to_owned());
                }
                Some(CommentingCommand::Write { comment, index }) => {
                    let written = stage
                        .full
                        .outside_full_screen(|| write(stage.prompts, *comment))??;
                    if let Some(comment) = written {
                        screen.write(comment, index);
                        self.keep_comments(&screen, proposal)?;
                    }
                }
                Some(CommentingCommand::Changed) => self.keep_comments(&screen, proposal)?,
                Some(CommentingCommand::Help) => {
                    Pager::keys(&HELP).run(&mut stage.full, paint)?;
                }
                None => {}
            }
        }
    }

    fn keep_comments(
        &mut self,
        screen: &Commenting,
        proposal: &ReviewRequest<'_>,
    ) -> anyhow::Result<()> {
        self.comments = screen.comments().to_vec();
        // At once, so that a crash of the review loses none.
        (proposal.save_comments)(&self.comments)
    }
}

/// Asks for the text of a comment on the normal screen. `None` if the user leaves or writes
/// nothing.
fn write(
    prompts: &mut TerminalPrompts,
    comment: LineComment,
) -> std::io::Result<Option<LineComment>> {
    let mut lines = vec![
        StyledLine::default(),
        StyledLine::of(Tone::Strong, &sanitize_line(&comment.place())),
    ];
    let quoted = comment.quoted.iter();
    lines.extend(
        quoted.map(|line| StyledLine::of(Tone::Faint, &format!("  {}", sanitize_line(line)))),
    );
    lines.push(StyledLine::of(Tone::Strong, "Your comment:"));
    prompts.show(&lines);
    let text = prompts.text(&comment.text)?;
    let text = text.filter(|text| !text.trim().is_empty());
    Ok(text.map(|text| comment.with_text(&text)))
}
