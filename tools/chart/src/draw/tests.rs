// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A drawing holds everything that its figure holds, whatever the values are.

use super::*;
use proptest::prelude::*;

fn series(name: &str, role: Role, values: &[(f64, f64)]) -> Series {
    Series {
        name: name.into(),
        role,
        points: values
            .iter()
            .map(|(x, y)| Point {
                x: *x,
                y: *y,
                low: y * 0.9,
                high: y * 1.2,
            })
            .collect(),
    }
}

fn sample() -> Figure {
    Figure {
        id: "latency".into(),
        title: "Latency <of> \"MPI\"".into(),
        x: Axis::new("message size", "bytes", Scale::Bytes),
        y: Axis::new("latency", "us", Scale::Logarithmic),
        series: vec![
            series("Weft", Role::Ours, &[(0.0, 0.2), (8.0, 0.2), (4096.0, 0.6)]),
            series("own <transport>", Role::Peer, &[(8.0, 0.19), (4096.0, 1.6)]),
            series("in the back", Role::Faint, &[(8.0, 0.3), (4096.0, 2.6)]),
        ],
        ratio: Some(Ratio {
            label: "Weft / own".into(),
            ahead: "Weft faster".into(),
            note: "solid: medians".into(),
            less_is_ahead: true,
            target: Some(0.8),
            series: vec![series("ratio", Role::Ours, &[(8.0, 1.05), (4096.0, 0.4)])],
        }),
        ..Figure::default()
    }
}

#[test]
fn drawing_names_its_series_and_escapes_them() {
    for form in [Form::Wide, Form::Narrow] {
        let text = svg(&sample(), form);
        for word in [
            "own &lt;transport&gt;",
            "Weft faster",
            "message size (bytes)",
            "latency (us)",
            "goal 0.8",
            "class=\"band ours\"",
        ] {
            assert!(text.contains(word), "{word} is missing from {text}");
        }
        assert!(!text.contains(">in the back<") && !text.contains("<of>") && !text.contains("NaN"));
    }
    assert!(alone(&sample()).starts_with("<svg xmlns=") && alone(&sample()).contains("<style>"));
    assert_eq!(
        sheet(&[sample(), sample(), sample()], 2)
            .matches("<g transform")
            .count(),
        3
    );
}

#[test]
fn peers_differ_in_dash_or_grey() {
    let many: Vec<Series> = (0..6).map(|_| series("p", Role::Peer, &[])).collect();
    let looks = panel::looks(&many);
    for (place, look) in looks.iter().enumerate() {
        assert!(!looks[..place].contains(look), "{place}");
    }
}

#[test]
fn nothing_measured_is_said() {
    let empty = Figure {
        series: Vec::new(),
        ..sample()
    };
    assert!(svg(&empty, Form::Wide).contains("nothing was measured"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn coordinates_are_numbers_within_the_picture(
        values in prop::collection::vec((0.0_f64..1e7, 1e-9_f64..1e12), 1..24),
        bars in any::<bool>(),
        linear in any::<bool>(),
    ) {
        let mut figure = sample();
        if bars {
            figure.shape = Shape::Bars;
        }
        if linear {
            figure.y.scale = Scale::Linear;
        }
        figure.series.push(series("random", Role::Peer, &values));
        for form in [Form::Wide, Form::Narrow] {
            let text = svg(&figure, form);
            prop_assert!(!text.contains("NaN") && !text.contains("inf"));
            for (at, found) in text.match_indices(" x=\"") {
                let word = text[at + found.len()..].split('"').next();
                let x: f64 = word.and_then(|word| word.parse().ok()).expect("a number");
                prop_assert!((-1.0..=form.width() + 1.0).contains(&x), "{}", x);
            }
        }
    }
}
