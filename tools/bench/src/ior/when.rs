// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The time of day as ctime(3) writes it, in UTC. Called by report.

use std::time::{SystemTime, UNIX_EPOCH};

/// Now, as `Thu Dec 14 00:13:39 2023`.
pub fn now() -> String {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    describe(since.as_secs())
}

/// Source of the calendar: the proleptic Gregorian one, counted in eras of 400 years from 1 March of the year 0.
fn describe(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let weekday = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"][(days % 7) as usize];
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12;
    let year = era * 400 + year_of_era + u64::from(month < 2);
    let names = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    format!(
        "{weekday} {} {day:2} {:02}:{:02}:{:02} {year}",
        names[month as usize],
        second / 3600,
        second / 60 % 60,
        second % 60
    )
}

#[cfg(test)]
mod tests {
    #[test]
    fn known_moments_are_written_as_ctime_does() {
        assert_eq!(super::describe(0), "Thu Jan  1 00:00:00 1970");
        assert_eq!(super::describe(1_702_512_819), "Thu Dec 14 00:13:39 2023");
        assert_eq!(super::describe(1_709_164_800), "Thu Feb 29 00:00:00 2024");
    }
}
