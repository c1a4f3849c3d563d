//! A picture of a batch: how busy processors and GPUs were, and how many calls waited.

use std::time::Duration;

use super::Point;

const WIDTH: f64 = 860.0;
const LEFT: f64 = 48.0;
const RIGHT: f64 = 24.0;
/// Of the lines and of the bars of a point, and what is around them.
const SHARES: f64 = 110.0;
const WAITING: f64 = 56.0;
const HEAD: f64 = 30.0;
const GAP: f64 = 18.0;
const FOOT: f64 = 34.0;
const POINT: f64 = HEAD + SHARES + GAP + WAITING + FOOT;

/// Steps of a line, at most; a step is at least as long as processor time is counted well.
const STEPS: u32 = 160;
const SHORTEST: Duration = Duration::from_millis(50);

const HOST: &str = "#9a9a9a";
const BARS: &str = "#f0c878";
const DEVICES: [&str; 8] = ["#1f6fb4", "#c23b3b", "#2d8a4e", "#7d4fa8", "#0f8b8d", "#b4561f", "#5b6b1f", "#a83f78"];

/// The picture: a pair of charts for each point, all on one time scale.
pub fn svg(title: &str, points: &[Point]) -> String {
    let mut out = String::new();
    let height = 34.0 + POINT * points.len() as f64;
    line(
        &mut out,
        &format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="11" fill="black">
<rect width="100%" height="100%" fill="white"/>
<text x="{LEFT}" y="20" font-size="14">{}</text>"#,
            escaped(title)
        ),
    );
    let longest = points.iter().map(|point| point.wall.as_secs_f64()).fold(0.0, f64::max);
    let most = points.iter().map(|point| point.watched.most_waiting()).max().unwrap_or(0).max(1);
    for (index, point) in points.iter().enumerate() {
        let chart = Chart { top: 34.0 + POINT * index as f64, longest, most };
        chart.draw(&mut out, point);
    }
    out.push_str("</svg>\n");
    out
}

/// Adds a line of text.
fn line(out: &mut String, text: &str) {
    out.push_str(text);
    out.push('\n');
}

struct Chart {
    top: f64,
    longest: f64,
    most: usize,
}

impl Chart {
    fn x(&self, at: f64) -> f64 {
        LEFT + (WIDTH - LEFT - RIGHT) * at / self.longest
    }

    fn draw(&self, out: &mut String, point: &Point) {
        let shares_top = self.top + HEAD;
        let bars_top = shares_top + SHARES + GAP;
        let bottom = bars_top + WAITING;
        let (right, wall) = (self.x(point.wall.as_secs_f64()), point.wall);

        let heading = format!("{} at once: {:.3} s a proof", point.concurrency, point.each());
        line(out, &format!(r#"<text x="{LEFT}" y="{:.1}" font-weight="bold">{heading}</text>"#, self.top + 14.0));
        for (label, share) in [("100 %", 0.0), ("50 %", 0.5), ("0 %", 1.0)] {
            self.rule(out, shares_top + SHARES * share, right, label);
        }
        self.rule(out, bars_top, right, &self.most.to_string());
        self.rule(out, bottom, right, "0");

        let step = SHORTEST.max(wall / STEPS);
        let steps = (wall.as_secs_f64() / step.as_secs_f64()).ceil().max(1.0) as u32;
        let pieces: Vec<(Duration, Duration)> = (0..steps)
            .map(|index| (step * index, (step * (index + 1)).min(wall)))
            .filter(|(from, to)| from < to)
            .collect();

        // The label is over the bars.
        let mut bars = format!("M{LEFT} {bottom:.1}");
        for &(from, to) in &pieces {
            let y = bottom - WAITING * point.watched.waiting(from, to) as f64 / self.most as f64;
            bars += &format!("V{y:.1}H{:.1}", self.x(to.as_secs_f64()));
        }
        line(out, &format!(r#"<path d="{bars}V{bottom:.1}Z" fill="{BARS}"/>"#));
        line(out, &format!(r#"<text x="{:.1}" y="{:.1}">calls that wait</text>"#, LEFT + 4.0, bars_top + 12.0));

        let mut key = self.x(self.longest);
        let mut curve = |name: &str, colour: &str, share: &dyn Fn(Duration, Duration) -> f64| {
            let place = |&(from, to): &(Duration, Duration)| {
                let y = shares_top + SHARES * (1.0 - share(from, to).clamp(0.0, 1.0));
                format!("{:.1},{y:.1} {:.1},{y:.1}", self.x(from.as_secs_f64()), self.x(to.as_secs_f64()))
            };
            let places: Vec<String> = pieces.iter().map(place).collect();
            let places = places.join(" ");
            line(
                out,
                &format!(
                    r#"<polyline points="{places}" fill="none" stroke="{colour}" stroke-width="1.4"/>
<text x="{key:.1}" y="{:.1}" text-anchor="end" fill="{colour}">{}</text>"#,
                    self.top + 14.0,
                    escaped(name)
                ),
            );
            key -= 12.0 + 6.5 * name.len() as f64;
        };
        curve("processors", HOST, &|from, to| point.watched.host_share(from, to));
        for (device, colour) in point.busy.iter().zip(DEVICES.iter().cycle()) {
            // The name without the model.
            let name = device.device.split(' ').next().unwrap_or_default();
            curve(name, colour, &|from, to| device.share(from, to));
        }
        self.seconds(out, bottom, point.wall.as_secs_f64());
    }

    /// A horizontal line with what it stands for.
    fn rule(&self, out: &mut String, y: f64, right: f64, label: &str) {
        line(
            out,
            &format!(
                r##"<path d="M{LEFT} {y:.1}H{right:.1}" stroke="#ddd"/><text x="{:.1}" y="{:.1}" text-anchor="end">{label}</text>"##,
                LEFT - 5.0,
                y + 4.0
            ),
        );
    }

    /// The time below the bars.
    fn seconds(&self, out: &mut String, bottom: f64, wall: f64) {
        let step = round_step(self.longest / 8.0);
        for index in 0..=(wall / step) as u32 {
            let at = step * f64::from(index);
            let label = if step < 1.0 { format!("{at:.2}") } else { format!("{at:.0}") };
            line(
                out,
                &format!(
                    r#"<text x="{:.1}" y="{:.1}" text-anchor="middle">{label} s</text>"#,
                    self.x(at),
                    bottom + 15.0
                ),
            );
        }
    }
}

/// 1, 2 or 5 times a power of ten, not below a number.
fn round_step(least: f64) -> f64 {
    let power = 10f64.powf(least.max(1e-3).log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|factor| factor * power).find(|step| *step >= least).unwrap_or(power * 10.0)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_of_the_time_scale_are_round() {
        for (least, step) in [(0.03, 0.05), (0.1, 0.1), (0.9, 1.0), (1.2, 2.0), (4.5, 5.0), (6.0, 10.0), (130.0, 200.0)]
        {
            assert!((round_step(least) - step).abs() < 1e-9, "{least}: {}", round_step(least));
        }
    }
}
