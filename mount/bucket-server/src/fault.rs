// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The faults that the server makes on purpose, and its speeds. They can be set at the start and
//! while the server runs. Random draws come from a seed, so that a run can be repeated.

use std::sync::Mutex;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{Code, S3Error};
use crate::operation::Operation;

/// The settings, as the control path takes and gives them.
// structure: allow struct-fields because each is a name of the control path's JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Faults {
    /// Each answer begins so many milliseconds after its request has arrived.
    pub first_byte_ms: u64,
    /// The most bytes per second each way on one connection; 0 is without limit.
    pub connection_rate: u64,
    /// The most bytes per second each way in all; 0 is without limit.
    pub total_rate: u64,
    /// The faults below happen to these calls only; to all where none is named.
    pub operations: Vec<Operation>,
    /// The share of requests that are refused with 503 SlowDown.
    pub slow_down: f64,
    /// The share of requests that are refused with 400 InvalidRequest.
    pub bad_request: f64,
    /// The share of requests whose connection is reset instead of an answer.
    pub reset: f64,
    /// The share of requests that are carried out, and whose connection is reset then instead of an
    /// answer.
    pub unheard: f64,
    /// The share of object reads that break off half-way.
    pub cut: f64,
    /// The share of object reads with one bit turned over.
    pub flip: f64,
    /// The share of object reads before which the object is replaced by another of its length.
    pub change: f64,
    /// Every request is answered by a reset, as if the server were gone.
    pub gone: bool,
    /// What becomes of conditions on the destination of copies.
    pub conditional_copy: Support,
    /// What becomes of conditions on writes that are no copies.
    pub conditional_put: Support,
    /// Whether checksums are stored and given back.
    pub checksums: bool,
    /// Whether credentials have expired.
    pub expired: bool,
    /// Requests with this session token are refused, as if it had expired.
    pub expired_token: String,
    /// So many seconds the server's clock is ahead of this host's; less than 0: behind.
    pub clock_ahead_s: i64,
    /// Where the draws begin.
    pub seed: u64,
}

/// How a store treats what it may not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Support {
    /// As S3 does today.
    Kept,
    /// With 501 NotImplemented.
    Refused,
    /// Not looked at, as older stores do.
    Ignored,
}

impl Default for Faults {
    fn default() -> Self {
        Self {
            first_byte_ms: 0,
            connection_rate: 0,
            total_rate: 0,
            operations: Vec::new(),
            slow_down: 0.0,
            bad_request: 0.0,
            reset: 0.0,
            unheard: 0.0,
            cut: 0.0,
            flip: 0.0,
            change: 0.0,
            gone: false,
            conditional_copy: Support::Kept,
            conditional_put: Support::Kept,
            checksums: true,
            expired: false,
            expired_token: String::new(),
            clock_ahead_s: 0,
            seed: 1,
        }
    }
}

/// What happens to one request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Draw {
    /// It is refused with 503.
    pub slow_down: bool,
    /// It is refused with 400.
    pub bad_request: bool,
    /// Its connection is reset.
    pub reset: bool,
    /// It is carried out, and its connection is reset.
    pub unheard: bool,
    /// The bytes it reads break off.
    pub cut: bool,
    /// A bit of the bytes it reads is turned over.
    pub flip: bool,
    /// The object is replaced before.
    pub change: bool,
    /// Which bit, or where.
    pub random: u64,
}

/// The settings of a running server and the state of its draws.
#[derive(Debug)]
pub struct FaultControl {
    state: Mutex<(Faults, fastrand::Rng)>,
}

impl FaultControl {
    /// Begins with these settings.
    pub fn new(faults: Faults) -> Self {
        let random = fastrand::Rng::with_seed(faults.seed);
        Self {
            state: Mutex::new((faults, random)),
        }
    }

    /// The settings now.
    pub fn settings(&self) -> Faults {
        crate::locked(&self.state).0.clone()
    }

    /// The rates now: of one connection, and in all.
    pub fn rates(&self) -> (u64, u64) {
        let state = crate::locked(&self.state);
        (state.0.connection_rate, state.0.total_rate)
    }

    /// Changes the settings that `changes` names and leaves the others; the draws begin anew.
    ///
    /// # Errors
    /// Says which setting is unknown or has no such value; nothing is changed then.
    pub fn change(&self, changes: &Value) -> Result<Faults, S3Error> {
        let invalid = |text: String| S3Error::new(Code::InvalidArgument, text);
        let Value::Object(changes) = changes else {
            return Err(invalid(format!("settings are an object, not {changes}")));
        };
        let mut state = crate::locked(&self.state);
        let mut merged = serde_json::to_value(&state.0).unwrap_or_default();
        for (name, value) in changes {
            merged[name] = value.clone();
        }
        let faults: Faults =
            serde_json::from_value(merged).map_err(|error| invalid(error.to_string()))?;
        let shares = [
            ("slow_down", faults.slow_down),
            ("bad_request", faults.bad_request),
            ("reset", faults.reset),
            ("unheard", faults.unheard),
            ("cut", faults.cut),
            ("flip", faults.flip),
            ("change", faults.change),
        ];
        if let Some((name, share)) = shares
            .iter()
            .find(|(_, share)| !(0.0..=1.0).contains(share))
        {
            return Err(invalid(format!(
                "{name} is a share from 0 to 1, not {share}"
            )));
        }
        state.1 = fastrand::Rng::with_seed(faults.seed);
        state.0 = faults;
        Ok(state.0.clone())
    }

    /// What happens to the next request.
    pub fn draw(&self, operation: Operation) -> Draw {
        let mut state = crate::locked(&self.state);
        let (faults, random) = &mut *state;
        if !faults.operations.is_empty() && !faults.operations.contains(&operation) {
            return Draw::default();
        }
        let mut hit = |share: f64| share > 0.0 && random.f64() < share;
        let draw = Draw {
            slow_down: hit(faults.slow_down),
            bad_request: hit(faults.bad_request),
            reset: hit(faults.reset),
            unheard: hit(faults.unheard),
            cut: hit(faults.cut),
            flip: hit(faults.flip),
            change: hit(faults.change),
            random: 0,
        };
        let random = random.u64(..);
        Draw { random, ..draw }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_of_one_seed_are_the_same_and_hold_their_share() {
        let control = FaultControl::new(Faults::default());
        let changes = serde_json::json!({"slow_down": 0.25, "cut": 0.5, "seed": 9});
        let mut runs = Vec::new();
        for _ in 0..2 {
            control.change(&changes).unwrap();
            let draws = (0..4000).map(|_| control.draw(Operation::GetObject));
            runs.push(draws.collect::<Vec<_>>());
        }
        assert_eq!(runs[0], runs[1]);
        let refused = runs[0].iter().filter(|draw| draw.slow_down).count();
        assert!((800..1200).contains(&refused), "{refused}");
        assert!(!runs[0].iter().any(|draw| draw.reset));
    }

    #[test]
    fn faults_keep_to_the_operations_named() {
        let control = FaultControl::new(Faults::default());
        let changes = serde_json::json!({"reset": 1.0, "operations": ["PutObject"]});
        control.change(&changes).unwrap();
        assert!(control.draw(Operation::PutObject).reset);
        assert!(!control.draw(Operation::GetObject).reset);
    }

    #[test]
    fn wrong_settings_are_refused_and_change_nothing() {
        let control = FaultControl::new(Faults::default());
        for wrong in [
            serde_json::json!({"slow_donw": 0.1}),
            serde_json::json!({"reset": 1.5}),
            serde_json::json!([1]),
        ] {
            assert!(control.change(&wrong).is_err(), "{wrong}");
        }
        assert_eq!(control.settings(), Faults::default());
    }
}
