//! `teddy __lane`: one lane of a race. Started by `teddy race`, hidden from the help.

use std::io::Stdout;
use std::time::{Duration, Instant};

use crate::cli::app::App;
use crate::model::acting::AgentProgress;
use crate::text::secret::redact;
use crate::ui::notice;
use crate::ui::progress::AgentWork;
use crate::workflow::race::lane::{self, LaneNews, LaneOrder};
use crate::workflow::user::{Decision, Event, NobodyToAsk, Notice, Question, ReviewRequest, User};

/// Minimum time between progress reports.
const REFRESH: Duration = Duration::from_millis(200);
/// Average bytes per token, for an estimate.
const BYTES_PER_TOKEN: usize = 4;

/// One lane of a race, which `teddy race` starts
#[derive(clap::Args)]
pub(in crate::cli) struct Args {}

/// Reads the request from stdin, asks the model, and reports progress on stdout.
pub(in crate::cli) fn run(_: Args, app: &mut App) -> anyhow::Result<()> {
    let order = LaneOrder::take()?;
    let project = app.open()?;
    let mut teller = LaneReporter {
        out: std::io::stdout(),
        approves: order.approves,
        work: AgentWork::default(),
        written: None,
    };
    let news = match lane::run(&project, &order, &mut teller) {
        Ok(plan) => LaneNews::Planned(Box::new(plan)),
        Err(error) => LaneNews::Failed {
            why: redact(&format!("{error:#}")).into_owned(),
            cost: lane::lost(&project).ok().flatten(),
        },
    };
    lane::send_news(&mut teller.out, &news);
    Ok(())
}

/// A `User` that reports progress to the parent process and decides nothing.
struct LaneReporter {
    out: Stdout,
    /// Whether requests of a program are approved.
    approves: bool,
    work: AgentWork,
    /// Time of the last report.
    written: Option<Instant>,
}

impl LaneReporter {
    /// Reports progress, limited by [`REFRESH`].
    fn doing(&mut self, activity: &str, tokens: u64, cost: Option<f64>) {
        let is_due = self
            .written
            .is_none_or(|written| written.elapsed() >= REFRESH);
        if is_due {
            self.written = Some(Instant::now());
            let news = LaneNews::Doing {
                what: activity.to_owned(),
                tokens,
                cost,
            };
            lane::send_news(&mut self.out, &news);
        }
    }

    /// Records the progress of a model that edits files.
    fn working(&mut self, progress: &AgentProgress<'_>) {
        self.work.feed(progress);
        let (activity, tokens, cost) = self.work.now();
        self.doing(&activity, tokens, cost);
    }
}

impl User for LaneReporter {
    fn review(&mut self, _: &ReviewRequest<'_>) -> anyhow::Result<Decision> {
        Ok(Decision::Quit)
    }

    fn approves_unseen(&self) -> bool {
        self.approves
    }

    fn ask(&mut self, _: &Question<'_>) -> anyhow::Result<Option<String>> {
        let reason = "a race has no user to answer";
        Err(NobodyToAsk::new(reason, "`teddy resume` asks the session's model alone").into())
    }

    fn confirm(&mut self, question: &str, _: &str) -> anyhow::Result<bool> {
        let reason = format!("no user to answer `{question}` in a race");
        Err(NobodyToAsk::new(reason, "`teddy plan` asks one model alone").into())
    }

    fn report(&mut self, event: Event<'_>) {
        match event {
            Event::Asking { .. } => self.doing("asked", 0, None),
            Event::Received { text } if !text.is_empty() => {
                let tokens = text.len() / BYTES_PER_TOKEN;
                self.doing("writing", tokens as u64, None);
            }
            Event::Working(progress) => self.working(progress),
            Event::Started { label, .. } => self.doing(label, 0, None),
            Event::Notice(notice @ (Notice::CopyLacks { .. } | Notice::CommandsInCopy(_))) => {
                for line in notice::lines(&notice) {
                    lane::send_news(&mut self.out, &LaneNews::Remark(line.text()));
                }
            }
            _ => {}
        }
    }
}
