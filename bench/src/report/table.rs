// SPDX-License-Identifier: Apache-2.0
//! Plain tables.

/// Lines of a table: the first column to the left, numbers to the right.
pub fn render(head: &[&str], rows: &[Vec<String>]) -> String {
    let head: Vec<_> = head.iter().map(|&cell| cell.to_owned()).collect();
    let widths: Vec<_> = (0..head.len())
        .map(|column| {
            let cells = std::iter::once(&head).chain(rows);
            cells
                .map(|row| row[column].chars().count())
                .max()
                .unwrap_or(0)
        })
        .collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).enumerate();
        let cells = cells.map(|(column, (cell, &width))| match column {
            0 => format!("{cell:<width$}"),
            _ => format!("{cell:>width$}"),
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let rule = "-".repeat(widths.iter().sum::<usize>() + 2 * (widths.len() - 1));
    let mut lines = vec![line(&head), rule];
    lines.extend(rows.iter().map(line));
    lines.join("\n")
}

/// The smallest and the largest of some counts, one of them where they are the same.
///
/// # Panics
/// When there are none.
pub fn range(counts: impl Iterator<Item = usize> + Clone) -> String {
    let (least, most) = (counts.clone().min().unwrap(), counts.max().unwrap());
    if least == most {
        least.to_string()
    } else {
        format!("{least}-{most}")
    }
}

/// Milliseconds, with as many digits as mean something.
pub fn ms(value: f64) -> String {
    if value < 9.995 {
        format!("{value:.2}")
    } else if value < 99.95 {
        format!("{value:.1}")
    } else {
        format!("{value:.0}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_that_agree_are_one() {
        assert_eq!(range([2, 2].into_iter()), "2");
        assert_eq!(range([3, 1, 2].into_iter()), "1-3");
    }

    #[test]
    fn columns_are_aligned() {
        let rows = [
            vec!["a".into(), "1".into()],
            vec!["bbb".into(), "20".into()],
        ];
        assert_eq!(
            render(&["x", "n"], &rows),
            "x     n\n-------\na     1\nbbb  20"
        );
    }
}
