//! State files that are damaged, or replaced by something else.

use std::path::PathBuf;

use crate::killed_repo::{Rig, each_file, said};
use crate::support::sample;

/// Returns a rig with a session of two turns and a waiting plan.
pub fn rig() -> Rig {
    let rig = Rig::new(env!("CARGO_BIN_EXE_teddy").as_ref(), 20);
    rig.must(&["new", "storm"]);
    for tag in ["1", "2"] {
        rig.must(&[
            "execute",
            &rig.plan(tag, &[Rig::file(0), Rig::file(1)], None),
            "-y",
        ]);
    }
    rig.must(&["plan", "--from", &rig.plan("3", &[Rig::file(0)], None)]);
    rig
}

pub fn inside(rig: &Rig, name: &str) -> PathBuf {
    rig.path().join(".git").join(name)
}

#[test]
fn no_damage_to_a_state_file_is_a_panic_or_stops_the_next_turn() {
    let rig = rig();
    let mut files = Vec::new();
    each_file(&inside(&rig, "teddy"), &mut |path| {
        files.push(path.to_owned())
    });
    assert!(files.len() > 4, "{files:?}");
    files.sort();
    let step = if crate::WORLDS { 1 } else { 5 };
    for (at, file) in files.iter().enumerate() {
        let damages = [b"".as_slice(), b"\xff\0garbage\n", &[0; 4096]];
        let mut damages: Vec<_> = damages.into_iter().enumerate().collect();
        damages.retain(|(nth, _)| (3 * at + nth) % step == 0);
        if damages.is_empty() {
            continue;
        }
        for (_, bytes) in damages {
            // `doctor --fix` removes a directory that it emptied.
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, bytes).unwrap();
            for args in [
                ["status"].as_slice(),
                &["log"],
                &["context", "list"],
                &["sessions"],
                &["doctor", "--fix"],
            ] {
                let output = rig.run(args);
                assert_eq!(
                    output.status.code(),
                    Some(0),
                    "{} {args:?}: {}",
                    file.display(),
                    said(&output)
                );
            }
        }
        rig.must(&[
            "-s",
            "storm",
            "execute",
            &rig.plan("x", &[Rig::file(2)], None),
            "-y",
        ]);
    }
}

pub fn replace(path: &std::path::Path, with: &str) {
    let _ = std::fs::remove_file(path);
    match with {
        "a folder with a file" => {
            std::fs::create_dir(path).unwrap();
            std::fs::write(path.join("x"), "x").unwrap();
        }
        "a dangling link" => std::os::unix::fs::symlink("nowhere", path).unwrap(),
        "a link to itself" => std::os::unix::fs::symlink(path.file_name().unwrap(), path).unwrap(),
        other => panic!("{other}"),
    }
}

#[test]
fn something_else_in_the_place_of_a_state_file_is_healed_or_named() {
    for (at, with) in ["a folder with a file", "a dangling link"]
        .into_iter()
        .enumerate()
    {
        let rig = rig();
        let mut files = Vec::new();
        each_file(&inside(&rig, "teddy"), &mut |path| {
            files.push(path.to_owned())
        });
        files.sort();
        let first = ["teddy/pending.json", "refs/teddy/sessions/storm.lock"];
        files.splice(0..0, first.map(|name| inside(&rig, name)));
        files.retain(|file| !file.ends_with("teddy/own-packs"));
        for file in sample(files, 4, at) {
            let before = std::fs::read(&file).ok();
            if before.is_none() && file.exists() {
                continue;
            }
            replace(&file, with);
            let name = file.display();
            for args in [
                ["status"].as_slice(),
                &["log"],
                &["show"],
                &["context", "list"],
                &["sessions"],
                &["doctor", "--fix"],
                &["doctor", "--fix"],
            ] {
                let output = rig.run(args);
                let code = output.status.code();
                assert!(
                    matches!(code, Some(0 | 1)),
                    "{name} is {with}: {args:?}: {}",
                    said(&output)
                );
                let named = said(&output).contains(file.file_name().unwrap().to_str().unwrap());
                assert!(
                    code == Some(0) || named,
                    "{name} is {with}: {args:?} does not say so: {}",
                    said(&output)
                );
                let reads = !matches!(args[0], "doctor");
                assert!(
                    code == Some(0) || !reads,
                    "{name} is {with}: a reader fails: {args:?}: {}",
                    said(&output)
                );
            }
            let next = rig.plan("x", &[Rig::file(2)], None);
            let output = rig.run(&["-s", "storm", "execute", &next, "-y"]);
            if !output.status.success() {
                assert!(
                    said(&output).contains(file.file_name().unwrap().to_str().unwrap()),
                    "{name} is {with}: {}",
                    said(&output)
                );
                // If TeDDy cannot repair it, the error names the file, and removing it helps.
                let _ = std::fs::remove_dir_all(&file);
                let _ = std::fs::remove_file(&file);
                rig.must(&["-s", "storm", "execute", &next, "-y"]);
            }
        }
    }
}
