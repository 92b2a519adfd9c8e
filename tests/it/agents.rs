//! Agents that edit files themselves.

mod acp;
mod definitions;
mod derived_plan;
mod hooks;
mod lanes;
mod offered;
mod programs;
mod race;
mod resumed;
mod transcript_size;
mod turns;
