//! The most denied keys as bars, each of what it was denied and what it was admitted.

use super::{escaped, grouped};
use crate::replay::report::shown;
use crate::replay::timeline::Counts;

const WIDTH: f64 = 960.0;
const LEFT: f64 = 250.0;
const RIGHT: f64 = 90.0;
const ROW: f64 = 24.0;

/// How much of a key is written before its bar.
const KEY: usize = 36;

/// The chart: a row for each key.
pub(super) fn svg(keys: &[(&[u8], Counts)]) -> String {
    let most = keys.iter().map(|(_, counts)| counts.total()).max().unwrap_or(0).max(1);
    let width = |count: u64| count as f64 / most as f64 * (WIDTH - LEFT - RIGHT);
    let height = ROW * keys.len() as f64;
    let mut svg = format!("<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"The most denied keys\">\n");
    for (index, (key, counts)) in keys.iter().enumerate() {
        let y = index as f64 * ROW;
        let (denied, admitted) = (width(counts.denied).max(1.0), width(counts.admitted));
        let middle = y + ROW / 2.0 + 4.0;
        svg += &format!(
            "<g><title>{}: {} denied, {} admitted</title>",
            escaped(&shown(key, 200)),
            grouped(counts.denied),
            grouped(counts.admitted)
        );
        let name = escaped(&shown(key, KEY));
        svg += &format!("<text class=\"key\" x=\"{}\" y=\"{middle}\" text-anchor=\"end\">{name}</text>", LEFT - 8.0);
        for (class, x, width) in [("no", LEFT, denied), ("yes", LEFT + denied, admitted)] {
            let (y, height) = (y + 4.0, ROW - 8.0);
            svg +=
                &format!("<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y}\" width=\"{width:.1}\" height=\"{height}\"/>");
        }
        let x = LEFT + denied + admitted + 6.0;
        svg += &format!("<text x=\"{x:.1}\" y=\"{middle}\">{} denied</text></g>\n", grouped(counts.denied));
    }
    svg + "</svg>\n"
}
