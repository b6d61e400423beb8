//! Requests over time as stacked bars.

use super::grouped;
use crate::replay::time;
use crate::replay::timeline::{Counts, Timeline};

/// The size of the drawing and the place of the bars in it; the page scales it.
const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 260.0;
const LEFT: f64 = 60.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 28.0;

/// How many times are written below the bars, at most.
const LABELS: usize = 6;

/// The room that one of them takes.
const LABEL: f64 = 70.0;

/// The chart. Each bar tells its figures when it is pointed at.
pub(super) fn svg(timeline: &Timeline) -> String {
    let steps: Vec<(u64, Counts)> = timeline.steps().collect();
    let most = steps.iter().map(|(_, counts)| counts.total()).max().unwrap_or(0).max(1);
    let plot = HEIGHT - TOP - BOTTOM;
    let width = (WIDTH - LEFT) / steps.len().max(1) as f64;
    let height = |count: u64| count as f64 / most as f64 * plot;
    let mut svg = format!("<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"Requests over time\">\n");
    for (part, of) in [(0, 2), (1, 2), (2, 2)] {
        let count = most * part / of;
        let y = TOP + plot - height(count);
        svg += &format!("<line class=\"grid\" x1=\"{LEFT}\" x2=\"{WIDTH}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>");
        svg +=
            &format!("<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\n", LEFT - 6.0, y + 4.0, grouped(count));
    }
    for (index, (at, counts)) in steps.iter().enumerate() {
        let (x, gap) = (LEFT + index as f64 * width, width * 0.15);
        let mut y = TOP + plot;
        for (class, count) in [("yes", counts.admitted), ("no", counts.denied)] {
            if count > 0 {
                // What is there at all is seen.
                let high = height(count).max(1.0);
                y -= high;
                svg += &format!(
                    "<rect class=\"{class}\" x=\"{:.2}\" y=\"{y:.1}\" width=\"{:.2}\" height=\"{high:.1}\"/>",
                    x + gap / 2.0,
                    width - gap
                );
            }
        }
        svg += &format!(
            "<rect class=\"hit\" x=\"{x:.2}\" y=\"{TOP}\" width=\"{width:.2}\" height=\"{plot}\"><title>{} UTC, {}: {} admitted, {} denied</title></rect>\n",
            time::write(*at),
            length(timeline.step()),
            grouped(counts.admitted),
            grouped(counts.denied)
        );
    }
    let every = steps.len().div_ceil(LABELS).max(1);
    for (index, (at, _)) in steps.iter().enumerate().step_by(every) {
        let (x, y) = (LEFT + index as f64 * width, HEIGHT - 8.0);
        if x > WIDTH - LABEL {
            break;
        }
        svg += &format!("<text x=\"{x:.1}\" y=\"{y}\">{}</text>\n", label(*at, timeline.step()));
    }
    svg + "</svg>\n"
}

/// A time as precise as a step asks for.
fn label(at: u64, step: u64) -> String {
    let text = time::write(at);
    match step {
        0..60 => text[text.len() - 8..].to_string(),
        60..86_400 => text[text.len() - 14..text.len() - 3].to_string(),
        _ => text[..text.len() - 9].to_string(),
    }
}

fn length(step: u64) -> String {
    crate::duration::say(std::time::Duration::from_secs(step))
}
