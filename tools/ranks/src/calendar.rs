// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Seconds since 1970 as a date and a time of day, UTC.
//!
//! Called by compare's page and by ior's output; each formats them in its own way. Source: Hinnant,
//! "chrono-Compatible Low-Level Date Algorithms", civil_from_days.

/// A moment, to the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// From 1970.
    pub year: u64,
    /// 1 to 12.
    pub month: u64,
    /// 1 to 31.
    pub day: u64,
    /// 0 is Sunday.
    pub weekday: u64,
    /// 0 to 23.
    pub hour: u64,
    /// 0 to 59.
    pub minute: u64,
    /// 0 to 59; leap seconds are not counted.
    pub second: u64,
}

impl Moment {
    /// Of so many seconds since 1970.
    pub fn of(seconds: u64) -> Self {
        let (days, second_of_day) = (seconds / 86_400, seconds % 86_400);
        // Years begin in March here, so that leap days end them; eras are of 400 years.
        let shifted = days + 719_468;
        let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
        let year_of_era =
            (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * day_of_year + 2) / 153;
        let month = (month_from_march + 2) % 12 + 1;
        Self {
            year: era * 400 + year_of_era + u64::from(month <= 2),
            month,
            day: day_of_year - (153 * month_from_march + 2) / 5 + 1,
            weekday: (days + 4) % 7,
            hour: second_of_day / 3600,
            minute: second_of_day / 60 % 60,
            second: second_of_day % 60,
        }
    }
}
