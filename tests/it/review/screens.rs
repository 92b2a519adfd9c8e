//! The screens of the review at three sizes.

use crate::plans::{chat, create, edit_pairs, read, with_memos};
use crate::screen::Screen;
use crate::support::TestRepo;

/// The waiting plan has a bit of everything that looks the same on each machine.
fn project() -> TestRepo {
    let repo = TestRepo::new()
        .file("app.toml", "name = \"x\"\n\na = 1\n")
        .file("docs/日本語.md", "# 概要\n\nCafe\u{301} 👩‍💻 \u{202e}x\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    repo.workflow().add(&["app.toml"]);
    let actions = [
        create(
            "src/новый/größe.py",
            "def main():\n    print(\"日本語 🟢 e\u{301}\")\n",
        ),
        edit_pairs(
            "app.toml",
            &[("name = \"x\"", "name = \"名前\""), ("a = 1", "a = 2")],
        ),
        read("docs/日本語.md"),
        chat("Is **this** right?\n\n- one\n- `two`"),
    ];
    std::fs::write(
        repo.beside("plan.md"),
        with_memos(
            "Start the component 🚀",
            "[+] All components have a core.py. # agreed",
            &actions,
        ),
    )
    .unwrap();
    repo.done(&["plan", "-m", "go", "--from", "../plan.md"]);
    repo
}

fn review(repo: &TestRepo, size: (u16, u16)) -> Screen {
    let mut screen = Screen::open(repo, size, &["execute"]);
    screen.wait_for_prompt("(q)uit ›");
    screen
}

/// Opens the tree of a review and presses keys until the preview shows a text.
fn tree(repo: &TestRepo, size: (u16, u16), (keys, shown): (&str, &str)) -> Screen {
    let mut screen = review(repo, size);
    screen.press("m");
    screen.wait_for("will run");
    screen.press(keys);
    screen.wait_for(shown);
    screen
}

/// Returns the screen without empty lines.
fn dense(screen: &mut Screen) -> String {
    let shown = screen.settled();
    shown
        .lines()
        .filter(|line| !matches!(line.trim(), "" | "│"))
        .collect::<Vec<_>>()
        .join("\n")
}

fn leave(mut screen: Screen) {
    screen.press("\x03");
    screen.end();
}

#[test]
fn the_summary_on_a_common_terminal() {
    let repo = project();
    let mut screen = review(&repo, (80, 24));
    insta::assert_snapshot!(screen.settled(), @r#"
    ▶ Reviewing Plan: "Start the component 🚀"
      demo · turn 1 · 🟢 Green · Pathfinder
    ────────────────────────────────────────────────────────────────────────────────
     Rationale:
      Start the component 🚀, because it is wanted.
     Changes: 2 files  +4 -2
      src/новый/größe.py  +2  new file
        +def main():
        +    print("日本語 🟢 é")
      app.toml  +2 -2
        @@ -1,3 +1,3 @@
        … 5 more lines: d
     memos.yaml:
      [+] ADD:    All components have a core.py. # agreed
     Action Plan:
      - CREATE: 1 file
      - EDIT: 1 file
      - READ: 1 resource
          docs/日本語.md
      - CHAT_WITH_USER: 1 message
          Is **this** right?
    ────────────────────────────────────────────────────────────────────────────────
    enter approves · d diff · c comment · ?
    Execute this plan? (a)pprove / (r)ead / (m)odify / (e)dit / (s)kip / (q)uit ›
    "#);
    leave(screen);
}

#[test]
fn an_edit_on_a_common_terminal() {
    let repo = project();
    let mut screen = tree(&repo, (80, 24), ("jjj", "+a = 2"));
    insta::assert_snapshot!(screen.settled(), @r#"
    ▶ Start the component 🚀
     Memos
     └─[✓] [+] ADD:    All components have a core.py. # agreed
     Action Plan
     ├─[✓] CREATE: src/новый/größe.py
    ›├─[✓] EDIT: app.toml  ▸ 2/2 pairs
     ├─[✓] READ: docs/日本語.md
     └─[✓] CHAT_WITH_USER: Is **this** right?
    ────────────────────────────────────────────────────────────────────────────────
    Change app.toml.

    --- a/app.toml
    +++ b/app.toml
    @@ -1,3 +1,3 @@
    -name = "x"
    +name = "名前"

    -a = 1
    +a = 2



    4 of 4 actions and 1 of 1 memo will run
    a approve  esc back  ? help  space toggle  e edit  s skip  q quit  * all  v view
    "#);
    screen.press("lj ");
    screen.wait_for("1/2 pairs");
    insta::assert_snapshot!(screen.settled(), @r#"
    ▶ Start the component 🚀
     Memos
     └─[✓] [+] ADD:    All components have a core.py. # agreed
     Action Plan
     ├─[✓] CREATE: src/новый/größe.py
     ├─[✓] EDIT: app.toml  ▾ 1/2 pairs
    ›│  ├─[ ] 1. name = "x" → name = "名前"
     │  └─[✓] 2. a = 1 → a = 2
     ├─[✓] READ: docs/日本語.md
     └─[✓] CHAT_WITH_USER: Is **this** right?
    ────────────────────────────────────────────────────────────────────────────────
    FIND → REPLACE
    -name = "x"
    +name = "名前"








    4 of 4 actions and 1 of 1 memo will run
    a approve  esc back  ? help  space toggle  e edit  s skip  q quit  * all  v view
    "#);
    leave(screen);
}

#[test]
fn a_resource_on_a_common_terminal() {
    let repo = project();
    let mut screen = tree(&repo, (80, 24), ("jjjj", "joins the context"));
    insta::assert_snapshot!(screen.settled(), @r#"
    ▶ Start the component 🚀
     Memos
     └─[✓] [+] ADD:    All components have a core.py. # agreed
     Action Plan
     ├─[✓] CREATE: src/новый/größe.py
     ├─[✓] EDIT: app.toml  ▸ 2/2 pairs
    ›├─[✓] READ: docs/日本語.md
     └─[✓] CHAT_WITH_USER: Is **this** right?
    ────────────────────────────────────────────────────────────────────────────────
    Look at it.

    docs/日本語.md joins the context of the next turn

    # 概要

    Café 👩\u{200d}💻 \u{202e}x






    4 of 4 actions and 1 of 1 memo will run
    a approve  esc back  ? help  space toggle  e edit  s skip  q quit  * all  v view
    "#);
    leave(screen);
}

#[test]
fn summary_and_tree_on_a_wide_terminal() {
    let repo = project();
    let mut screen = review(&repo, (200, 60));
    insta::assert_snapshot!(dense(&mut screen), @r#"
    ▶ Reviewing Plan: "Start the component 🚀"
      demo · turn 1 · 🟢 Green · Pathfinder
    ────────────────────────────────────────────────────────────────────────────────────────────────────
     Rationale:
      Start the component 🚀, because it is wanted.
     Changes: 2 files  +4 -2
      src/новый/größe.py  +2  new file
        +def main():
        +    print("日本語 🟢 é")
      app.toml  +2 -2
        @@ -1,3 +1,3 @@
        -name = "x"
        +name = "名前"
        -a = 1
        +a = 2
     memos.yaml:
      [+] ADD:    All components have a core.py. # agreed
     Action Plan:
      - CREATE: 1 file
      - EDIT: 1 file
      - READ: 1 resource
          docs/日本語.md
      - CHAT_WITH_USER: 1 message
          Is **this** right?
    ────────────────────────────────────────────────────────────────────────────────────────────────────
    enter approves · d diff · c comment · ?
    Execute this plan? (a)pprove / (r)ead / (m)odify / (e)dit / (s)kip / (q)uit ›
    "#);
    screen.press("m");
    screen.wait_for("will run");
    screen.press("jj");
    screen.wait_for("日本語 🟢");
    insta::assert_snapshot!(dense(&mut screen), @r#"
    ▶ Start the component 🚀
     Memos                                                                          │ Make src/новый/größe.py.
     └─[✓] [+] ADD:    All components have a core.py. # agreed                      │
     Action Plan                                                                    │ --- /dev/null
    ›├─[✓] CREATE: src/новый/größe.py                                               │ +++ b/src/новый/größe.py
     ├─[✓] EDIT: app.toml  ▸ 2/2 pairs                                              │ @@ -0,0 +1,2 @@
     ├─[✓] READ: docs/日本語.md                                                     │ +def main():
     └─[✓] CHAT_WITH_USER: Is **this** right?                                       │ +    print("日本語 🟢 é")
    4 of 4 actions and 1 of 1 memo will run
    a approve  esc back  ? help  space toggle  e edit  s skip  q quit  * all  v view  ↑/↓ move
    "#);
    leave(screen);
}

#[test]
fn everything_on_a_narrow_terminal() {
    let repo = project();
    let mut screen = review(&repo, (40, 12));
    insta::assert_snapshot!(screen.settled(), @r"
    ▶ Start the component 🚀
      demo · turn 1 · 🟢 Green · Pathfinder
    ────────────────────────────────────────
     memos: 1 added
     CREATE 1 file, EDIT 1 file, READ 1
     ↪ resource, CHAT_WITH_USER 1 message
     ↪ +4 -2
    enter approves · d diff · c comment · ?
    Execute this plan?
    (a)pprove / (r)ead / (m)odify /
    (e)dit / (s)kip / (q)uit ›
    ");
    screen.press("m");
    screen.wait_for("will run");
    insta::assert_snapshot!(screen.settled(), @r#"
    ▶ Start the component 🚀
     Memos
    ›└─[✓] [+] ADD:    All components have …
     Action Plan
     ├─[✓] CREATE: src/новый/größe.py
     ├─[✓] EDIT: app.toml  ▸ 2/2 pairs
     ├─[✓] READ: docs/日本語.md
     └─[✓] CHAT_WITH_USER: Is **this** righ…


    4 of 4 actions and 1 of 1 memo will run
    a approve  esc back  ? help
    "#);
    screen.press("jjv");
    screen.wait_for("j/k");
    insta::assert_snapshot!(dense(&mut screen), @r#"
    CREATE: src/новый/größe.py
    Make src/новый/größe.py.
    --- /dev/null
    +++ b/src/новый/größe.py
    @@ -0,0 +1,2 @@
    +def main():
    +    print("日本語 🟢 é")
    7/7 j/k, space, PgUp/PgDn, g/G scroll ·…
    "#);
    screen.press("q");
    screen.wait_for("will run");
    leave(screen);
}

/// Returns the screen on which the user changes a new file.
fn changing_a_new_file(size: (u16, u16)) -> String {
    let repo = project();
    repo.configure("preview_command: \"true\"\n");
    let mut screen = tree(&repo, size, ("jjp", "(y/n)"));
    let shown = dense(&mut screen);
    let shown = shown[shown.find("Your editor").unwrap()..].to_owned();
    screen.press("d");
    screen.wait_for("will run");
    leave(screen);
    shown
}

#[test]
fn a_new_file_is_changed_on_a_common_terminal() {
    insta::assert_snapshot!(changing_a_new_file((80, 24)), @r#"
    Your editor has been opened to preview the new file's content. You may edit it
    ↪ directly in this preview.
    Have you finished editing and saved the file content? (y/n) ›
    "#);
}

#[test]
fn a_new_file_is_changed_on_a_narrow_terminal() {
    insta::assert_snapshot!(changing_a_new_file((40, 12)), @r#"
    Your editor has been opened to preview
    ↪ the new file's content. You may edit
    ↪ it directly in this preview.
    Have you finished editing and saved the
    ↪ file content?
    (y/n) ›
    "#);
}

#[test]
fn a_question_of_the_model_on_other_terminals() {
    let asked = |size: (u16, u16)| {
        let repo = project();
        let mut screen = review(&repo, size);
        screen.press("a");
        screen.wait_for_prompt("leaves\n›");
        screen.press("a word and another one and 日本語 zz");
        screen.wait_for("zz");
        let shown = dense(&mut screen);
        screen.press("\r");
        assert_eq!(screen.end(), 0, "{}", screen.shown());
        shown[shown.find("▌ Is").unwrap()..].to_owned()
    };
    insta::assert_snapshot!(asked((40, 12)), @r#"
    ▌ Is this right?
    ▌
    ▌ • one
    ▌ • `two`
    Your answer:
    enter sends, \ + enter for another
    ↪ line, ctrl-e for the editor, ctrl-d
    ↪ leaves
    › a word and another one and 日本語 zz
    "#);
    insta::assert_snapshot!(asked((200, 60)), @r#"
    ▌ Is this right?
    ▌
    ▌ • one
    ▌ • `two`
    Your answer:
    enter sends, \ + enter for another line, ctrl-e for the editor, ctrl-d leaves
    › a word and another one and 日本語 zz
    "#);
}

#[test]
fn a_question_of_the_model() {
    let repo = project();
    let mut screen = review(&repo, (80, 24));
    screen.press("a");
    screen.wait_for("enter sends");
    screen.press("yes,\\\rit is 日本");
    screen.wait_for("it is 日本");
    insta::with_settings!({filters => [(r"\(\d+\.\d s\)", "")]}, { insta::assert_snapshot!(dense(&mut screen), @r"
      - EDIT: 1 file
      - READ: 1 resource
          docs/日本語.md
      - CHAT_WITH_USER: 1 message
          Is **this** right?
    ────────────────────────────────────────────────────────────────────────────────
    enter approves · d diff · c comment · ?
    Execute this plan? (a)pprove / (r)ead / (m)odify / (e)dit / (s)kip / (q)uit › a
    ▶ 1. CREATE src/новый/größe.py
      ✓ created, 2 lines
    ▶ 2. EDIT app.toml
      ✓ changed 2 places: 2 lines added, 2 removed
    ▶ 3. READ docs/日本語.md
      ✓ read; it is in the context of the next turn
    ▶ 4. CHAT_WITH_USER Is **this** right?
      ✓ asks the user
    ▌ Is this right?
    ▌
    ▌ • one
    ▌ • `two`
    Your answer:
    enter sends, \ + enter for another line, ctrl-e for the editor, ctrl-d leaves
    › yes,
      it is 日本
    ") });
    screen.press("\r");
    assert_eq!(screen.end(), 0, "{}", screen.shown());
    assert_eq!(
        repo.git(&["show", "teddy/drafts/demo:user_prompt.txt"]),
        "yes,\nit is 日本"
    );
}
