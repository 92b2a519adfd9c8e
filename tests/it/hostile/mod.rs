//! What models, repositories, pages and commands may try, and what must come of it: one row for
//! each.

mod bombs;
mod builds;
mod bundles;
mod confined;
mod disk;
mod endless;
mod git;
mod ground;
mod markdown;
mod objects;
mod odd;
mod paths;
mod private;
mod processes;
mod remote;
mod repository;
mod sandbox;
mod size;
mod trust;
mod unusual;
mod vandals;
mod words;
