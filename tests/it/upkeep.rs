//! Kinds of repositories, and their maintenance.

mod broken_by_other_tools;
mod doctor;
mod gc;
mod kinds_of_repository;
mod many_turns;
mod repository_formats;
mod rewritten_history;
mod tools;
mod unusual_repositories;
