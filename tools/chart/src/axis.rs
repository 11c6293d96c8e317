// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Scales, ticks, and how numbers are written.
//!
//! Called by panel and bars.

/// How values are placed on an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// Message sizes: powers of two, written 8, 1K, 4M; 0 has a place of its own one step before
    /// the first.
    Bytes,
    /// Powers of ten.
    Logarithmic,
    /// Equal steps; holds 0 when bars grow from it.
    #[default]
    Linear,
}

/// A mark on an axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Tick {
    /// Its value.
    pub value: f64,
    /// What is written; empty for a line without text.
    pub text: String,
}

/// The part of a scale that a panel shows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span {
    scale: Scale,
    /// On the scale: exponents where it is logarithmic.
    low: f64,
    high: f64,
    /// The place of size 0, one step before the first; only where there is one.
    zero: Option<f64>,
}

impl Span {
    /// What holds all values, with `room` (a fraction of the whole) at both ends. `None` when
    /// nothing can be placed.
    pub fn around(scale: Scale, values: impl Iterator<Item = f64>, room: f64) -> Option<Self> {
        let mut sound: Vec<f64> = values
            .filter(|value| value.is_finite() && (scale != Scale::Logarithmic || *value > 0.0))
            .collect();
        if scale == Scale::Bytes {
            sound.retain(|value| *value >= 0.0);
        }
        let places = || sound.iter().map(|value| exponent(scale, *value));
        let (mut low, mut high) = (
            places()
                .filter(|place| place.is_finite())
                .reduce(f64::min)?,
            places()
                .filter(|place| place.is_finite())
                .reduce(f64::max)?,
        );
        let zero = (scale == Scale::Bytes && sound.contains(&0.0)).then_some(low - 1.0);
        low = zero.unwrap_or(low);
        if high - low < least_width(scale, high) {
            let missing = least_width(scale, high) - (high - low);
            (low, high) = (low - missing / 2.0, high + missing / 2.0);
        }
        let extra = (high - low) * room;
        Some(Self {
            scale,
            low: low - extra,
            high: high + extra,
            zero,
        })
    }

    /// From 0 to a little above the greatest value.
    pub fn from_zero(values: impl Iterator<Item = f64>) -> Option<Self> {
        let greatest = values.filter(|value| value.is_finite()).reduce(f64::max)?;
        Some(Self {
            scale: Scale::Linear,
            low: 0.0,
            high: if greatest > 0.0 { greatest * 1.02 } else { 1.0 },
            zero: None,
        })
    }

    /// Place from 0 (low end) to 1.
    pub fn place(&self, value: f64) -> f64 {
        let place = exponent(self.scale, value);
        let place = if place.is_finite() {
            place
        } else {
            self.zero.unwrap_or(self.low)
        };
        ((place - self.low) / (self.high - self.low)).clamp(0.0, 1.0)
    }

    /// Whether the value lies within.
    pub fn holds(&self, value: f64) -> bool {
        let place = exponent(self.scale, value);
        (self.low..=self.high).contains(&place)
    }

    /// At most about `room` marks with text.
    pub fn ticks(&self, room: usize) -> Vec<Tick> {
        match self.scale {
            Scale::Bytes => self.byte_ticks(room.max(2)),
            Scale::Logarithmic => self.decade_ticks(room.max(2)),
            Scale::Linear => even_ticks(self.low, self.high, room.max(2)),
        }
    }

    fn byte_ticks(&self, room: usize) -> Vec<Tick> {
        let last = self.high.floor() as i32;
        let from = match self.zero {
            Some(zero) => zero.ceil() as i32 + 1,
            None => (self.low - 1e-9).ceil().max(0.0) as i32,
        };
        let step = (1..)
            .find(|step| (last - from) / step < room as i32)
            .unwrap_or(1);
        let sizes = (from..=last)
            .step_by(step as usize)
            .map(|power| 2_f64.powi(power));
        self.zero
            .map(|_| 0.0)
            .into_iter()
            .chain(sizes)
            .map(|value| Tick {
                value,
                text: bytes(value),
            })
            .collect()
    }

    fn decade_ticks(&self, room: usize) -> Vec<Tick> {
        let (first, last) = (self.low.floor() as i32, self.high.ceil() as i32);
        let within = |value: &f64| self.holds(*value);
        let of = |digits: &[f64]| -> Vec<f64> {
            (first..=last)
                .flat_map(|power| digits.iter().map(move |digit| digit * 10_f64.powi(power)))
                .filter(within)
                .collect()
        };
        let (decades, fine) = (of(&[1.0]), of(&[1.0, 2.0, 5.0]));
        if fine.len() < 3 {
            let (low, high) = (10_f64.powf(self.low), 10_f64.powf(self.high));
            return even_ticks(low, high, room.min(5));
        }
        let kept = self.kept(decades.iter().chain(&fine), room);
        fine.iter()
            .map(|value| Tick {
                value: *value,
                text: if kept.contains(value) {
                    short(*value)
                } else {
                    String::new()
                },
            })
            .collect()
    }

    /// Those that get a text: 1 before all others, the rest in their order, each only where it is
    /// far enough from those kept.
    fn kept<'a>(&self, wanted: impl Iterator<Item = &'a f64> + Clone, room: usize) -> Vec<f64> {
        let ones = wanted.clone().filter(|value| **value == 1.0);
        let mut kept: Vec<f64> = Vec::new();
        for value in ones.chain(wanted) {
            let place = self.place(*value);
            if kept
                .iter()
                .all(|other| (self.place(*other) - place).abs() * room as f64 >= 1.0)
            {
                kept.push(*value);
            }
        }
        kept
    }
}

/// The place on the scale, before it is stretched over the panel.
fn exponent(scale: Scale, value: f64) -> f64 {
    match scale {
        Scale::Bytes => value.log2(),
        Scale::Logarithmic => value.log10(),
        Scale::Linear => value,
    }
}

/// A panel never magnifies less than this: noise would look like an effect.
fn least_width(scale: Scale, high: f64) -> f64 {
    match scale {
        Scale::Bytes => 1.0,
        Scale::Logarithmic => 0.3,
        Scale::Linear => (high.abs() * 0.1).max(f64::MIN_POSITIVE),
    }
}

/// Marks at multiples of 1, 2 or 5 times a power of ten.
fn even_ticks(low: f64, high: f64, room: usize) -> Vec<Tick> {
    let raw = (high - low) / room as f64;
    let power = 10_f64.powf(raw.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|digit| digit * power)
        .find(|step| *step >= raw * 0.999)
        .unwrap_or(power * 10.0);
    let from = (low / step).ceil() as i64;
    let to = (high / step + 1e-9).floor() as i64;
    (from..=to.min(from + 50))
        .map(|count| {
            // Through the text of the step's digits, so that 3 * 0.1 is written 0.3.
            let digits = (-step.log10().floor()).clamp(0.0, 9.0) as usize;
            let value = count as f64 * step;
            let rounded = format!("{value:.digits$}").parse().unwrap_or(value);
            Tick {
                value: rounded,
                text: number(rounded),
            }
        })
        .collect()
}

/// A message size: 8, 1K, 64K, 4M; sizes between powers of two are written out.
pub fn bytes(size: f64) -> String {
    let size = size as u64;
    match size {
        size if size >= 1 << 30 && size % (1 << 30) == 0 => format!("{}G", size >> 30),
        size if size >= 1 << 20 && size % (1 << 20) == 0 => format!("{}M", size >> 20),
        size if size >= 1 << 10 && size % (1 << 10) == 0 => format!("{}K", size >> 10),
        size => size.to_string(),
    }
}

/// A number for a tick: no more digits than it has.
pub fn number(value: f64) -> String {
    let size = value.abs();
    if size >= 1000.0 {
        return grouped(value.round() as i64);
    }
    let text = format!("{value:.9}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text.is_empty() || text == "-0" {
        "0".into()
    } else {
        text.into()
    }
}

/// A number for a tick of a logarithmic axis, where few digits must do: 100k, 1M.
fn short(value: f64) -> String {
    if value >= 1e6 {
        format!("{}M", number(value / 1e6))
    } else if value >= 1e5 {
        format!("{}k", number(value / 1e3))
    } else {
        number(value)
    }
}

/// A measured figure: three digits that mean something.
pub fn figure(value: f64) -> String {
    match value.abs() {
        size if !size.is_finite() => "-".to_owned(),
        size if size >= 1000.0 => grouped(value.round() as i64),
        size if size >= 99.95 => format!("{value:.0}"),
        size if size >= 9.995 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// 12,345.
fn grouped(value: i64) -> String {
    let digits = value.unsigned_abs().to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if value < 0 { format!("-{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn span(scale: Scale, values: &[f64]) -> Span {
        Span::around(scale, values.iter().copied(), 0.0).expect("values")
    }

    fn texts(ticks: &[Tick]) -> Vec<&str> {
        ticks
            .iter()
            .map(|tick| tick.text.as_str())
            .filter(|text| !text.is_empty())
            .collect()
    }

    #[test]
    fn sizes_are_powers_of_two_and_nothing_has_its_place_before_the_first() {
        let span = span(Scale::Bytes, &[0.0, 1.0, 16.0]);
        assert_eq!(texts(&span.ticks(10)), ["0", "1", "2", "4", "8", "16"]);
        assert_eq!(
            (span.place(0.0), span.place(1.0), span.place(16.0)),
            (0.0, 0.2, 1.0)
        );
        let from_8 = self::span(Scale::Bytes, &[0.0, 8.0, 32.0]);
        assert_eq!(texts(&from_8.ticks(10)), ["0", "8", "16", "32"]);
        let wide = self::span(Scale::Bytes, &[1.0, 4_194_304.0]);
        assert_eq!(texts(&wide.ticks(6)), ["1", "16", "256", "4K", "64K", "1M"]);
    }

    #[test]
    fn decades_are_labelled_and_narrow_spans_get_even_marks() {
        assert_eq!(
            texts(&span(Scale::Logarithmic, &[0.1, 1000.0]).ticks(6)),
            ["0.1", "1", "10", "100", "1,000"]
        );
        assert_eq!(
            texts(&span(Scale::Logarithmic, &[0.4, 6.0]).ticks(6)),
            ["0.5", "1", "2", "5"]
        );
        assert_eq!(
            texts(&span(Scale::Logarithmic, &[0.2, 5.0]).ticks(5)),
            ["0.2", "0.5", "1", "2", "5"]
        );
        assert_eq!(
            texts(&span(Scale::Logarithmic, &[0.2, 5.0]).ticks(3)),
            ["0.2", "1", "5"]
        );
        assert_eq!(
            texts(&span(Scale::Logarithmic, &[1e4, 1e7]).ticks(4)),
            ["10,000", "100k", "1M", "10M"]
        );
        let narrow = texts(&span(Scale::Logarithmic, &[0.9, 1.1]).ticks(6)).join(" ");
        assert!(
            narrow.contains('1') && narrow.split(' ').count() >= 3,
            "{narrow}"
        );
    }

    #[test]
    fn even_marks_are_round_numbers() {
        let span = Span::from_zero([0.97].into_iter()).expect("a value");
        assert_eq!(texts(&span.ticks(6)), ["0", "0.2", "0.4", "0.6", "0.8"]);
    }

    #[test]
    fn figures_have_three_digits() {
        let shown = [0.1234, 1.0, 9.996, 12.345, 99.96, 123.4, 12345.6].map(figure);
        assert_eq!(
            shown,
            ["0.12", "1.00", "10.0", "12.3", "100", "123", "12,346"]
        );
        assert_eq!(
            (figure(f64::NAN), number(0.0), number(-1234.0)),
            ("-".into(), "0".into(), "-1,234".into())
        );
        assert_eq!(bytes(1536.0), "1536");
    }

    proptest! {
        #[test]
        fn every_value_and_every_mark_has_a_place_within(
            values in prop::collection::vec(1e-6_f64..1e9, 1..20),
            kind in 0..3_usize,
            room in 2..12_usize,
        ) {
            let scale = [Scale::Bytes, Scale::Logarithmic, Scale::Linear][kind];
            let span = Span::around(scale, values.iter().copied(), 0.05).expect("values");
            let ticks = span.ticks(room);
            prop_assert!(ticks.iter().filter(|tick| !tick.text.is_empty()).count() <= room + 6);
            for value in values.iter().copied().chain(ticks.iter().map(|tick| tick.value)) {
                prop_assert!((0.0..=1.0).contains(&span.place(value)));
            }
        }

        #[test]
        fn order_is_kept(one in 1e-6_f64..1e9, other in 1e-6_f64..1e9) {
            for scale in [Scale::Bytes, Scale::Logarithmic, Scale::Linear] {
                let span = Span::around(scale, [one, other].into_iter(), 0.0).expect("values");
                prop_assert_eq!(one <= other, span.place(one) <= span.place(other));
            }
        }
    }
}
