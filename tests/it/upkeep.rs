//! Kinds of repositories, and their maintenance.

mod doctor;
mod gc;
mod kinds_of_repository;
mod many_turns;
mod repository_formats;
mod tools;
mod unusual_repositories;
mod upgrade;
