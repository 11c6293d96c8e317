// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of [`super`]: what is a page, what is refused, and what breaks off.

use std::time::Duration;

use super::*;

fn listing(inside: &str) -> String {
    format!(
        "<?xml version=\"1.0\"?>\n<ListBucketResult xmlns=\"http://s3.amazonaws.com/\">\
         {inside}</ListBucketResult>"
    )
}

#[test]
fn page_has_objects_groups_and_the_next_token() {
    let text = listing(
        "<Name>b</Name><Prefix>d/</Prefix><KeyCount>3</KeyCount>\n\
         <Contents>\n  <Key>d/a%20b+c</Key>\
         <LastModified>2026-11-24T10:00:00.500Z</LastModified>\
         <ETag>&quot;1&amp;2&#34;</ETag><Size>7</Size><StorageClass>STANDARD</StorageClass>\
         <Owner><ID>x</ID><Key><Key>deep</Key></Key></Owner></Contents>\
         <Contents><Key>d/z</Key><Size>-1</Size><StorageClass>GLACIER</StorageClass></Contents>\
         <CommonPrefixes><Prefix>d/%C3%BC/</Prefix></CommonPrefixes>\
         <EncodingType>url</EncodingType><NextContinuationToken>t&lt;1</NextContinuationToken>",
    );
    let page = page(text.as_bytes()).unwrap();
    let (key, info) = &page.objects[0];
    assert_eq!((&**key, info.size_bytes), ("d/a b c", 7));
    assert_eq!(info.etag.as_str(), "\"1&2\"");
    let day = SystemTime::UNIX_EPOCH + Duration::from_millis(1_795_514_400_500);
    assert_eq!((info.modified, info.is_archived), (day, false));
    let (key, info) = &page.objects[1];
    assert_eq!((&**key, info.size_bytes), ("d/z", 0));
    assert_eq!((info.etag.as_str(), info.is_archived), ("", true));
    assert_eq!(info.modified, SystemTime::UNIX_EPOCH);
    assert_eq!(page.objects.len(), 2);
    assert_eq!(page.folders, ["d/ü/"]);
    assert_eq!(page.next.as_deref(), Some("t<1"));
}

#[test]
fn keys_stay_as_they_are_without_the_encoding() {
    let text = listing("<Contents><Key>a%20b&#x41;<![CDATA[<c>]]></Key></Contents>");
    let page = page(text.as_bytes()).unwrap();
    assert_eq!(page.objects[0].0, "a%20bA<c>");
    assert_eq!(page.next, None);
}

fn refused(body: &[u8]) -> ErrorMetadata {
    match page(body) {
        Err(NoPage::Refused(refused)) => refused,
        other => panic!("{}: {other:?}", String::from_utf8_lossy(body)),
    }
}

#[test]
fn what_is_no_page_is_refused_and_says_why() {
    let error = "<Error><Code>SlowDown</Code><Message>a &amp; b</Message></Error>";
    let wrong_size = listing("<Contents><Key>a</Key><Size>x</Size></Contents>");
    let wrong_time = listing("<Contents><LastModified>now</LastModified></Contents>");
    let no_token = listing("<IsTruncated>true</IsTruncated><NextContinuationToken/>");
    let reference = listing("<Contents><Key>a & b</Key></Contents>");
    for (body, code, words) in [
        (error, "SlowDown", "a & b"),
        (&wrong_size, "WrongAnswer", "`x` is no size"),
        (&wrong_time, "WrongAnswer", "`now` is no time"),
        (&no_token, "WrongAnswer", "more follows, but not how to ask"),
        (&reference, "WrongAnswer", "reference"),
        ("gateway", "WrongAnswer", "no element ListBucketResult"),
        ("<html><p>proxy</p></html>", "WrongAnswer", "no element"),
    ] {
        let refused = refused(body.as_bytes());
        assert_eq!(refused.code(), Some(code), "{body}");
        assert!(refused.message().unwrap().contains(words), "{refused}");
    }
    let bytes = refused(b"<ListBucketResult><Name>\xff</Name></ListBucketResult>");
    assert!(bytes.message().unwrap().contains("utf-8"), "{bytes}");
}

#[test]
fn code_counts_where_the_rest_of_an_error_cannot_be_read() {
    for rest in ["<Message>a & b</Message></Error>", "", "<Message>\u{fc}"] {
        let body = format!("<Error><Code>SlowDown</Code>{rest}");
        assert_eq!(refused(body.as_bytes()).code(), Some("SlowDown"), "{rest}");
        let not_whole = &body.as_bytes()[..body.len() - usize::from(!body.is_ascii())];
        assert_eq!(refused(not_whole).code(), Some("SlowDown"), "{rest}");
    }
}

#[test]
fn page_that_breaks_off_anywhere_is_known_to() {
    let whole = "<?xml version=\"1.0\"?><ListBucketResult a=\"b\"><Contents>\
        <Key>\u{fc}</Key><ETag>&quot;1&quot;</ETag></Contents><!-- c --></ListBucketResult>";
    page(whole.as_bytes()).unwrap();
    for at in 0..whole.len() {
        let cut = page(&whole.as_bytes()[..at]);
        // What has begun no element yet may be anything.
        let is_start = (1..=24).contains(&at);
        assert!(matches!(cut, Err(NoPage::Cut)) || is_start, "{at}: {cut:?}");
        assert!(cut.is_err(), "{at}");
    }
}

#[test]
fn error_quotes_little_of_the_answer() {
    let size = "\u{fc}".repeat(100_000);
    let body = listing(&format!("<Contents><Size>{size}</Size></Contents>"));
    assert!(refused(body.as_bytes()).message().unwrap().len() < 300);
}

#[test]
fn token_counts_where_more_follows() {
    for (inside, next) in [
        ("<NextContinuationToken></NextContinuationToken>", None),
        ("<NextContinuationToken/>", None),
        (
            "<NextContinuationToken>t</NextContinuationToken>",
            Some("t"),
        ),
        (
            "<IsTruncated>false</IsTruncated><NextContinuationToken>t</NextContinuationToken>",
            None,
        ),
        (
            "<IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken>",
            Some("t"),
        ),
    ] {
        let page = page(listing(inside).as_bytes()).unwrap();
        assert_eq!(page.next.as_deref(), next, "{inside}");
    }
}

#[test]
fn refusal_in_no_xml_has_no_words() {
    for body in ["", "gateway", "<html><Code>1</Code></html>"] {
        assert_eq!(refusal(body.as_bytes()).code(), None, "{body}");
    }
    let said = refusal(b"<Error><Code>NoSuchBucket</Code><BucketName>");
    assert_eq!(said.code(), Some("NoSuchBucket"));
}

#[test]
fn empty_listing_is_a_page() {
    let page = page(listing("<Name>b</Name><KeyCount>0</KeyCount>").as_bytes()).unwrap();
    assert!(page.objects.is_empty() && page.folders.is_empty());
    assert!(super::page(b"<ListBucketResult></ListBucketResult>").is_ok());
    assert!(super::page(b"<ListBucketResult xmlns=\"x\"/>").is_ok());
}
