// SPDX-License-Identifier: Apache-2.0
//! Plots, as SVG.

use plotters::coord::{CoordTranslate, Shift};
use plotters::prelude::*;

const SIZE: (u32, u32) = (1000, 480);
/// Told apart by most eyes: Okabe and Ito's palette, then again with thinner lines.
const COLOURS: [RGBColor; 8] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(110, 110, 110),
    RGBColor(0, 0, 0),
];

/// A distribution.
pub struct Curve {
    /// For the legend.
    pub name: String,
    /// Percentiles from 0 to 100, and the milliseconds that they do not exceed.
    pub points: Vec<(f64, f64)>,
}

/// A line by a formula, and points that should lie on it.
pub struct Fit {
    /// For the legend.
    pub name: String,
    /// The line's corners.
    pub line: Vec<(f64, f64)>,
    /// What was found.
    pub points: Vec<(f64, f64)>,
}

/// A figure of one contender.
pub struct Bar {
    /// Beside the bar.
    pub name: String,
    /// Its length.
    pub value: f64,
}

/// Where a percentile is on the axis: each nine is as long as the one before. 100 is where the sample ends.
fn nines(percentile: f64) -> f64 {
    -(1.0 - percentile.min(99.9999) / 100.0).log10()
}

fn nines_label(position: f64) -> String {
    let percentile = 100.0 * (1.0 - 10_f64.powf(-position));
    let text = format!("{percentile:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Distributions over a logarithmic axis of nines. The longest time of each is a point at the right.
///
/// # Panics
/// Not with finite points.
pub fn percentiles(title: &str, curves: &[Curve]) -> String {
    let mut svg = String::new();
    let values = curves.iter().flat_map(|curve| &curve.points);
    let values = values
        .map(|(_, value)| *value)
        .filter(|value| value.is_finite());
    let (least, most) = crate::figures::sample::extremes(values);
    let (least, most) = (least.max(0.01), most.max(0.1) * 1.2);
    {
        let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        root.fill(&WHITE).unwrap();
        let mut chart = curves_on(&root, title)
            .build_cartesian_2d(0.0..4.2, (least..most).log_scale())
            .unwrap();
        chart
            .configure_mesh()
            .x_desc("percentile")
            .y_desc("milliseconds")
            .x_labels(5)
            .x_label_formatter(&|position| nines_label(*position))
            .draw()
            .unwrap();
        for (number, curve) in curves.iter().enumerate() {
            let style = style(number);
            let inner = curve
                .points
                .iter()
                .filter(|(percentile, _)| *percentile < 99.995);
            let line = inner.map(|(percentile, value)| (nines(*percentile), value.max(least)));
            let series = LineSeries::new(line, style);
            let longest = curve
                .points
                .iter()
                .filter(|(percentile, _)| *percentile >= 100.0);
            let longest =
                longest.map(|(_, value)| Circle::new((4.1, value.max(least)), 4, style.filled()));
            chart
                .draw_series(series)
                .unwrap()
                .label(&curve.name)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], style));
            chart.draw_series(longest).unwrap();
        }
        legend(&mut chart, SeriesLabelPosition::UpperLeft);
        root.present().unwrap();
    }
    svg
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// A chart with a title and room for the names of its axes.
fn curves_on<'a, 'b>(area: &'a Area<'b>, title: &str) -> ChartBuilder<'a, 'b, SVGBackend<'b>> {
    let mut chart = ChartBuilder::on(area);
    chart
        .caption(title, ("sans-serif", 18))
        .margin(12)
        .x_label_area_size(36)
        .y_label_area_size(56);
    chart
}

/// Names the curves that were drawn.
fn legend<'a, T: CoordTranslate>(
    chart: &mut ChartContext<'a, SVGBackend<'a>, T>,
    position: SeriesLabelPosition,
) {
    let mut labels = chart.configure_series_labels();
    labels
        .position(position)
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK.mix(0.3))
        .draw()
        .unwrap();
}

fn style(number: usize) -> ShapeStyle {
    let width = if number < COLOURS.len() { 2 } else { 1 };
    COLOURS[number % COLOURS.len()].stroke_width(width)
}

/// Bars, one below the other.
///
/// # Panics
/// Not with finite values.
pub fn bars(title: &str, bars: &[Bar]) -> String {
    let mut svg = String::new();
    let most = bars
        .iter()
        .map(|bar| bar.value)
        .fold(0.0, f64::max)
        .max(1.0)
        * 1.1;
    let rows = u32::try_from(bars.len()).unwrap_or(u32::MAX);
    {
        let root = SVGBackend::with_string(&mut svg, (SIZE.0, 70 + 24 * rows)).into_drawing_area();
        root.fill(&WHITE).unwrap();
        let mut chart = ChartBuilder::on(&root)
            .caption(title, ("sans-serif", 18))
            .margin(12)
            .x_label_area_size(24)
            .y_label_area_size(170)
            .build_cartesian_2d(0.0..most, (0..rows).into_segmented())
            .unwrap();
        let name = |row: &SegmentValue<u32>| match row {
            SegmentValue::CenterOf(row) => {
                let bar = usize::try_from(*row).ok().and_then(|row| bars.get(row));
                bar.map_or_else(String::new, |bar| bar.name.clone())
            }
            _ => String::new(),
        };
        chart
            .configure_mesh()
            .disable_y_mesh()
            .y_labels(bars.len())
            .y_label_formatter(&name)
            .draw()
            .unwrap();
        let drawn = bars.iter().zip(0..).map(|(bar, row)| {
            let corners = [
                (0.0, SegmentValue::Exact(row)),
                (bar.value, SegmentValue::Exact(row + 1)),
            ];
            let mut drawn = Rectangle::new(corners, COLOURS[0].mix(0.7).filled());
            drawn.set_margin(3, 3, 0, 0);
            drawn
        });
        chart.draw_series(drawn).unwrap();
        root.present().unwrap();
    }
    svg
}

/// Lines and their points on axes that begin at 0.
///
/// # Panics
/// Not with finite points.
pub fn fits(title: &str, x: &str, y: &str, fits: &[Fit]) -> String {
    let mut svg = String::new();
    let all = || {
        fits.iter()
            .flat_map(|fit| fit.line.iter().chain(&fit.points))
    };
    let right = all().map(|point| point.0).fold(0.0, f64::max);
    let top = all().map(|point| point.1).fold(0.0, f64::max) * 1.05;
    {
        let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        root.fill(&WHITE).unwrap();
        let mut chart = curves_on(&root, title)
            .build_cartesian_2d(0.0..right, 0.0..top)
            .unwrap();
        let mut mesh = chart.configure_mesh();
        mesh.x_desc(x)
            .y_desc(y)
            .light_line_style(TRANSPARENT)
            .draw()
            .unwrap();
        for (number, fit) in fits.iter().enumerate() {
            let style = style(number);
            let line = LineSeries::new(fit.line.iter().copied(), style);
            chart
                .draw_series(line)
                .unwrap()
                .label(&fit.name)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], style));
            let points = fit
                .points
                .iter()
                .map(|&point| Circle::new(point, 3, style.filled()));
            chart.draw_series(points).unwrap();
        }
        legend(&mut chart, SeriesLabelPosition::LowerRight);
        root.present().unwrap();
    }
    svg
}

/// How values lie on an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// From 0 on.
    Linear,
    /// Each ten times as long as the one before.
    Log,
}

impl Scale {
    fn position(self, value: f64) -> f64 {
        match self {
            Self::Linear => value,
            Self::Log => value.max(f64::MIN_POSITIVE).log10(),
        }
    }

    fn label(self, position: f64) -> String {
        let value = match self {
            Self::Linear => position,
            Self::Log => 10_f64.powf(position),
        };
        let text = if value < 10.0 {
            format!("{value:.1}")
        } else {
            format!("{value:.0}")
        };
        text.trim_end_matches(".0").to_owned()
    }
}

/// What grows with what: named lines over a logarithmic axis.
///
/// # Panics
/// Not with finite points.
pub fn growth(title: &str, x: &str, y: (&str, Scale), curves: &[Curve]) -> String {
    let (y, scale) = y;
    let place = |&(at, value): &(f64, f64)| (Scale::Log.position(at), scale.position(value));
    let all = || curves.iter().flat_map(|curve| &curve.points).map(place);
    let (left, right) = crate::figures::sample::extremes(all().map(|point| point.0));
    let (bottom, top) = crate::figures::sample::extremes(all().map(|point| point.1));
    let (bottom, top) = match scale {
        Scale::Linear => (0.0, top.max(f64::MIN_POSITIVE) * 1.15),
        Scale::Log => (bottom - 0.1, top + 0.3),
    };
    // Room for the last label.
    let (left, right) = (left, right + (right - left).max(1.0) / 20.0);
    let decades = std::iter::successors(Some(left.ceil()), |at| Some(at + 1.0));
    let decades = decades.take_while(|at| *at <= right).count();
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        root.fill(&WHITE).unwrap();
        let mut chart = curves_on(&root, title)
            .build_cartesian_2d(left..right, bottom..top)
            .unwrap();
        chart
            .configure_mesh()
            .x_desc(x)
            .y_desc(y)
            .x_labels(decades + 1)
            .x_label_formatter(&|at| Scale::Log.label(*at))
            .y_label_formatter(&|at| scale.label(*at))
            .light_line_style(TRANSPARENT)
            .draw()
            .unwrap();
        for (number, curve) in curves.iter().enumerate() {
            let style = style(number);
            chart
                .draw_series(LineSeries::new(curve.points.iter().map(place), style))
                .unwrap()
                .label(&curve.name)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], style));
            let dots = curve.points.iter().map(place);
            let dots = dots.map(|point| Circle::new(point, 3, style.filled()));
            chart.draw_series(dots).unwrap();
        }
        legend(&mut chart, SeriesLabelPosition::UpperLeft);
        root.present().unwrap();
    }
    svg
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_nine_is_as_long_as_the_one_before() {
        for (percentile, position) in [(0.0, 0.0), (90.0, 1.0), (99.0, 2.0), (99.9, 3.0)] {
            assert!((nines(percentile) - position).abs() < 1e-9, "{percentile}");
            assert_eq!(nines_label(position), percentile.to_string());
        }
    }

    #[test]
    fn plots_name_what_they_show() {
        let curve = Curve {
            name: "Sluice disk".to_owned(),
            points: vec![(0.0, 1.0), (50.0, 2.0), (99.0, 5.0), (100.0, 500.0)],
        };
        let svg = percentiles("Times", &[curve]);
        for part in ["<svg", "Times", "Sluice disk", "polyline", "circle", "99.9"] {
            assert!(svg.contains(part), "{part}: {svg}");
        }
        let bar = Bar {
            name: "nginx".to_owned(),
            value: 12.0,
        };
        let svg = bars("CPU", &[bar]);
        assert!(svg.contains("nginx") && svg.contains("rect"), "{svg}");
    }

    #[test]
    fn a_logarithmic_axis_says_the_values() {
        for (value, label) in [(1.0, "1"), (2.5, "2.5"), (1_000.0, "1000")] {
            for scale in [Scale::Linear, Scale::Log] {
                assert_eq!(scale.label(scale.position(value)), label, "{scale:?}");
            }
        }
        let curve = Curve {
            name: "a".to_owned(),
            points: vec![(1.0, 2.0), (100.0, 3.0)],
        };
        for scale in [Scale::Linear, Scale::Log] {
            let svg = growth("title", "x", ("y", scale), std::slice::from_ref(&curve));
            assert!(svg.contains("title") && svg.contains("<polyline"), "{svg}");
        }
    }
}
