// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One list of members and offsets for each C structure, checked by the compiler and, in a test,
//! against C headers.
//!
//! Used by every module of this crate that declares a structure.

/// The memory layout that a structure of this crate promises to C.
pub trait Layout {
    /// How C calls the structure, for example `struct fi_info`.
    const C_NAME: &'static str;
    /// Its size in bytes in the newest layout.
    const SIZE_BYTES: usize;
    /// Its members by their C names, with their offsets in bytes, in order.
    const MEMBERS: &'static [(&'static str, usize)];
}

/// Declares the layout of a structure and has the compiler check it.
///
/// `layout! { FiMsg = "struct fi_msg", 48: msg_iov 0, desc 8, ... }`
macro_rules! layout {
    ($type:ident = $c_name:literal, $size:literal: $($member:ident $offset:literal),+ $(,)?) => {
        const _: () = {
            assert!(core::mem::size_of::<$type>() == $size);
            $( assert!(core::mem::offset_of!($type, $member) == $offset); )+
        };
        impl $crate::Layout for $type {
            const C_NAME: &'static str = $c_name;
            const SIZE_BYTES: usize = $size;
            const MEMBERS: &'static [(&'static str, usize)] =
                &[$((stringify!($member), $offset)),+];
        }
    };
}

/// Declares the layout of a table of functions: `size`, then one pointer for each name, without
/// gaps.
///
/// `ops_layout! { FiOpsMr = "struct fi_ops_mr": reg, regv, regattr }`
macro_rules! ops_layout {
    ($type:ident = $c_name:literal: $($member:ident),+ $(,)?) => {
        impl $crate::Layout for $type {
            const C_NAME: &'static str = $c_name;
            const SIZE_BYTES: usize = core::mem::size_of::<$type>();
            const MEMBERS: &'static [(&'static str, usize)] =
                &[("size", 0), $((stringify!($member), core::mem::offset_of!($type, $member))),+];
        }
        const _: () = {
            let members = <$type as $crate::Layout>::MEMBERS;
            let mut index = 0;
            while index < members.len() {
                assert!(members[index].1 == index * core::mem::size_of::<usize>());
                index += 1;
            }
            assert!(core::mem::size_of::<$type>() == index * core::mem::size_of::<usize>());
        };
    };
}
