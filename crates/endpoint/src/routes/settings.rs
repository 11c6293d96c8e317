// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How the routes of a list are opened, and what they count. Filled by the provider.

use weft_contract::{Place, Route, RouteError, RouteErrorKind};

use super::routing::{ROUTE_LIMIT, Scope};

/// How one route of a list is opened.
#[derive(Clone, Debug)]
pub struct RouteSettings<S> {
    /// What the route itself wants to know.
    pub settings: S,
    /// Which remotes it serves.
    pub scope: Scope,
}

/// How the routes of an endpoint are opened.
#[derive(Clone, Debug)]
pub struct Settings<F, O> {
    /// The first route.
    pub first: RouteSettings<F>,
    /// The others, in order of preference, at most [`ROUTE_LIMIT`] - 1. Without others, only
    /// remotes that the first route serves can be reached.
    pub others: Vec<RouteSettings<O>>,
    /// Tells the user why a remote cannot be reached, in one sentence, once.
    pub report: fn(&str),
    /// What the user must do so that more routes are open; follows that sentence.
    pub way_out: &'static str,
}

impl<F: Default, O> Default for Settings<F, O> {
    fn default() -> Self {
        Self {
            first: RouteSettings {
                settings: F::default(),
                scope: Scope::Host,
            },
            others: Vec::new(),
            report: |_| {},
            way_out: "",
        }
    }
}

impl<F, O> Settings<F, O> {
    /// Which remotes each route serves, in the order of the list.
    pub(super) fn scopes(&self) -> Vec<Scope> {
        let others = self.others.iter().map(|other| other.scope);
        std::iter::once(self.first.scope).chain(others).collect()
    }

    /// Opens all routes. One of the others needs the port of the address itself; for the rest, and
    /// for the first route, the address is then only a name.
    pub(super) fn open_all<A, B>(&self, mut place: Place) -> Result<(A, Vec<B>), RouteError>
    where
        A: Route<Settings = F>,
        B: Route<Settings = O>,
    {
        if self.others.len() >= ROUTE_LIMIT {
            return Err(RouteError {
                kind: RouteErrorKind::Invalid,
                words: format!(
                    "an endpoint cannot have {} routes, only {ROUTE_LIMIT}: open fewer",
                    self.others.len() + 1
                ),
            });
        }
        let mut others = Vec::with_capacity(self.others.len());
        for other in &self.others {
            let opened = B::open(&other.settings, place)?;
            place.address = Some(opened.local_address());
            place.is_held = true;
            others.push(opened);
        }
        Ok((A::open(&self.first.settings, place)?, others))
    }
}

/// What the routes of a list counted.
#[derive(Clone, Debug, Default)]
pub struct Statistics<F, O> {
    /// The first one.
    pub first: F,
    /// The others that are open, in their order.
    pub others: Vec<O>,
}
