//! Snapshots of the screen at several sizes.

use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::*;
use crate::ui::draft::EditedPlan;
use crate::ui::key::Key;
use crate::ui::pager::Pager;
use crate::ui::preview;
use crate::ui::sample::{self, Sample};
use crate::ui::style::wrap_all;

fn screen(sample: &Sample, size: (u16, u16), keys: &[Key]) -> String {
    let proposal = sample.proposal();
    let mut draft = EditedPlan::new(&proposal);
    let mut list = Checklist::new(draft.items());
    list.list.fit(list.rows().len(), 20);
    for key in keys {
        list.press(key);
    }
    draft.validate(&mut list, &proposal).unwrap();
    let panes = split_panes(Rect::new(0, 0, size.0, size.1), list.rows().len());
    let lines = list
        .row()
        .filter(|_| panes.side.width > 0)
        .map(|row| preview::lines(&draft, &list, row))
        .unwrap_or_default();
    let preview = wrap_all(lines, usize::from(panes.side.width));
    list.list
        .fit(list.rows().len(), usize::from(panes.list.height));
    list.preview
        .fit(preview.len(), usize::from(panes.side.height));
    let mut terminal = Terminal::new(TestBackend::new(size.0, size.1)).unwrap();
    terminal
        .draw(|frame| checklist(frame, &list, &sample.plan.title, &preview, Paint::Colors))
        .unwrap();
    sample::rendered(&terminal)
}

const SWITCH_PAIR: [Key; 6] = [
    Key::Down,
    Key::Down,
    Key::Down,
    Key::Right,
    Key::Down,
    Key::Char(' '),
];

#[test]
fn a_common_terminal_has_the_preview_below() {
    insta::assert_snapshot!(screen(&sample::bootstrap(), (80, 24), &[Key::Down, Key::Down]), @r#"
    ▶ Bootstrap New Project Component
     Memos
     └─[✓] [+] ADD:    All new components must have a core.py file. # Establish a n…
     Action Plan
    ›├─[✓] CREATE: src/components/new_component/core.py
     ├─[✓] EDIT: pyproject.toml  ▸ 2/2 pairs
     ├─[✓] READ: docs/日本語.md
     ├─[✓] EXECUTE: poetry lock
     └─[✓] CHAT_WITH_USER: Is **this** right?
    ────────────────────────────────────────────────────────────────────────────────
    Start the component.

    --- /dev/null
    +++ b/src/components/new_component/core.py
    @@ -0,0 +1,2 @@
    +def main():
    +    pass





    5 of 5 actions and 1 of 1 memo will run
    a approve  esc back  ? help  space toggle  e edit  s skip  q quit  * all  v view
    "#);
}

#[test]
fn a_wide_terminal_has_the_preview_beside() {
    let screen = screen(&sample::bootstrap(), (200, 60), &SWITCH_PAIR);
    assert_eq!(screen.lines().count(), 60);
    insta::assert_snapshot!(screen.lines().filter(|line| line.trim() != "│").collect::<Vec<_>>().join("\n"), @r#"
    ▶ Bootstrap New Project Component
     Memos                                                                          │ FIND → REPLACE
     └─[✓] [+] ADD:    All new components must have a core.py file. # Establish a n…│  name = "x"
     Action Plan                                                                    │ +version = "1"
     ├─[✓] CREATE: src/components/new_component/core.py                             │
     ├─[✓] EDIT: pyproject.toml  ▾ 1/2 pairs ✗                                      │
    ›│  ├─[ ] 1. (nothing) → version = "1"                                          │
     │  └─[✗] 2. version = "1" → version = "2" ✗                                    │
     ├─[✓] READ: docs/日本語.md                                                     │
     ├─[✓] EXECUTE: poetry lock                                                     │
     └─[✓] CHAT_WITH_USER: Is **this** right?                                       │
    ✗ EDIT pyproject.toml depends on what is switched off or changed: FIND is not in `pyproject.toml`
    a approve  esc back  ? help  space toggle  e edit  s skip  q quit  * all  v view  ↑/↓ move
    "#);
}

#[test]
fn a_narrow_terminal_has_the_list_alone() {
    insta::assert_snapshot!(screen(&sample::bootstrap(), (40, 12), &SWITCH_PAIR), @r#"
    ▶ Bootstrap New Project Component
     Memos
     └─[✓] [+] ADD:    All new components m…
     Action Plan
     ├─[✓] CREATE: src/components/new_compo…
     ├─[✓] EDIT: pyproject.t…  ▾ 1/2 pairs ✗
    ›│  ├─[ ] 1. (nothing) → version = "1"
     │  └─[✗] 2. version = "1" → version … ✗
     ├─[✓] READ: docs/日本語.md
     ├─[✓] EXECUTE: poetry lock
    ✗ EDIT pyproject.toml depends on what i…
    a approve  esc back  ? help
    "#);
}

#[test]
fn wide_characters_keep_their_columns() {
    insta::assert_snapshot!(screen(&sample::bootstrap(), (24, 9), &[Key::Down, Key::Down, Key::Char(' ')]), @r#"
    ▶ Bootstrap New Project…
     Memos
     └─[✓] [+] ADD:    All …
     Action Plan
    ›├─[ ] CREATE: src/comp…
     ├─[✓] EDI…  ▸ 2/2 pairs
     ├─[✓] READ: docs/日本…
    ↓ 4 of 5 actions and 1 …
    a approve  esc back
    "#);
}

#[test]
fn no_size_is_too_small() {
    for size in [(1, 1), (3, 2), (10, 3), (100, 4), (5, 20)] {
        screen(&sample::bootstrap(), size, &[]);
    }
}

#[test]
fn the_end_of_a_long_list_is_reached() {
    let text = screen(&sample::many(500), (80, 24), &[Key::End]);
    assert!(text.contains("›└─[✓] CREATE: src/file_499.txt"), "{text}");
    assert!(text.contains("500 of 500 actions will run"), "{text}");
}

#[test]
fn of_a_long_list_only_what_is_on_the_screen_is_made() {
    let sample = sample::many(500);
    let shown = |key| {
        let mut list = Checklist::new(EditedPlan::new(&sample.proposal()).items());
        list.list.fit(list.rows().len(), 20);
        list.press(&key);
        let rows = visible_rows(&list, 80);
        let selected = rows.iter().filter(|(_, selected)| *selected).count();
        let status = status(&list).text();
        let arrows = status.split(' ').next().unwrap_or_default();
        format!("{} {selected} {arrows}", rows.len())
    };
    assert_eq!(
        [Key::Home, Key::PageDown, Key::End].map(shown),
        ["20 1 ↓", "20 1 ↑↓", "20 1 ↑"]
    );
}

#[test]
fn a_text_is_drawn_between_title_and_keys() {
    let lines = (0..30)
        .map(|n| StyledLine::plain(&format!("line {n}")))
        .collect();
    let mut pager = Pager::new("plan.md", lines);
    pager.fit(Rect::new(0, 0, 40, 6));
    pager.press(&Key::Char('G'));
    let mut terminal = Terminal::new(TestBackend::new(40, 6)).unwrap();
    terminal
        .draw(|frame| pager.draw(frame, Paint::Bare))
        .unwrap();

    insta::assert_snapshot!(sample::rendered(&terminal), @r"
    plan.md
    line 26
    line 27
    line 28
    line 29
    30/30 j/k, space, PgUp/PgDn, g/G scroll…
    ");
}

#[test]
fn without_colours_only_weight_is_used() {
    for tone in [
        Tone::Added,
        Tone::Removed,
        Tone::Warning,
        Tone::Accent,
        Tone::AddedPart,
    ] {
        assert_eq!(style(tone, Paint::Bare).fg, None);
        assert!(style(tone, Paint::Colors).fg.is_some());
    }
}
