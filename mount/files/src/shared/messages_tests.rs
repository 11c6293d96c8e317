// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of [`super`].

use std::time::UNIX_EPOCH;

use proptest::prelude::*;
use weft_store::ETag;

use super::*;

const FILE: FileAt = FileAt {
    session: 7,
    number: 9,
};

fn questions() -> Vec<Ask> {
    let mode = Mode {
        writes: true,
        truncates: true,
        is_new: true,
        ..Mode::default()
    };
    let names = [
        ByName::Open {
            mode,
            creates: true,
        },
        ByName::Look,
        ByName::Unlink,
        ByName::Changes,
        ByName::Made,
        ByName::SetTime(Time::from_bytes([255; 8])),
        ByName::Moves,
    ];
    let names = names.map(|what| Ask::Name {
        node: 3,
        what,
        key: "a/ü".to_owned(),
    });
    let calls = [Call::Flush, Call::Sync, Call::Resize(5), Call::Close];
    let more = [
        Call::Look,
        Call::Wait,
        Call::SetTime(Time::from_bytes([9; 8])),
    ];
    let calls = calls.into_iter().chain(more);
    let calls = calls.map(|call| Ask::Call {
        file: FILE,
        number: 4,
        call,
    });
    let writes = [Some(47_008), None].map(|offset| Ask::Write {
        file: FILE,
        number: 1,
        offset,
        data: Bytes::from_static(b"data"),
    });
    let read = Ask::Read {
        file: FILE,
        offset: 1,
        size: 2,
    };
    let held = Ask::Held {
        session: 1,
        numbers: vec![2, 3],
    };
    let rest = [read, held].into_iter().chain(writes);
    names.into_iter().chain(calls).chain(rest).collect()
}

#[test]
fn questions_and_answers_are_read_as_they_were_written() {
    for question in questions() {
        assert!(is_shared(&question.write()));
        assert_eq!(Ask::read(question.write()), Some(question));
    }
    let written = Seen {
        is_draft: true,
        info: ObjectInfo {
            size_bytes: 7,
            etag: ETag::new("\"2\""),
            modified: UNIX_EPOCH + Duration::from_nanos(1_700_000_000_123_456_789),
            is_archived: false,
        },
    };
    let mut bytes = BytesMut::new();
    put_seen(&mut bytes, &written);
    let bytes = bytes.freeze();
    assert_eq!(seen(&mut bytes.clone()), Some(written.clone()));
    let found = [&[FOLLOWS], &*bytes].concat();
    assert_eq!(looked(found.into()), Ok(Looked::Seen(written)));
    let age = Duration::from_millis(70_000);
    assert_eq!(looked(not_made(age)), Ok(Looked::NotMade(age)));
    for reason in REASONS {
        let fault = Fault::because(reason, "why");
        assert_eq!(answered(refused(&fault)), Err(fault));
    }
}

proptest! {
    #[test]
    fn bytes_of_any_kind_are_read_or_refused(
        noise in prop::collection::vec(any::<u8>(), 0..200),
        which in 0..18usize,
        cut in 0..100usize,
    ) {
        let question = questions()[which].write();
        let mut bytes = question[..question.len().saturating_sub(cut)].to_vec();
        bytes.extend(&noise);
        let _ = Ask::read(bytes.into());
        let _ = Ask::read(noise.clone().into());
        let _ = answered(noise.clone().into());
        let _ = looked(noise.clone().into());
        let _ = seen(&mut noise.into());
    }
}
