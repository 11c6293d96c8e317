// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Functions that refuse every call, of any list of arguments: for calls that are not offered, and
//! for all calls on objects that a child process inherited. Used by the tables of calls. Source:
//! fi_errno(3).

use std::ffi::c_int;

use weft_fabric_sys::errno::FI_ENOSYS;

/// Why calls are refused.
pub(crate) trait Reason {
    /// libfabric's number, positive. Called for each refused call.
    fn code() -> c_int;
}

/// Calls that this provider does not offer.
pub(crate) struct NotOffered;

impl Reason for NotOffered {
    fn code() -> c_int {
        FI_ENOSYS
    }
}

/// An answer that says no.
pub(crate) trait No {
    fn no(code: c_int) -> Self;
}

impl No for c_int {
    fn no(code: c_int) -> Self {
        -code
    }
}

impl No for isize {
    fn no(code: c_int) -> Self {
        -(code as isize)
    }
}

/// Counters have no way to say so: they stand at 0.
impl No for u64 {
    fn no(_: c_int) -> Self {
        0
    }
}

/// What refuses calls of the function type `F`.
pub(crate) trait Refusal<F> {
    const ANSWER: F;
}

/// For functions with these arguments, whatever they answer.
macro_rules! refusal {
    ($refused:ident: $($argument:ident)*) => {
        unsafe extern "C" fn $refused<W: Reason, R: No, $($argument),*>($(_: $argument),*) -> R {
            R::no(W::code())
        }

        impl<W: Reason, R: No, $($argument),*> Refusal<unsafe extern "C" fn($($argument),*) -> R>
            for W
        {
            const ANSWER: unsafe extern "C" fn($($argument),*) -> R =
                $refused::<W, R, $($argument),*>;
        }
    };
}

refusal! { refused_1: A }
refusal! { refused_2: A B }
refusal! { refused_3: A B C }
refusal! { refused_4: A B C D }
refusal! { refused_5: A B C D E }
refusal! { refused_6: A B C D E F }
refusal! { refused_7: A B C D E F G }
refusal! { refused_8: A B C D E F G H }
refusal! { refused_9: A B C D E F G H I }
refusal! { refused_10: A B C D E F G H I J }
refusal! { refused_11: A B C D E F G H I J K }
refusal! { refused_12: A B C D E F G H I J K L }
refusal! { refused_13: A B C D E F G H I J K L M }
refusal! { refused_14: A B C D E F G H I J K L M N }
refusal! { refused_15: A B C D E F G H I J K L M N O }
refusal! { refused_16: A B C D E F G H I J K L M N O P }
