//! Panes as a table for a terminal.

use super::{WINDOW_END, WINDOW_START};
use crate::{Key, Name, Pane, Row, Value};

/// Writes panes as an aligned table: numbers to the right, floats rounded to a fixed number of places.
///
/// For people: rounded values do not read back as the same bits. Holds all cells to find the column widths.
#[derive(Clone, Debug)]
pub struct TableFormat {
    key: String,
    places: usize,
}

impl TableFormat {
    /// The key's column is called `key`; floats show two places.
    #[must_use]
    pub fn new(key: impl Into<String>) -> Self {
        Self { key: key.into(), places: 2 }
    }

    /// How many places floats show. Default 2.
    #[must_use]
    pub const fn places(mut self, places: usize) -> Self {
        self.places = places;
        self
    }

    /// Appends the table of `panes`, header first; every line ends with `\n`.
    pub fn write<K: Key>(&self, names: &[Name], panes: &[Pane<K, Row>], out: &mut String) {
        let header: Vec<Cell> = [self.key.as_str(), WINDOW_START, WINDOW_END]
            .into_iter()
            .chain(names.iter().map(AsRef::as_ref))
            .map(|text| Cell { text: text.to_owned(), right: false })
            .collect();
        let rows: Vec<Vec<Cell>> = panes.iter().map(|pane| self.cells(pane)).collect();
        let mut widths: Vec<usize> = header.iter().map(Cell::width).collect();
        let mut right = vec![false; widths.len()];
        for row in &rows {
            for (i, cell) in row.iter().enumerate().take(widths.len()) {
                widths[i] = widths[i].max(cell.width());
                right[i] |= cell.right;
            }
        }
        write_line(&header, &widths, &right, out);
        out.push_str(&"-".repeat(widths.iter().sum::<usize>() + 2 * widths.len().saturating_sub(1)));
        out.push('\n');
        for row in &rows {
            write_line(row, &widths, &right, out);
        }
    }

    fn cells<K: Key>(&self, pane: &Pane<K, Row>) -> Vec<Cell> {
        let own = [pane.key.to_value(), Value::from(pane.window.start), Value::from(pane.window.end)];
        own.iter().chain(pane.value.values()).map(|value| self.cell(value)).collect()
    }

    fn cell(&self, value: &Value) -> Cell {
        let text = match value {
            Value::Float(x) => format!("{x:.*}", self.places),
            other => other.to_string(),
        };
        Cell { text, right: value.is_number() }
    }
}

struct Cell {
    text: String,
    right: bool,
}

impl Cell {
    fn width(&self) -> usize {
        self.text.chars().count()
    }
}

fn write_line(cells: &[Cell], widths: &[usize], right: &[bool], out: &mut String) {
    for (i, cell) in cells.iter().enumerate() {
        if i > 0 {
            out.push_str("  ");
        }
        let pad = " ".repeat(widths.get(i).map_or(0, |w| w.saturating_sub(cell.width())));
        if right.get(i) == Some(&true) {
            out.push_str(&pad);
            out.push_str(&cell.text);
        } else {
            out.push_str(&cell.text);
            out.push_str(&pad);
        }
    }
    out.truncate(out.trim_end_matches(' ').len());
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Aggregate, Aggregates, Window};

    #[test]
    fn columns_line_up() {
        let a = Aggregates::<f64>::new().count("n").mean("avg", |x| *x);
        let pane = |key: &str, xs: &[f64]| {
            let mut acc = a.init();
            xs.iter().for_each(|x| a.add(&mut acc, x));
            Pane { window: Window { start: 0, end: 10 }, key: key.to_owned(), value: a.finish(&acc) }
        };
        let mut out = String::new();
        TableFormat::new("k").write(
            a.names(),
            &[pane("long key", &[1.0]), pane("b", &[100.0, 101.0])],
            &mut out,
        );
        assert_eq!(
            out,
            "k         window_start_ms  window_end_ms  n     avg\n\
             --------------------------------------------------\n\
             long key                0             10  1    1.00\n\
             b                       0             10  2  100.50\n"
                .replace("--------------------------------------------------", &"-".repeat(51))
        );
    }
}
