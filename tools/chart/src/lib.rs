// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Figures, tables and the page that holds them: one HTML file that loads nothing from outside.
//! This crate draws the SVG itself.
//!
//! Called by compare; any other tool that shows measurements can use it too. Fill a
//! [`figure::Figure`] with series, put it on a [`page::Page`] beside tables and facts, and write
//! [`page::Page::html`]. Nothing here knows what was measured. All text that comes from outside is
//! escaped where it enters the page, in [`html`].
//!
//! - [`figure`]: what a figure shows: axes, series with their spread, a ratio panel, source,
//!   commands
//! - [`axis`]: scales, ticks and how numbers are written
//! - [`canvas`]: SVG elements as text
//! - [`draw`], [`panel`], [`bars`], [`label`]: from the figure to SVG, in a wide and a narrow form
//! - [`table`]: tables that sort
//! - [`page`]: the page; `page.css`, `figure.css` and `page.js` are embedded unchanged
#![forbid(unsafe_code)]

pub mod axis;
pub mod bars;
pub mod canvas;
pub mod draw;
pub mod figure;
pub mod html;
pub mod label;
pub mod page;
pub mod panel;
pub mod table;
