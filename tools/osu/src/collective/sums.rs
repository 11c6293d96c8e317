// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The input of each rank to a sum, and the result that it must give: small whole numbers, whose
//! sum is exact in every type.
//!
//! Called by contents, for reductions, and by one_sided, for accumulations.

use weft_mpi::Datatype;

/// Elements repeat after this many; a prime, so that shifts by powers of two are found (chosen).
const PERIOD: usize = 61;

/// Which sum it is.
#[derive(Clone, Copy, Debug)]
pub struct Sum {
    /// Type of the elements.
    pub kind: Datatype,
    /// Iteration, counted from the first warm-up one.
    pub iteration: usize,
    /// Size of the whole in bytes.
    pub size_bytes: usize,
}

impl Sum {
    /// What rank 0 gives for an element; rank r gives r more.
    pub fn term(&self, element: usize, rank: usize) -> usize {
        (element + self.iteration * 7 + self.size_bytes) % PERIOD + rank
    }

    /// The sum over ranks 0 to `ranks` - 1.
    pub fn total(&self, element: usize, ranks: usize) -> usize {
        self.term(element, 0) * ranks + ranks * ranks.saturating_sub(1) / 2
    }

    /// Writes elements from number `first` on into `bytes`.
    pub fn fill(&self, bytes: &mut [u8], first: usize, value: impl Fn(usize) -> usize) {
        for (element, room) in bytes.chunks_exact_mut(self.kind.size_bytes()).enumerate() {
            let (value, length) = encode(value(first + element), self.kind);
            room.copy_from_slice(&value[..length]);
        }
    }

    /// How many bytes lie in elements that are not what they must be.
    pub fn mismatches(&self, bytes: &[u8], first: usize, value: impl Fn(usize) -> usize) -> u64 {
        let wrong = bytes
            .chunks_exact(self.kind.size_bytes())
            .enumerate()
            .filter(|(element, bytes)| {
                let (expected, length) = encode(value(first + element), self.kind);
                **bytes != expected[..length]
            });
        (wrong.count() * self.kind.size_bytes()) as u64
    }
}

/// A whole number in the bytes of a type; the second is how many bytes count.
pub fn encode(value: usize, kind: Datatype) -> ([u8; 8], usize) {
    let mut bytes = [0; 8];
    match kind {
        Datatype::Char | Datatype::Byte => bytes[0] = value as u8,
        Datatype::Int => bytes[..4].copy_from_slice(&(value as i32).to_ne_bytes()),
        Datatype::Float => bytes[..4].copy_from_slice(&(value as f32).to_ne_bytes()),
        Datatype::Double => bytes = (value as f64).to_ne_bytes(),
        Datatype::Long => bytes = (value as i64).to_ne_bytes(),
    }
    (bytes, kind.size_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUM: Sum = Sum {
        kind: Datatype::Int,
        iteration: 3,
        size_bytes: 4096,
    };

    #[test]
    fn total_is_the_sum_of_what_the_ranks_give() {
        for ranks in 0..9 {
            for element in [0, 1, 60, 61, 1000] {
                let added: usize = (0..ranks).map(|rank| SUM.term(element, rank)).sum();
                assert_eq!(SUM.total(element, ranks), added);
            }
        }
    }

    #[test]
    fn encoded_number_is_the_types_own() {
        assert_eq!(encode(300, Datatype::Int).0[..4], 300i32.to_ne_bytes());
        assert_eq!(encode(300, Datatype::Float).0[..4], 300f32.to_ne_bytes());
        assert_eq!(encode(300, Datatype::Double), (300f64.to_ne_bytes(), 8));
        assert_eq!(encode(300, Datatype::Long), (300i64.to_ne_bytes(), 8));
    }

    #[test]
    fn one_wrong_element_is_found_in_every_type() {
        for kind in Datatype::ALL {
            let sum = Sum { kind, ..SUM };
            let mut bytes = [0; 64];
            sum.fill(&mut bytes, 5, |element| sum.total(element, 3));
            let check = |bytes: &[u8]| sum.mismatches(bytes, 5, |element| sum.total(element, 3));
            assert_eq!(check(&bytes), 0);
            bytes[63] ^= 1;
            assert_eq!(check(&bytes), kind.size_bytes() as u64, "{}", kind.name());
        }
    }
}
