// SPDX-License-Identifier: Apache-2.0 OR MIT
//! MINLOC and MAXLOC: a value with its place. Named in table.rs; MPI 4.1, 6.9.4.

use super::combine::Combine;

/// A value and its place, laid out as C lays out a structure of the two.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Pair<V, P> {
    value: V,
    place: P,
}

/// Keeps the pair with the smaller value; of equal values that with the smaller place.
#[derive(Clone, Copy, Debug)]
pub struct MinPlace;

/// Keeps the pair with the larger value; of equal values that with the smaller place.
#[derive(Clone, Copy, Debug)]
pub struct MaxPlace;

impl<V: Copy + PartialOrd, P: Copy + PartialOrd> Combine<Pair<V, P>> for MinPlace {
    #[inline(always)]
    fn combine(a: Pair<V, P>, b: Pair<V, P>) -> Pair<V, P> {
        let keeps_first = a.value < b.value || (a.value == b.value && a.place < b.place);
        if keeps_first { a } else { b }
    }
}

impl<V: Copy + PartialOrd, P: Copy + PartialOrd> Combine<Pair<V, P>> for MaxPlace {
    #[inline(always)]
    fn combine(a: Pair<V, P>, b: Pair<V, P>) -> Pair<V, P> {
        let keeps_first = a.value > b.value || (a.value == b.value && a.place < b.place);
        if keeps_first { a } else { b }
    }
}
