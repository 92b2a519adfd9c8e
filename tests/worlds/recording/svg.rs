//! Draws frames of a terminal as an SVG, animated or still, without scripts and embedded fonts.
//!
//! The frames are side by side like those of a film, which an animation moves past the window. Each
//! distinct row is drawn once and reused. With reduced motion, the last frame is shown.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use vt100::Color;

use super::Frame;

/// Column width in 1/100 pixel.
const COLUMN: u32 = 840;
/// Row height in pixels.
const ROW: u32 = 19;
/// Around the terminal, in pixels.
const MARGIN: u32 = 16;
/// Height of the title bar in pixels.
const BAR: u32 = 34;
/// Duration of the last frame in tenths of a second.
const REST: u32 = 50;

/// For a dark background.
const PALETTE: [&str; 16] = [
    "#6b7280", "#ff7b72", "#7ee787", "#e3b341", "#79c0ff", "#d2a8ff", "#56d4dd", "#c9d1d9",
    "#8b949e", "#ffa198", "#aff5b4", "#f2cc60", "#a5d6ff", "#e2c5ff", "#b3f0ff", "#ffffff",
];

/// Style of a run of characters.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Look {
    color: Color,
    ground: Color,
    bold: bool,
    dim: bool,
}

pub fn draw(frames: &[Frame], (columns, rows): (u16, u16), title: &str) -> String {
    let width = u32::from(columns) * COLUMN / 100;
    let height = u32::from(rows) * ROW;
    let (outer, tall) = (width + 2 * MARGIN, height + MARGIN + BAR);

    let mut drawn: BTreeMap<String, usize> = BTreeMap::new();
    let mut film = String::new();
    for (number, frame) in frames.iter().enumerate() {
        let _ = write!(
            film,
            "<g transform=\"translate({})\">",
            number as u32 * outer
        );
        for row in 0..rows {
            let text = row_of(&frame.screen, row, columns);
            if text.is_empty() {
                continue;
            }
            let next = drawn.len();
            let id = *drawn.entry(text).or_insert(next);
            let y = u32::from(row) * ROW;
            let _ = write!(film, "<use href=\"#r{id}\" y=\"{y}\"/>");
        }
        film.push_str("</g>\n");
    }
    let mut rows: Vec<(&String, &usize)> = drawn.iter().collect();
    rows.sort_by_key(|(_, id)| **id);
    let rows: String = rows
        .iter()
        .map(|(text, id)| format!("<g id=\"r{id}\">{text}</g>\n"))
        .collect();

    let lights: String = ["#ff5f57", "#febc2e", "#28c840"]
        .iter()
        .enumerate()
        .map(|(n, color)| {
            format!(
                "<circle cx=\"{}\" cy=\"17\" r=\"5\" fill=\"{color}\"/>",
                20 + 18 * n
            )
        })
        .collect();
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {outer} {tall}\" width=\"{outer}\" \
         role=\"img\" aria-label=\"{title}\">\n<title>{title}</title>\n<style>{}</style>\n\
         <defs>\n{rows}</defs>\n<rect class=\"w\" x=\".5\" y=\".5\" width=\"{}\" height=\"{}\" rx=\"9\"/>{lights}\n\
         <svg x=\"{MARGIN}\" y=\"{BAR}\" width=\"{width}\" height=\"{height}\"><g class=\"film\">\n{film}</g></svg>\n</svg>\n",
        style(frames, outer),
        outer - 1,
        tall - 1,
    )
}

/// Returns the stylesheet with the animation.
fn style(frames: &[Frame], step: u32) -> String {
    let last = frames.len() as u32 - 1;
    let whole = frames[frames.len() - 1].at + REST;
    let stops: String = frames
        .iter()
        .enumerate()
        .map(|(number, frame)| {
            let percent = f64::from(frame.at) * 100.0 / f64::from(whole);
            format!(
                "{percent:.2}%{{transform:translateX(-{}px)}}",
                number as u32 * step
            )
        })
        .collect();
    let colors: String = PALETTE
        .iter()
        .enumerate()
        .map(|(number, color)| format!(".c{number}{{fill:{color}}}"))
        .collect();
    let film = match frames {
        [_] => String::new(),
        _ => format!(
            "@keyframes play{{{stops}}}\
             .film{{animation:play {:.1}s steps(1,end) infinite}}\
             @media(prefers-reduced-motion:reduce){{.film{{animation:none;transform:translateX(-{}px)}}}}",
            f64::from(whole) / 10.0,
            last * step,
        ),
    };
    format!(
        "text{{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;\
         fill:#e6edf3;white-space:pre;dominant-baseline:hanging}}\
         .w{{fill:#0d1117;stroke:#6e7681}}.b{{font-weight:700}}.d{{opacity:.65}}{colors}{film}"
    )
}

/// Draws a row. Each run of equally styled characters is placed at its column.
fn row_of(screen: &vt100::Screen, row: u16, columns: u16) -> String {
    let mut runs: Vec<(u16, u16, Look, String)> = Vec::new();
    for column in 0..columns {
        let cell = screen.cell(row, column).unwrap();
        if cell.is_wide_continuation() {
            continue;
        }
        let (color, ground) = if cell.inverse() {
            (Color::Idx(0), Color::Idx(7))
        } else {
            (cell.fgcolor(), cell.bgcolor())
        };
        let look = Look {
            color,
            ground,
            bold: cell.bold(),
            dim: cell.dim(),
        };
        let text = if cell.has_contents() {
            cell.contents()
        } else {
            " "
        };
        let wide = if cell.is_wide() { 2 } else { 1 };
        match runs.last_mut() {
            // Characters that are not one column wide are placed separately.
            Some((start, width, same, run))
                if *same == look && wide == 1 && text.is_ascii() && run.is_ascii() =>
            {
                debug_assert_eq!(*start + *width, column);
                *width += 1;
                run.push_str(text);
            }
            _ => runs.push((column, wide, look, text.to_owned())),
        }
    }
    runs.iter()
        .map(|(start, width, look, text)| run(*start, *width, *look, text))
        .collect()
}

/// Draws a run. Empty if nothing is visible.
fn run(column: u16, width: u16, look: Look, text: &str) -> String {
    let x = |column: u16| f64::from(u32::from(column) * COLUMN) / 100.0;
    let mut drawn = String::new();
    if look.ground != Color::Default {
        let _ = write!(
            drawn,
            "<rect x=\"{}\" width=\"{}\" height=\"{ROW}\" class=\"{}\"/>",
            x(column),
            x(width),
            class(look.ground)
        );
    }
    let shown = text.trim_end();
    let lead = shown.len() - shown.trim_start().len();
    let shown = shown.trim_start();
    if shown.is_empty() {
        return drawn;
    }

    let mut classes = vec![class(look.color)];
    if look.bold {
        classes.push("b".to_owned());
    }
    if look.dim {
        classes.push("d".to_owned());
    }
    let classes = classes.join(" ");
    let classes = match classes.trim() {
        "" => String::new(),
        some => format!(" class=\"{some}\""),
    };
    // Fixes the width, so that another font does not move the text after it.
    let long = shown.chars().count();
    let length = if long > 1 && shown.is_ascii() {
        format!(" textLength=\"{}\"", x(long as u16))
    } else {
        String::new()
    };
    let escaped = shown
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    let _ = write!(
        drawn,
        "<text x=\"{}\" y=\"3\"{length}{classes}>{escaped}</text>",
        x(column + lead as u16)
    );
    drawn
}

/// Returns the CSS class of a color. Empty for the default color.
fn class(color: Color) -> String {
    match color {
        Color::Idx(number @ 0..16) => format!("c{number}"),
        // The program uses only the terminal's palette.
        _ => String::new(),
    }
}
