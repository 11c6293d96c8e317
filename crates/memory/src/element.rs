// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The arithmetic of remote atomics: what becomes of one element under one operation. Pure;
//! fi_atomic(3).
//!
//! Called by atomic.rs for each element. An element travels as the low bytes of a `u128`, whatever
//! its type.

/// What is done to an element. Numbered as `enum fi_op` (fi_atomic.h).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Operator {
    /// Keep the smaller.
    Min,
    /// Keep the larger.
    Max,
    /// Add.
    Sum,
    /// Multiply.
    Prod,
    /// Logical or.
    LogicalOr,
    /// Logical and.
    LogicalAnd,
    /// Or of the bits.
    BitOr,
    /// And of the bits.
    BitAnd,
    /// Logical exclusive or.
    LogicalXor,
    /// Exclusive or of the bits.
    BitXor,
    /// Leave it as it is.
    Read,
    /// Replace it.
    Write,
    /// Replace it if the comparand is equal to it.
    SwapIfEqual,
    /// Replace it if the comparand is not equal to it.
    SwapIfNotEqual,
    /// Replace it if the comparand is at most as large.
    SwapIfLessOrEqual,
    /// Replace it if the comparand is smaller.
    SwapIfLess,
    /// Replace it if the comparand is at least as large.
    SwapIfGreaterOrEqual,
    /// Replace it if the comparand is larger.
    SwapIfGreater,
    /// Replace the bits that the comparand has set.
    MaskedSwap,
}

/// The type of an element. Numbered as `enum fi_datatype` (fi_domain.h).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Element {
    /// FI_INT8.
    I8,
    /// FI_UINT8.
    U8,
    /// FI_INT16.
    I16,
    /// FI_UINT16.
    U16,
    /// FI_INT32.
    I32,
    /// FI_UINT32.
    U32,
    /// FI_INT64.
    I64,
    /// FI_UINT64.
    U64,
    /// FI_FLOAT.
    F32,
    /// FI_DOUBLE.
    F64,
    /// FI_FLOAT_COMPLEX.
    ComplexF32,
    /// FI_DOUBLE_COMPLEX.
    ComplexF64,
    /// FI_INT128.
    I128 = 14,
    /// FI_UINT128.
    U128 = 15,
}

impl Operator {
    const ALL: [Self; 19] = [
        Self::Min,
        Self::Max,
        Self::Sum,
        Self::Prod,
        Self::LogicalOr,
        Self::LogicalAnd,
        Self::BitOr,
        Self::BitAnd,
        Self::LogicalXor,
        Self::BitXor,
        Self::Read,
        Self::Write,
        Self::SwapIfEqual,
        Self::SwapIfNotEqual,
        Self::SwapIfLessOrEqual,
        Self::SwapIfLess,
        Self::SwapIfGreaterOrEqual,
        Self::SwapIfGreater,
        Self::MaskedSwap,
    ];

    /// The operation of libfabric's number.
    pub fn of(number: u32) -> Option<Self> {
        Self::ALL.get(number as usize).copied()
    }

    /// Whether it takes a comparand, so belongs to the compare forms alone.
    pub fn compares(self) -> bool {
        self as u8 >= Self::SwapIfEqual as u8
    }

    /// Whether elements are only read.
    pub fn only_reads(self) -> bool {
        self == Self::Read
    }

    fn is_of_bits(self) -> bool {
        matches!(
            self,
            Self::BitOr | Self::BitAnd | Self::BitXor | Self::MaskedSwap
        )
    }

    fn needs_an_order(self) -> bool {
        matches!(
            self,
            Self::Min
                | Self::Max
                | Self::SwapIfLessOrEqual
                | Self::SwapIfLess
                | Self::SwapIfGreaterOrEqual
                | Self::SwapIfGreater
        )
    }
}

impl Element {
    /// The type of libfabric's number; `None` for those that are not offered (long double).
    pub fn of(number: u32) -> Option<Self> {
        const ALL: [Option<Element>; 16] = [
            Some(Element::I8),
            Some(Element::U8),
            Some(Element::I16),
            Some(Element::U16),
            Some(Element::I32),
            Some(Element::U32),
            Some(Element::I64),
            Some(Element::U64),
            Some(Element::F32),
            Some(Element::F64),
            Some(Element::ComplexF32),
            Some(Element::ComplexF64),
            None,
            None,
            Some(Element::I128),
            Some(Element::U128),
        ];
        ALL.get(number as usize).copied().flatten()
    }

    /// Bytes of one element.
    pub fn size_bytes(self) -> usize {
        match self {
            Self::I8 | Self::U8 => 1,
            Self::I16 | Self::U16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 | Self::ComplexF32 => 8,
            Self::ComplexF64 | Self::I128 | Self::U128 => 16,
        }
    }

    /// Whether `operator` has a meaning for elements of this type: there are no bits of a fraction,
    /// and no order among complex numbers.
    pub fn allows(self, operator: Operator) -> bool {
        match self {
            Self::F32 | Self::F64 => !operator.is_of_bits(),
            Self::ComplexF32 | Self::ComplexF64 => {
                !operator.is_of_bits() && !operator.needs_an_order()
            }
            _ => true,
        }
    }
}

/// What becomes of `old`, or `None` if it stays. `operator` must be allowed for `element`; what is
/// not leaves it.
#[inline]
pub(crate) fn combine(
    operator: Operator,
    element: Element,
    old: u128,
    operand: u128,
    comparand: u128,
) -> Option<u128> {
    match operator {
        Operator::Read => return None,
        Operator::Write => return Some(operand),
        Operator::BitOr => return Some(old | operand),
        Operator::BitAnd => return Some(old & operand),
        Operator::BitXor => return Some(old ^ operand),
        Operator::MaskedSwap => return Some((operand & comparand) | (old & !comparand)),
        _ => {}
    }
    match element {
        Element::I8 => number::<i8>(operator, old, operand, comparand),
        Element::U8 => number::<u8>(operator, old, operand, comparand),
        Element::I16 => number::<i16>(operator, old, operand, comparand),
        Element::U16 => number::<u16>(operator, old, operand, comparand),
        Element::I32 => number::<i32>(operator, old, operand, comparand),
        Element::U32 => number::<u32>(operator, old, operand, comparand),
        Element::I64 => number::<i64>(operator, old, operand, comparand),
        Element::U64 => number::<u64>(operator, old, operand, comparand),
        Element::I128 => number::<i128>(operator, old, operand, comparand),
        Element::U128 => number::<u128>(operator, old, operand, comparand),
        Element::F32 => number::<f32>(operator, old, operand, comparand),
        Element::F64 => number::<f64>(operator, old, operand, comparand),
        Element::ComplexF32 => number::<Complex<f32>>(operator, old, operand, comparand),
        Element::ComplexF64 => number::<Complex<f64>>(operator, old, operand, comparand),
    }
}

/// A type of element as numbers.
trait Number: Copy + PartialEq + PartialOrd {
    const ZERO: Self;
    const ONE: Self;
    fn from_bits(bits: u128) -> Self;
    fn bits(self) -> u128;
    fn plus(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;
}

#[inline(always)]
fn number<N: Number>(
    operator: Operator,
    old: u128,
    operand: u128,
    comparand: u128,
) -> Option<u128> {
    let (old, operand, comparand) = (
        N::from_bits(old),
        N::from_bits(operand),
        N::from_bits(comparand),
    );
    let is_set = |value: N| value != N::ZERO;
    let truth = |holds: bool| Some(if holds { N::ONE } else { N::ZERO });
    let swap = |holds: bool| holds.then_some(operand);
    let new = match operator {
        Operator::Min => swap(operand < old),
        Operator::Max => swap(operand > old),
        Operator::Sum => Some(old.plus(operand)),
        Operator::Prod => Some(old.times(operand)),
        Operator::LogicalOr => truth(is_set(old) || is_set(operand)),
        Operator::LogicalAnd => truth(is_set(old) && is_set(operand)),
        Operator::LogicalXor => truth(is_set(old) != is_set(operand)),
        Operator::SwapIfEqual => swap(comparand == old),
        Operator::SwapIfNotEqual => swap(comparand != old),
        Operator::SwapIfLessOrEqual => swap(comparand <= old),
        Operator::SwapIfLess => swap(comparand < old),
        Operator::SwapIfGreaterOrEqual => swap(comparand >= old),
        Operator::SwapIfGreater => swap(comparand > old),
        _ => None,
    };
    new.map(N::bits)
}

macro_rules! integers {
    ($($type:ident as $unsigned:ident),*) => {
        $(impl Number for $type {
            const ZERO: Self = 0;
            const ONE: Self = 1;
            #[inline(always)]
            fn from_bits(bits: u128) -> Self {
                bits as $type
            }
            #[inline(always)]
            fn bits(self) -> u128 {
                self as $unsigned as u128
            }
            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn times(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }
        })*
    };
}

integers!(
    i8 as u8,
    u8 as u8,
    i16 as u16,
    u16 as u16,
    i32 as u32,
    u32 as u32,
    i64 as u64,
    u64 as u64,
    i128 as u128,
    u128 as u128
);

macro_rules! fractions {
    ($($type:ident as $bits:ident),*) => {
        $(impl Number for $type {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            #[inline(always)]
            fn from_bits(bits: u128) -> Self {
                $type::from_bits(bits as $bits)
            }
            #[inline(always)]
            fn bits(self) -> u128 {
                u128::from(self.to_bits())
            }
            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self + other
            }
            #[inline(always)]
            fn times(self, other: Self) -> Self {
                self * other
            }
        }

        impl Number for Complex<$type> {
            const ZERO: Self = Self(0.0, 0.0);
            const ONE: Self = Self(1.0, 0.0);
            #[inline(always)]
            fn from_bits(bits: u128) -> Self {
                Self(Number::from_bits(bits), Number::from_bits(bits >> $bits::BITS))
            }
            #[inline(always)]
            fn bits(self) -> u128 {
                Number::bits(self.0) | Number::bits(self.1) << $bits::BITS
            }
            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                Self(self.0 + other.0, self.1 + other.1)
            }
            #[inline(always)]
            fn times(self, other: Self) -> Self {
                Self(self.0 * other.0 - self.1 * other.1, self.0 * other.1 + self.1 * other.0)
            }
        })*
    };
}

/// Real and imaginary part. The order that it derives is not used.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
struct Complex<F>(F, F);

fractions!(f32 as u32, f64 as u64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_lead_to_the_operations_and_types_they_stand_for() {
        for number in 0..19 {
            assert_eq!(Operator::of(number).map(|found| found as u32), Some(number));
        }
        assert_eq!(Operator::of(19), None);
        for number in 0..32 {
            let found = Element::of(number).map(|found| found as u32);
            let offered = number < 12 || number == 14 || number == 15;
            assert_eq!(found, offered.then_some(number));
        }
    }

    #[test]
    fn signs_count_where_the_type_has_them() {
        let minus_one = u128::from(u32::MAX);
        let min = |element| combine(Operator::Min, element, 1, minus_one, 0);
        assert_eq!(min(Element::I32), Some(minus_one));
        assert_eq!(min(Element::U32), None, "the largest number stays");
        let sum = combine(Operator::Sum, Element::U8, 200, 100, 0);
        assert_eq!(sum, Some(44), "sums wrap");
        let product = combine(Operator::Prod, Element::I64, u128::from(u64::MAX), 7, 0);
        assert_eq!(product, Some(u128::from((-7_i64) as u64)));
    }

    #[test]
    fn fractions_and_complex_numbers_are_calculated_as_such() {
        let sum = combine(
            Operator::Sum,
            Element::F64,
            1.5_f64.bits(),
            2.25_f64.bits(),
            0,
        );
        assert_eq!(sum, Some(3.75_f64.bits()));
        let (a, b) = (Complex(1.0_f32, 2.0), Complex(3.0_f32, -1.0));
        let product = combine(Operator::Prod, Element::ComplexF32, a.bits(), b.bits(), 0);
        assert_eq!(product, Some(Complex(5.0_f32, 5.0).bits()));
        let both = combine(
            Operator::LogicalAnd,
            Element::F32,
            0.5_f32.bits(),
            2.0_f32.bits(),
            0,
        );
        assert_eq!(both, Some(1.0_f32.bits()));
        let nan = combine(
            Operator::Max,
            Element::F64,
            f64::NAN.bits(),
            1.0_f64.bits(),
            0,
        );
        assert_eq!(nan, None, "nothing is larger than what is no number");
    }

    #[test]
    fn swaps_compare_the_comparand_with_what_is_there() {
        let swaps = |operator| combine(operator, Element::I16, 5, 9, 4).is_some();
        let each = [
            (Operator::SwapIfEqual, false),
            (Operator::SwapIfNotEqual, true),
            (Operator::SwapIfLessOrEqual, true),
            (Operator::SwapIfLess, true),
            (Operator::SwapIfGreaterOrEqual, false),
            (Operator::SwapIfGreater, false),
        ];
        for (operator, expected) in each {
            assert_eq!(swaps(operator), expected, "{operator:?}");
        }
        let masked = combine(Operator::MaskedSwap, Element::U8, 0xF0, 0x0A, 0x0F);
        assert_eq!(masked, Some(0xFA));
    }

    #[test]
    fn what_has_no_meaning_is_not_allowed() {
        assert!(!Element::F64.allows(Operator::BitXor));
        assert!(!Element::ComplexF32.allows(Operator::Max));
        assert!(!Element::ComplexF64.allows(Operator::SwapIfLess));
        assert!(Element::ComplexF64.allows(Operator::SwapIfEqual));
        assert!(Element::U128.allows(Operator::MaskedSwap));
    }
}
