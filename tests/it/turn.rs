//! One turn: input, plan, review, run and report.

mod approval;
mod ask;
mod at_work;
mod bad_answers;
mod context;
mod conversation;
mod drafts;
mod execute;
mod format_rules;
mod interrupted;
mod invoke;
mod misread_plans;
pub mod models;
mod one_line;
mod pipeline;
mod plan;
mod preprocess;
mod prose_answers;
mod repairs;
mod replan;
mod reports;
mod request_loop;
mod research;
mod retry;
mod saves_meanwhile;
mod setup;
mod unattended;
