//! Rules for the source code, checked on a changed copy by `first_change`.

#[path = "../it/house/import_circles.rs"]
mod import_circles;
#[path = "../it/house/rules.rs"]
mod rules;
