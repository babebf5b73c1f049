// SPDX-License-Identifier: Apache-2.0
//! Pictures, as SVG: few lines, each with its name beside it, and each server with one colour in all of them.

use crate::figures::{Distribution, Row, format};
use plotters::coord::Shift;
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use std::ops::Range;

const SIZE: (u32, u32) = (1000, 460);
/// Largest number of lines that a reader can distinguish; the others are only in the table.
const MOST: usize = 6;
/// Distance between two names, in pixels.
const LINE_HEIGHT: i32 = 21;
const TITLE: (&str, u32) = ("sans-serif", 24);
const TEXT: (&str, u32) = ("sans-serif", 19);
/// Room for the names of lines.
const NAMES: u32 = 260;

const SLUICE: RGBColor = RGBColor(0, 90, 200);
const OTHER: RGBColor = RGBColor(110, 110, 110);
/// Servers by the beginnings of their names. Most readers can distinguish the colours: Okabe and Ito's palette, and
/// an olive of Tol's.
const COLOURS: [(&str, RGBColor); 7] = [
    ("Sluice", SLUICE),
    ("nginx", RGBColor(213, 94, 0)),
    ("Varnish", RGBColor(0, 158, 115)),
    ("HAProxy", RGBColor(204, 121, 167)),
    ("Traffic Server", RGBColor(153, 153, 51)),
    ("bare Envoy", RGBColor(230, 159, 0)),
    ("Envoy", RGBColor(60, 60, 60)),
];

fn colour(name: &str) -> RGBColor {
    let found = COLOURS.iter().find(|(server, _)| name.starts_with(server));
    found.map_or(OTHER, |(_, colour)| *colour)
}

/// Scale of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axis {
    /// From 0 on.
    Linear,
    /// Parts of all requests, with one nine more at each tick.
    Nines,
}

/// A line with its name at its end.
pub struct Line {
    /// Name of the line. It begins with the server's name, which has a colour.
    pub name: String,
    /// Points of the line.
    pub points: Vec<(f64, f64)>,
}

/// A picture of lines.
pub struct Picture {
    /// Title of the picture.
    pub title: String,
    /// Quantity on the horizontal axis.
    pub x: (&'static str, Axis),
    /// Quantity on the vertical axis, with its unit.
    pub y: (&'static str, Axis),
    /// The lines; the first six are drawn.
    pub lines: Vec<Line>,
}

/// Times of requests by percentile, for each of these rows.
pub fn by_percentile<'a, C: 'a, R: 'a>(
    title: impl Into<String>,
    rows: impl IntoIterator<Item = &'a Row<C, R>>,
    name: impl Fn(&C) -> String,
    times: impl Fn(&'a R) -> &'a Distribution,
) -> String {
    let lines = rows.into_iter().map(|row| Line {
        name: name(&row.case),
        points: Distribution::pool(row.runs.iter().map(&times)).by_nines(),
    });
    Picture {
        title: title.into(),
        x: ("of the requests take no longer", Axis::Nines),
        y: ("ms", Axis::Linear),
        lines: lines.collect(),
    }
    .draw()
}

/// Values of an axis, and the values that have a label.
#[derive(Clone)]
struct Scale {
    axis: Axis,
    range: Range<f64>,
}

impl Scale {
    fn of(axis: Axis, values: impl Iterator<Item = f64>) -> Self {
        let finite = values.filter(|value| value.is_finite());
        let most = finite.fold(1e-9, f64::max);
        let range = match axis {
            Axis::Linear => 0.0..most * 1.08,
            Axis::Nines => 0.0..most,
        };
        Self { axis, range }
    }
}

impl Ranged for Scale {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        RangedCoordf64::from(self.range.clone()).map(value, limit)
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        match self.axis {
            Axis::Linear => RangedCoordf64::from(self.range.clone()).key_points(hint),
            Axis::Nines => (0..9)
                .map(f64::from)
                .filter(|key| *key <= self.range.end)
                .collect(),
        }
    }

    fn range(&self) -> Range<f64> {
        self.range.clone()
    }
}

impl ValueFormatter<f64> for Scale {
    fn format_ext(&self, value: &f64) -> String {
        match self.axis {
            Axis::Linear => {
                let text = format!("{value:.2}");
                text.trim_end_matches('0').trim_end_matches('.').to_owned()
            }
            Axis::Nines => {
                let percent = format!("{:.4}", 100.0 * (1.0 - 10_f64.powf(-value)));
                format!("{} %", percent.trim_end_matches('0').trim_end_matches('.'))
            }
        }
    }
}

impl Picture {
    /// Draws the picture.
    ///
    /// # Panics
    /// Not with finite points.
    pub fn draw(mut self) -> String {
        self.lines.truncate(MOST);
        // Later lines are drawn above earlier ones.
        self.lines.sort_by_key(|line| colour(&line.name) == SLUICE);
        let points = || self.lines.iter().flat_map(|line| line.points.iter());
        let x = Scale::of(self.x.1, points().map(|point| point.0));
        let y = Scale::of(self.y.1, points().map(|point| point.1));
        let mut svg = String::new();
        {
            let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
            root.fill(&WHITE).unwrap();
            let mut chart = ChartBuilder::on(&root)
                .margin(14)
                .margin_top(56)
                .margin_right(NAMES)
                .x_label_area_size(56)
                .y_label_area_size(72)
                .build_cartesian_2d(x, y)
                .unwrap();
            let mut mesh = chart.configure_mesh();
            mesh.x_desc(self.x.0)
                .y_desc(self.y.0)
                .label_style(TEXT)
                .axis_desc_style(TEXT);
            mesh.disable_x_mesh()
                .light_line_style(TRANSPARENT)
                .draw()
                .unwrap();
            let mut ends = Vec::new();
            for (number, line) in self.lines.iter().enumerate() {
                let style = self.style(number);
                let series = LineSeries::new(line.points.iter().copied(), style);
                chart.draw_series(series).unwrap();
                if let Some(&(_, last)) = line.points.last() {
                    let end = chart.backend_coord(line.points.last().unwrap());
                    let dot = Circle::new(end, 4, style.filled());
                    root.draw(&dot).unwrap();
                    let name = format!("{}: {} {}", line.name, format::ms(last), self.y.0);
                    ends.push((end, name, colour(&line.name)));
                }
            }
            title(&root, &self.title);
            name(&root, ends);
            root.present().unwrap();
        }
        svg
    }

    /// Sluice's line is the thick one; of several lines of one server the later ones are paler.
    fn style(&self, number: usize) -> ShapeStyle {
        let own = colour(&self.lines[number].name);
        let before = self.lines[..number]
            .iter()
            .filter(|line| colour(&line.name) == own);
        let strength = [1.0, 0.65, 0.45][before.count().min(2)];
        own.mix(strength)
            .stroke_width(if own == SLUICE { 4 } else { 2 })
    }
}

fn title(root: &DrawingArea<SVGBackend<'_>, Shift>, title: &str) {
    let style = TITLE.into_text_style(root);
    root.draw(&Text::new(title, (14, 14), style)).unwrap();
}

/// Puts a name at each end, below the name above it if they would overlap.
fn name(root: &DrawingArea<SVGBackend<'_>, Shift>, mut ends: Vec<((i32, i32), String, RGBColor)>) {
    ends.sort_by_key(|((_, y), ..)| *y);
    let right = ends.iter().map(|((x, _), ..)| *x).max().unwrap_or(0) + 10;
    let mut lowest = i32::MIN;
    for ((_, y), name, colour) in ends {
        let y = y.max(lowest.saturating_add(LINE_HEIGHT));
        lowest = y;
        let style = TEXT.into_text_style(root).color(&colour);
        root.draw(&Text::new(name, (right, y - 8), style)).unwrap();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, SystemTime};

    #[test]
    fn each_nine_is_as_long_as_the_one_before() {
        let nines = Scale::of(Axis::Nines, [0.0, 3.2].into_iter());
        let labels: Vec<_> = nines
            .key_points(5)
            .iter()
            .map(|key| nines.format_ext(key))
            .collect();
        assert_eq!(labels, ["0 %", "90 %", "99 %", "99.9 %"]);
        let places = [0.0, 1.0, 2.0].map(|nine| nines.map(&nine, (0, 320)));
        assert_eq!(places, [0, 100, 200]);
    }

    #[test]
    fn no_peer_has_the_colour_of_sluice() {
        for name in [
            "nginx, lock",
            "Varnish",
            "HAProxy",
            "Traffic Server",
            "bare Envoy",
            "Envoy direct_response",
            "the bucket",
        ] {
            assert_ne!(colour(name), colour("Sluice, HOT_BYTES=0"), "{name}");
        }
    }

    #[test]
    fn pictures_name_what_they_show() {
        let times = (1..=1_000).map(Duration::from_millis);
        let times = Distribution::since(SystemTime::now(), times);
        let mut row = Row::new("Sluice");
        row.runs.add((times, 0.0));
        let svg = by_percentile("Times", [&row], |name| (*name).to_owned(), |times| times);
        for part in [
            "<svg",
            "Times",
            "Sluice: 1000 ms",
            "polyline",
            "circle",
            "99.9 %",
        ] {
            assert!(svg.contains(part), "{part}: {svg}");
        }
    }

    #[test]
    fn no_more_lines_are_drawn_than_are_told_apart() {
        let lines = (0..9).map(|number| Line {
            name: format!("number {number}"),
            points: vec![(0.0, 1.0), (1.0, 2.0)],
        });
        let picture = Picture {
            title: "Many".to_owned(),
            x: ("x", Axis::Linear),
            y: ("y", Axis::Linear),
            lines: lines.collect(),
        };
        let svg = picture.draw();
        assert_eq!(svg.matches("number ").count(), MOST);
    }
}
