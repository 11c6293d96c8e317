// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The time of day as ctime(3) writes it, in UTC. Called by report.

use std::time::{SystemTime, UNIX_EPOCH};

use weft_ranks::calendar::Moment;

/// Now, as `Thu Dec 14 00:13:39 2023`.
pub fn now() -> String {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    describe(since.as_secs())
}

fn describe(seconds: u64) -> String {
    let moment = Moment::of(seconds);
    let weekdays = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
    let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    format!(
        "{} {} {:2} {:02}:{:02}:{:02} {}",
        weekdays[moment.weekday as usize],
        months[moment.month as usize - 1],
        moment.day,
        moment.hour,
        moment.minute,
        moment.second,
        moment.year
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
