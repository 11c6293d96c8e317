// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Operations on integers, floating point and complex numbers. Named in table.rs; MPI 4.1, 6.9.2.
//!
//! Whether integers are signed matters for order alone: all else is done on unsigned ones.

use super::combine::Combine;

/// A complex number as C and Fortran store it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Complex<T> {
    re: T,
    im: T,
}

/// A truth value of Fortran. What is not 0 is true; which word a compiler writes is its own affair.
#[repr(transparent)]
#[derive(Clone, Copy, Debug)]
pub struct Logical(u32);

impl Logical {
    fn is_true(self) -> bool {
        self.0 != 0
    }
}

macro_rules! operations {
    ($($name:ident { $($number:ty),* } |$a:ident, $b:ident| $result:expr;)*) => {
        $(
            #[doc = concat!("`", stringify!($result), "`.")]
            #[derive(Clone, Copy, Debug)]
            pub struct $name;
            $(
                impl Combine<$number> for $name {
                    #[inline(always)]
                    fn combine($a: $number, $b: $number) -> $number {
                        $result
                    }
                }
            )*
        )*
    };
}

operations! {
    WrappingSum { u8, u16, u32, u64 } |a, b| a.wrapping_add(b);
    WrappingProduct { u8, u16, u32, u64 } |a, b| a.wrapping_mul(b);
    Sum { f32, f64 } |a, b| a + b;
    Product { f32, f64 } |a, b| a * b;
    Min { i8, u8, i16, u16, i32, u32, i64, u64, f32, f64 } |a, b| if a < b { a } else { b };
    Max { i8, u8, i16, u16, i32, u32, i64, u64, f32, f64 } |a, b| if a > b { a } else { b };
    LogicalAnd { u8, u16, u32, u64 } |a, b| ((a != 0) & (b != 0)).into();
    LogicalOr { u8, u16, u32, u64 } |a, b| ((a != 0) | (b != 0)).into();
    LogicalXor { u8, u16, u32, u64 } |a, b| ((a != 0) ^ (b != 0)).into();
    BitAnd { u8, u16, u32, u64 } |a, b| a & b;
    BitOr { u8, u16, u32, u64 } |a, b| a | b;
    BitXor { u8, u16, u32, u64 } |a, b| a ^ b;
    ComplexSum { Complex<f32>, Complex<f64> } |a, b| Complex {
        re: a.re + b.re,
        im: a.im + b.im,
    };
    ComplexProduct { Complex<f32>, Complex<f64> } |a, b| Complex {
        re: a.re * b.re - a.im * b.im,
        im: a.re * b.im + a.im * b.re,
    };
}

impl Combine<Logical> for LogicalAnd {
    #[inline(always)]
    fn combine(a: Logical, b: Logical) -> Logical {
        if a.is_true() { b } else { a }
    }
}

impl Combine<Logical> for LogicalOr {
    #[inline(always)]
    fn combine(a: Logical, b: Logical) -> Logical {
        if a.is_true() { a } else { b }
    }
}

impl Combine<Logical> for LogicalXor {
    #[inline(always)]
    fn combine(a: Logical, b: Logical) -> Logical {
        match (a.is_true(), b.is_true()) {
            (true, true) => Logical(0),
            (_, true) => b,
            (_, false) => a,
        }
    }
}
