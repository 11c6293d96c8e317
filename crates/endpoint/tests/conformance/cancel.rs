// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Laws of fi_cancel.

use weft_endpoint::{Error, flags};

use crate::pair::*;

pub fn a_canceled_receive_ends_in_an_error_and_matches_nothing<F: Fabric>() {
    let mut pair = Pair::<F>::open();
    let buffers = [room(4), room(4), room(4)];
    for (context, buffer) in buffers.iter().enumerate() {
        pair.receive(B, want_tag(6, context), buffer);
    }
    pair.receive(B, want_plain(3), &room(4));
    let endpoint = pair.sides[B].endpoint;
    for (context, kind) in [(0, flags::TAGGED), (3, flags::MSG)] {
        pair.sides[B]
            .domain
            .endpoint(endpoint)
            .unwrap()
            .cancel(context)
            .unwrap();
        let failed = pair.failure(B);
        assert_eq!(
            (failed.error, failed.completion.context),
            (Error::Canceled, context)
        );
        assert_eq!(failed.completion.flags, flags::RECV | kind);
    }
    pair.send(A, tagged(6, 0), &[1, 2, 3, 4]);
    assert_eq!(pair.success(B).context, 1);
    assert_eq!(bytes_in(&buffers[0]), [0; 4]);
    pair.send(A, plain(0), &[5]);
    pair.quiet(B);
}

pub fn what_is_not_posted_cannot_be_canceled<F: Fabric>() {
    let mut pair = Pair::<F>::open();
    let endpoint = pair.sides[B].endpoint;
    assert_eq!(
        pair.sides[B].domain.endpoint(endpoint).unwrap().cancel(1),
        Err(Error::NoSuch)
    );
    pair.receive(B, want_tag(6, 1), &room(4));
    pair.send(A, tagged(6, 2), &[1]);
    pair.success(B);
    pair.success(A);
    assert_eq!(
        pair.sides[B].domain.endpoint(endpoint).unwrap().cancel(1),
        Err(Error::NoSuch),
        "it was matched"
    );
    pair.quiet(B);
}
