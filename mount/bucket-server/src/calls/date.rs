// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Dates as headers and XML write them.

use time::OffsetDateTime;
use time::macros::format_description;

/// As in `Last-Modified`.
pub fn in_header(date: OffsetDateTime) -> String {
    let format = format_description!(
        "[weekday repr:short], [day] [month repr:short] [year] [hour]:[minute]:[second] GMT"
    );
    date.format(&format).unwrap_or_default()
}

/// As in listings.
pub fn in_xml(date: OffsetDateTime) -> String {
    let format = format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].000Z");
    date.format(&format).unwrap_or_default()
}
