//! Tables that read the same in a terminal and in Markdown.

use std::fmt;

/// Rows of cells below a heading; the first column is text, the others are figures.
#[derive(Debug)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(heading: &[&str]) -> Self {
        Table { rows: vec![heading.iter().map(|cell| (*cell).to_string()).collect()] }
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.rows[0].len();
        let width =
            |column: usize| self.rows.iter().filter_map(move |row| row.get(column)).map(|cell| cell.chars().count());
        let widths: Vec<usize> = (0..columns).map(|column| width(column).max().unwrap_or(0).max(3)).collect();
        for (number, row) in self.rows.iter().enumerate() {
            for (column, (cell, &width)) in row.iter().zip(&widths).enumerate() {
                if column == 0 {
                    write!(f, "| {cell:<width$} ")?;
                } else {
                    write!(f, "| {cell:>width$} ")?;
                }
            }
            writeln!(f, "|")?;
            if number == 0 {
                for (column, &width) in widths.iter().enumerate() {
                    let (left, right) = if column == 0 { (":", "-") } else { ("-", ":") };
                    write!(f, "|{left}{}{right}", "-".repeat(width))?;
                }
                writeln!(f, "|")?;
            }
        }
        Ok(())
    }
}

/// Whether a ratio reaches its goal, in words.
pub(crate) fn verdict(ratio: f64, goal: f64) -> String {
    format!("<= {goal:.2}: {}", if ratio <= goal { "met" } else { "MISSED" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut table = Table::new(&["what", "ns"]);
        table.row(["größer".to_string(), "1.5".to_string()]);
        assert_eq!(table.to_string(), "| what   |  ns |\n|:-------|----:|\n| größer | 1.5 |\n");
    }

    #[test]
    fn a_ratio_that_is_no_number_meets_no_goal() {
        assert_eq!(verdict(0.9, 0.9), "<= 0.90: met");
        assert_eq!(verdict(f64::NAN, 0.9), "<= 0.90: MISSED");
    }
}
