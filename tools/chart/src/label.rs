// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Places names so that they do not cover each other and do not leave the picture: at the ends of
//! the curves, or in rows above them.
//!
//! Called by draw.

/// Moves places apart so that neighbours are at least `gap` apart and all lie between `low` and
/// `high`, with as little movement as needed. Order is kept; when there is no room for all, they
/// are spread evenly.
pub fn apart(wanted: &[f64], gap: f64, low: f64, high: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|one, other| wanted[*one].total_cmp(&wanted[*other]));
    let room = (high - low).max(0.0);
    let gap = gap.min(room / wanted.len().saturating_sub(1).max(1) as f64);
    // Groups of names that touch share their displacement: the mean of what their members want.
    let mut groups: Vec<(f64, Vec<usize>)> = Vec::new();
    for index in order {
        groups.push((clamped(wanted[index], 1, gap, low, high), vec![index]));
        while let [.., (first, members), (second, _)] = groups.as_slice() {
            if first + gap * members.len() as f64 <= *second + 1e-9 {
                break;
            }
            let (_, last) = groups.pop().unwrap_or_default();
            if let Some((start, members)) = groups.last_mut() {
                members.extend(last);
                let mean = members
                    .iter()
                    .enumerate()
                    .map(|(place, index)| wanted[*index] - gap * place as f64)
                    .sum::<f64>()
                    / members.len() as f64;
                *start = clamped(mean, members.len(), gap, low, high);
            }
        }
    }
    let mut places = vec![0.0; wanted.len()];
    for (start, members) in groups {
        for (place, index) in members.into_iter().enumerate() {
            places[index] = start + gap * place as f64;
        }
    }
    places
}

fn clamped(start: f64, count: usize, gap: f64, low: f64, high: f64) -> f64 {
    start.min(high - gap * (count - 1) as f64).max(low)
}

/// Rows of a legend: for each entry of these widths its `(left, row)`; a row is at most `width`
/// wide.
pub fn rows(widths: &[f64], width: f64) -> Vec<(f64, usize)> {
    let (mut left, mut row) = (0.0, 0);
    widths
        .iter()
        .map(|entry| {
            if left > 0.0 && left + entry > width {
                (left, row) = (0.0, row + 1);
            }
            let place = (left, row);
            left += entry;
            place
        })
        .collect()
}

/// A name cut to a number of characters, with an ellipsis.
pub fn cut(name: &str, limit: usize) -> String {
    if name.chars().count() <= limit {
        return name.to_owned();
    }
    let kept: String = name.chars().take(limit.saturating_sub(1)).collect();
    format!("{}\u{2026}", kept.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_that_do_not_touch_stay_and_others_share_the_way() {
        assert_eq!(
            apart(&[10.0, 50.0, 90.0], 12.0, 0.0, 100.0),
            [10.0, 50.0, 90.0]
        );
        assert_eq!(apart(&[52.0, 50.0], 12.0, 0.0, 100.0), [57.0, 45.0]);
        assert_eq!(
            apart(&[100.0, 99.0, 98.0], 10.0, 0.0, 100.0),
            [100.0, 90.0, 80.0]
        );
    }

    #[test]
    fn rows_are_filled_from_the_left() {
        assert_eq!(
            rows(&[40.0, 40.0, 40.0], 100.0),
            [(0.0, 0), (40.0, 0), (0.0, 1)]
        );
        assert_eq!(
            (cut("abcdef", 4), cut("abc", 4)),
            ("abc\u{2026}".into(), "abc".into())
        );
    }

    proptest! {
        #[test]
        fn no_two_names_touch_and_none_leaves(
            wanted in prop::collection::vec(0.0_f64..300.0, 1..12),
        ) {
            let places = apart(&wanted, 14.0, 0.0, 300.0);
            let mut sorted = places.clone();
            sorted.sort_by(f64::total_cmp);
            let apart = sorted.windows(2).all(|pair| pair[1] - pair[0] >= 14.0 - 1e-6);
            prop_assert!(apart, "{:?}", sorted);
            prop_assert!(sorted.iter().all(|place| (-1e-6..=300.0 + 1e-6).contains(place)));
        }
    }
}
