//! Line charts as inline SVG. Lines differ in color and in dashes, and their names stand at their ends or below the
//! chart, so that color carries nothing alone. All colors come from the style of the page, which has a dark mode.

use crate::html::esc;

/// The picture in its own units, which are pixels on a phone.
const WIDTH: f64 = 360.0;
const HEIGHT: f64 = 220.0;
const LEFT: f64 = 44.0;
const TOP: f64 = 16.0;
const BOTTOM: f64 = 30.0;
/// Height of a line of text.
const LINE: f64 = 12.0;
/// The number of line styles.
const STYLES: usize = 8;
/// With fewer points than this, each has a mark.
const MARKED: usize = 40;

/// A line.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) points: Vec<(f64, f64)>,
    pub(crate) weight: Weight,
}

/// How much a line stands out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Weight {
    /// With a style of its own.
    Normal,
    /// The line that matters most.
    Thick,
    /// One of many, all alike.
    Faint,
}

/// Where the names of lines are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Names {
    AtEnds,
    Below,
}

/// A chart.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Chart {
    pub(crate) title: String,
    pub(crate) x: &'static str,
    /// The end of the y axis, which begins at 0; `None` for one that fits.
    pub(crate) highest: Option<f64>,
    pub(crate) series: Vec<Series>,
    pub(crate) names: Names,
    /// A vertical line at this x, and its name.
    pub(crate) mark: Option<(f64, String)>,
}

impl Series {
    /// A line through the points that are finite.
    pub(crate) fn new(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let points = points.into_iter().filter(|(x, y)| x.is_finite() && y.is_finite()).collect();
        Self { name: name.into(), points, weight: Weight::Normal }
    }

    pub(crate) fn with(self, weight: Weight) -> Self {
        Self { weight, ..self }
    }

    /// Its first, lowest, highest and last value in words, for those who cannot see the chart.
    fn in_words(&self) -> String {
        let values = || self.points.iter().map(|point| point.1);
        match (self.points.first(), self.points.last()) {
            (Some(first), Some(last)) => format!(
                "{}: from {} to {}, lowest {}, highest {}",
                self.name,
                short(first.1),
                short(last.1),
                short(values().fold(f64::INFINITY, f64::min)),
                short(values().fold(f64::NEG_INFINITY, f64::max))
            ),
            _ => format!("{}: no values", self.name),
        }
    }
}

impl Chart {
    /// The chart as a figure with its title.
    pub(crate) fn figure(&self) -> String {
        let names_at_ends = self.names == Names::AtEnds;
        let longest = self.series.iter().map(|series| series.name.chars().count()).max().unwrap_or(0);
        let right = if names_at_ends { (longest as f64 * 6.2 + 10.0).clamp(20.0, 130.0) } else { 14.0 };
        let points = || self.series.iter().flat_map(|series| &series.points);
        let (first, last) = points().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), point| {
            (low.min(point.0), high.max(point.0))
        });
        let (first, last) = if first < last { (first, last) } else { (first.min(0.0), first.max(0.0) + 1.0) };
        let (first, last) = if first.is_finite() && last.is_finite() { (first, last) } else { (0.0, 1.0) };
        let top = points().map(|point| point.1).fold(0.0, f64::max);
        let step = step(self.highest.unwrap_or(top));
        let highest = self.highest.unwrap_or_else(|| (top / step).ceil().max(1.0) * step);
        let x = |value: f64| LEFT + (value - first) / (last - first) * (WIDTH - LEFT - right);
        let y = |value: f64| TOP + (1.0 - value / highest) * (HEIGHT - TOP - BOTTOM);
        let spoken: Vec<String> = self
            .series
            .iter()
            .filter(|series| series.weight != Weight::Faint)
            .map(Series::in_words)
            .collect();
        let mut svg = format!(
            "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">",
            esc(format!("{} over {}. {}", self.title, self.x, spoken.join("; ")))
        );
        let mut at = 0.0;
        while at <= highest * 1.0001 {
            svg.push_str(&format!(
                "<path class=\"grid\" d=\"M{LEFT} {0:.1}H{1:.1}\"/><text x=\"{2}\" y=\"{3:.1}\" text-anchor=\"end\">{4}</text>",
                y(at),
                WIDTH - right,
                LEFT - 5.0,
                y(at) + 4.0,
                short(at)
            ));
            at += step;
        }
        for (value, text) in ticks(first, last) {
            svg.push_str(&format!(
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{text}</text>",
                x(value),
                HEIGHT - BOTTOM + 14.0
            ));
        }
        svg.push_str(&format!(
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            (LEFT + WIDTH - right) / 2.0,
            HEIGHT - 3.0,
            self.x
        ));
        if let Some((value, name)) = &self.mark {
            // Its name is above the lines, and to the side that has room.
            let anchor = if *value < (first + last) / 2.0 { "start" } else { "end" };
            svg.push_str(&format!(
                "<path class=\"mark\" d=\"M{0:.1} {TOP}V{1:.1}\"/><text x=\"{0:.1}\" y=\"{2:.1}\" text-anchor=\"{anchor}\">{3}</text>",
                x(*value),
                HEIGHT - BOTTOM,
                TOP - 4.0,
                esc(name)
            ));
        }
        for (class, series) in self.classes().iter().zip(&self.series) {
            svg.push_str(&line(series, class, &x, &y));
        }
        if names_at_ends {
            for (class, text, [left, top]) in self.end_names(&x, &y) {
                svg.push_str(&format!(
                    "<text class=\"name {class}\" x=\"{left:.1}\" y=\"{top:.1}\">{}</text>",
                    esc(text)
                ));
            }
        }
        svg.push_str("</svg>");
        let legend = if names_at_ends { String::new() } else { self.legend() };
        format!("<figure><figcaption>{}</figcaption>{svg}{legend}</figure>\n", esc(&self.title))
    }

    /// The style of each line.
    fn classes(&self) -> Vec<String> {
        let mut normal = 0..;
        let class = |series: &Series| match series.weight {
            Weight::Normal => format!("s{}", normal.next().unwrap_or(0) % STYLES),
            Weight::Thick => "thick".to_owned(),
            Weight::Faint => "faint".to_owned(),
        };
        self.series.iter().map(class).collect()
    }

    /// The names at the ends of the lines, apart from each other: style, name and place.
    fn end_names(&self, x: &dyn Fn(f64) -> f64, y: &dyn Fn(f64) -> f64) -> Vec<(String, &str, [f64; 2])> {
        let ends = self.classes().into_iter().zip(&self.series);
        let mut names: Vec<(String, &str, [f64; 2])> = ends
            .filter_map(|(class, series)| {
                let last = series.points.last()?;
                Some((class, series.name.as_str(), [x(last.0) + 6.0, y(last.1) + 4.0]))
            })
            .collect();
        names.sort_by(|a, b| a.2[1].total_cmp(&b.2[1]));
        for index in 1..names.len() {
            names[index].2[1] = names[index].2[1].max(names[index - 1].2[1] + LINE);
        }
        // What has moved below the axis moves up again, and pushes the others.
        let mut lowest = HEIGHT - BOTTOM + 4.0;
        for name in names.iter_mut().rev() {
            name.2[1] = name.2[1].min(lowest);
            lowest = name.2[1] - LINE;
        }
        names
    }

    /// The names of the lines with a piece of each. Those that are all alike have one entry.
    fn legend(&self) -> String {
        let mut html = "<ul class=\"legend\">".to_owned();
        let mut faint = 0;
        for (class, series) in self.classes().iter().zip(&self.series) {
            if series.weight == Weight::Faint {
                faint += 1;
                continue;
            }
            html.push_str(&legend_entry(class, &esc(&series.name)));
        }
        if faint > 0 {
            html.push_str(&legend_entry("faint", &format!("{faint} other classes")));
        }
        html + "</ul>"
    }
}

fn legend_entry(class: &str, name: &str) -> String {
    format!(
        "<li><svg class=\"key\" viewBox=\"0 0 32 8\" aria-hidden=\"true\"><path class=\"line {class}\" d=\"M0 4H32\"/></svg>{name}</li>"
    )
}

/// A line, with marks if it has few points. Its name shows under the mouse.
fn line(series: &Series, class: &str, x: &dyn Fn(f64) -> f64, y: &dyn Fn(f64) -> f64) -> String {
    let mut path = String::new();
    for (index, &(at, value)) in series.points.iter().enumerate() {
        path.push_str(&format!("{}{:.1} {:.1}", if index == 0 { 'M' } else { 'L' }, x(at), y(value)));
    }
    if path.is_empty() {
        return path;
    }
    let mut svg =
        format!("<g><title>{}</title><path class=\"line {class}\" d=\"{path}\"/>", esc(&series.name));
    if series.points.len() < MARKED && series.weight != Weight::Faint {
        for &(at, value) in &series.points {
            svg.push_str(&format!(
                "<circle class=\"dot {class}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"2.2\"/>",
                x(at),
                y(value)
            ));
        }
    }
    svg + "</g>"
}

/// The distance between lines of the grid: 1, 2 or 5 times a power of ten, so that there are four to nine.
fn step(highest: f64) -> f64 {
    if !(highest > 0.0 && highest.is_finite()) {
        return 1.0;
    }
    let rough = highest / 5.0;
    let power = 10f64.powf(rough.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0];
    power * steps.into_iter().find(|step| step * power >= rough * 0.999).unwrap_or(10.0)
}

/// About five values of the x axis with their texts.
fn ticks(first: f64, last: f64) -> Vec<(f64, String)> {
    let whole = last - first > 4.0
        || (first.fract() == 0.0 && last.fract() == 0.0 && last - first >= 1.0 && last > 1.0);
    let step = if whole { step(last - first).max(1.0) } else { step(last - first) };
    let mut at = (first / step).ceil() * step;
    let mut ticks = Vec::new();
    while at <= last + step * 1e-6 {
        ticks.push((at, short(at)));
        at += step;
    }
    ticks
}

/// A number with at most three digits.
pub(crate) fn short(value: f64) -> String {
    // Sums of steps are not exact.
    let value = if value.abs() < 1.0 { (value * 1e9).round() / 1e9 } else { value };
    yolo_base::percent_g::percent_g(value, 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(series: Vec<Series>) -> String {
        let title = "loss".to_owned();
        Chart { title, x: "epoch", highest: None, series, names: Names::AtEnds, mark: None }.figure()
    }

    #[test]
    fn a_chart_tells_its_values_without_being_seen() {
        let html = chart(vec![Series::new("train", [(1.0, 0.5), (2.0, 0.25)])]);
        let told = "loss over epoch. train: from 0.5 to 0.25, lowest 0.25, highest 0.5";
        assert!(html.contains(&format!("aria-label=\"{told}\"")), "{html}");
    }

    #[test]
    fn the_name_of_a_mark_is_above_all_lines() {
        let series = vec![Series::new("a", [(1.0, 1.0), (2.0, 0.0)])];
        let mark = Some((2.0, "best".to_owned()));
        let chart = Chart {
            title: String::new(),
            x: "epoch",
            highest: Some(1.0),
            series,
            names: Names::AtEnds,
            mark,
        };
        let html = chart.figure();
        let (before, _) = html.split_once(">best<").unwrap();
        let y: f64 = before.rsplit("y=\"").next().unwrap().split('"').next().unwrap().parse().unwrap();
        assert!(y < TOP - 1.0, "{y}");
    }

    #[test]
    fn any_numbers_give_a_chart() {
        for points in [
            vec![],
            vec![(3.0, 0.2)],
            vec![(0.0, f64::NAN), (1.0, f64::INFINITY)],
            vec![(0.0, 0.0), (1.0, 0.0)],
            vec![(0.0, 1e300), (1.0, 1e-300)],
        ] {
            let html = chart(vec![Series::new("a", points.clone())]);
            assert!(!html.contains("NaN") && !html.contains("inf"), "{points:?}: {html}");
        }
    }

    #[test]
    fn names_at_equal_ends_do_not_cover_each_other() {
        let at = |name: &str| Series::new(name, [(0.0, 0.0), (1.0, 0.0)]);
        let html = chart(vec![at("a"), at("b"), at("c")]);
        let mut places: Vec<f64> = html
            .split("<text class=\"name")
            .skip(1)
            .map(|text| text.split("y=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap())
            .collect();
        places.sort_by(f64::total_cmp);
        assert!(places.windows(2).all(|pair| pair[1] - pair[0] >= LINE - 0.2), "{places:?}");
        assert!(*places.last().unwrap() <= HEIGHT - BOTTOM + 4.1);
    }
}
