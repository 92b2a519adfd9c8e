//! Script of the demo: files, recorded answers and command lines.

pub(super) enum DemoStep {
    Heading(&'static str),
    /// A command line with its expected exit code.
    Run(&'static str, i32),
}

pub(super) const DEMO_FILES: [(&str, &str); 1] =
    [("greet.sh", "#!/bin/sh\n# Greets.\necho \"Hello!\"\n")];

pub(super) const DEMO_ANSWERS: [(&str, &str); 4] = [
    ("01.md", include_str!("../../../fixtures/demo/01.md")),
    ("02.md", include_str!("../../../fixtures/demo/02.md")),
    ("03.md", include_str!("../../../fixtures/demo/03.md")),
    ("04.md", include_str!("../../../fixtures/demo/04.md")),
];

pub(super) const DEMO_STEPS: &[DemoStep] = &[
    DemoStep::Heading("A small program under git"),
    DemoStep::Run("git init -q -b main", 0),
    DemoStep::Run("git add greet.sh", 0),
    DemoStep::Run("git commit -q -m 'Add greet'", 0),
    DemoStep::Heading("A session: its model answers from recorded files"),
    DemoStep::Run("teddy new greet-by-name", 0),
    DemoStep::Run("teddy context add greet.sh test.sh", 0),
    DemoStep::Heading("Turn 1: a file is made, a command runs its tests"),
    DemoStep::Run(
        "teddy -q plan -m 'Greet people by name. Start with a test.'",
        0,
    ),
    DemoStep::Run("teddy execute -y", 0),
    DemoStep::Heading(
        "Turn 2: the plan does not fit the file; it is found out before anything runs, and the model is asked again",
    ),
    DemoStep::Run("teddy -q plan -m 'Now make the test pass.'", 3),
    DemoStep::Run("teddy execute -y", 3),
    DemoStep::Heading("Turn 3: the corrected plan, and an edit of your own meanwhile"),
    DemoStep::Run("sh -c 'echo \"my own notes\" > notes.txt'", 0),
    DemoStep::Run("teddy execute -y", 0),
    DemoStep::Heading(
        "Turn 4: the fences of this answer are wrong in the usual way, and are repaired",
    ),
    DemoStep::Run("teddy -q plan -m 'Describe it.'", 0),
    DemoStep::Run("teddy execute -y", 0),
    DemoStep::Heading("What plain git says"),
    DemoStep::Run("git status --short", 0),
    DemoStep::Run(
        "git log --oneline --first-parent teddy/sessions/greet-by-name",
        0,
    ),
    DemoStep::Run(
        "git show --stat --format='%an: %s' teddy/sessions/greet-by-name^2",
        0,
    ),
    DemoStep::Run(
        "git diff teddy/sessions/greet-by-name~3^2 teddy/sessions/greet-by-name^2 -- greet.sh",
        0,
    ),
    DemoStep::Run("git show teddy/sessions/greet-by-name:user_prompt.txt", 0),
    DemoStep::Heading("Back to turn 1: the turns after it are undone, your own notes stay"),
    DemoStep::Run("teddy restore 1", 0),
    DemoStep::Run("git status --short", 0),
    DemoStep::Run("teddy undo", 0),
    DemoStep::Heading("Another way from turn 3 on"),
    DemoStep::Run("teddy branch 3 another-way", 0),
    DemoStep::Run("teddy sessions", 0),
    DemoStep::Run("teddy log -s greet-by-name", 0),
];
