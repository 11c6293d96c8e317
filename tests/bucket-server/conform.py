#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Asks an S3 server what the mount relies on, through boto3, and prints a line for each law.

conform.py URL [--without NAME,...]

URL is http://127.0.0.1:PORT; credentials come from the environment. The server needs a bucket
`conform` without objects. The last line is `N passed, N failed, N skipped`; the exit code is 1
where one failed.
"""

import argparse
import hashlib
import sys
import threading
import urllib.request

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

BUCKET = "conform"
PART = 5 << 20
LAWS = []


def law(function):
    """Adds a law; its name is the function's."""
    LAWS.append(function)
    return function


def client(url, **settings):
    """A client of the server, with further settings of botocore."""
    settings = {"s3": {"addressing_style": "path"}, "retries": {"max_attempts": 1}, **settings}
    return boto3.client("s3", endpoint_url=url, region_name="us-east-1", config=Config(**settings))


def refused(code, call, **arguments):
    """The call is refused with this code, as a name or a status."""
    try:
        call(Bucket=BUCKET, **arguments)
    except ClientError as error:
        status = error.response["ResponseMetadata"]["HTTPStatusCode"]
        found = (error.response["Error"]["Code"], str(status), status)
        assert code in found, f"refused with {found}, wanted {code}"
    else:
        raise AssertionError(f"was not refused, wanted {code}")


def read(s3, key, **arguments):
    return s3.get_object(Bucket=BUCKET, Key=key, **arguments)["Body"].read()


def put(s3, key, body=b"", **arguments):
    return s3.put_object(Bucket=BUCKET, Key=key, Body=body, **arguments)["ETag"]


@law
def an_object_comes_back_with_its_metadata(s3):
    etag = put(s3, "one", b"hello", Metadata={"mode": "0644"}, ContentType="text/plain")
    assert etag == f'"{hashlib.md5(b"hello").hexdigest()}"', etag
    head = s3.head_object(Bucket=BUCKET, Key="one")
    assert head["ContentLength"] == 5 and head["ETag"] == etag
    assert head["Metadata"] == {"mode": "0644"} and head["ContentType"] == "text/plain"
    assert read(s3, "one") == b"hello"


@law
def strange_keys_come_back_as_they_are(s3):
    keys = ["a b", "ä/ö+%25", "d//e", "dir/", "x&<y>'\"", "tab\there", "..", "q?a=b#c", "€" * 300]
    for key in keys:
        put(s3, "strange/" + key, key.encode())
    listed = s3.list_objects_v2(Bucket=BUCKET, Prefix="strange/", EncodingType="url")
    listed = sorted(entry["Key"] for entry in listed["Contents"])
    listed = [urllib.request.unquote(key) for key in listed]
    assert sorted(listed) == sorted("strange/" + key for key in keys), listed
    for key in keys:
        assert read(s3, "strange/" + key) == key.encode(), key


@law
def ranges_give_their_bytes(s3):
    put(s3, "range", bytes(range(100)))
    cases = [("0-9", 0, 10), ("90-", 90, 100), ("-5", 95, 100), ("50-999", 50, 100)]
    for text, first, end in cases:
        answer = s3.get_object(Bucket=BUCKET, Key="range", Range=f"bytes={text}")
        assert answer["Body"].read() == bytes(range(first, end)), text
        assert answer["ContentRange"] == f"bytes {first}-{end - 1}/100"
    refused("InvalidRange", s3.get_object, Key="range", Range="bytes=100-")


@law
def reads_keep_their_conditions(s3):
    etag = put(s3, "condition", b"first")
    assert read(s3, "condition", IfMatch=etag) == b"first"
    refused("304", s3.get_object, Key="condition", IfNoneMatch=etag)
    put(s3, "condition", b"second")
    refused("PreconditionFailed", s3.get_object, Key="condition", IfMatch=etag)
    assert read(s3, "condition", IfNoneMatch=etag) == b"second"
    refused("412", s3.head_object, Key="condition", IfMatch=etag)
    refused("NoSuchKey", s3.get_object, Key="not there")
    refused("404", s3.head_object, Key="not there")


@law
def writes_keep_their_conditions(s3):
    etag = put(s3, "new", b"1", IfNoneMatch="*")
    refused("PreconditionFailed", s3.put_object, Key="new", Body=b"2", IfNoneMatch="*")
    refused("PreconditionFailed", s3.put_object, Key="new", Body=b"2", IfMatch='"0"')
    put(s3, "new", b"2", IfMatch=etag)
    assert read(s3, "new") == b"2"
    refused("404", s3.put_object, Key="never", Body=b"2", IfMatch=etag)


@law
def one_of_many_writers_makes_the_object(s3):
    made = []

    def write(number):
        try:
            put(s3, "race", str(number).encode(), IfNoneMatch="*")
            made.append(number)
        except ClientError:
            pass

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert len(made) == 1 and read(s3, "race") == str(made[0]).encode(), made


@law
def deletes_keep_their_conditions(s3):
    etag = put(s3, "gone", b"1")
    refused("PreconditionFailed", s3.delete_object, Key="gone", IfMatch='"0"')
    s3.delete_object(Bucket=BUCKET, Key="gone", IfMatch=etag)
    refused("404", s3.head_object, Key="gone")


@law
def deleting_nothing_succeeds(s3):
    s3.delete_object(Bucket=BUCKET, Key="was never there")


@law
def many_deletes_in_one_call(s3):
    for number in range(5):
        put(s3, f"many/{number}")
    names = [{"Key": f"many/{number}"} for number in range(5)] + [{"Key": "many/never"}]
    answer = s3.delete_objects(Bucket=BUCKET, Delete={"Objects": names})
    assert len(answer["Deleted"]) == 6 and "Errors" not in answer
    assert s3.list_objects_v2(Bucket=BUCKET, Prefix="many/")["KeyCount"] == 0


def fill_lists(s3):
    if s3.list_objects_v2(Bucket=BUCKET, Prefix="list/")["KeyCount"] == 0:
        for name in ["a", "b/1", "b/2", "b/3/x", "b!", "c", "d/1", "e"]:
            put(s3, "list/" + name)


def names(answer):
    keys = [entry["Key"][5:] for entry in answer.get("Contents", [])]
    return keys, [entry["Prefix"][5:] for entry in answer.get("CommonPrefixes", [])]


@law
def lists_are_in_order_and_fold_folders(s3):
    fill_lists(s3)
    answer = s3.list_objects_v2(Bucket=BUCKET, Prefix="list/")
    assert names(answer)[0] == ["a", "b!", "b/1", "b/2", "b/3/x", "c", "d/1", "e"], names(answer)
    answer = s3.list_objects_v2(Bucket=BUCKET, Prefix="list/", Delimiter="/")
    assert names(answer) == (["a", "b!", "c", "e"], ["b/", "d/"]), names(answer)
    answer = s3.list_objects_v2(Bucket=BUCKET, Prefix="list/b/", Delimiter="/")
    assert names(answer) == (["b/1", "b/2"], ["b/3/"]), names(answer)
    answer = s3.list_objects_v2(Bucket=BUCKET, Prefix="list/", StartAfter="list/c")
    assert names(answer)[0] == ["d/1", "e"]


@law
def pages_of_any_size_give_the_whole_list(s3):
    fill_lists(s3)
    for size in range(1, 8):
        keys, prefixes, pages = [], [], 0
        pager = s3.get_paginator("list_objects_v2")
        settings = {"PageSize": size}
        for page in pager.paginate(
            Bucket=BUCKET, Prefix="list/", Delimiter="/", PaginationConfig=settings
        ):
            found = names(page)
            assert page["KeyCount"] == len(found[0]) + len(found[1]) <= size
            keys, prefixes, pages = keys + found[0], prefixes + found[1], pages + 1
        assert (keys, prefixes) == (["a", "b!", "c", "e"], ["b/", "d/"]), (size, keys, prefixes)
        assert pages == -(-6 // size), (size, pages)


@law
def the_older_list_gives_the_same(s3):
    fill_lists(s3)
    keys, prefixes = [], []
    settings = {"PageSize": 2}
    pager = s3.get_paginator("list_objects")
    for page in pager.paginate(
        Bucket=BUCKET, Prefix="list/", Delimiter="/", PaginationConfig=settings
    ):
        found = names(page)
        keys, prefixes = keys + found[0], prefixes + found[1]
    assert (keys, prefixes) == (["a", "b!", "c", "e"], ["b/", "d/"]), (keys, prefixes)


def upload(s3, key, parts, **arguments):
    """Uploads parts; the call that completes gets the arguments."""
    begun = s3.create_multipart_upload(Bucket=BUCKET, Key=key)["UploadId"]
    done = []
    for number, part in enumerate(parts, 1):
        answer = s3.upload_part(
            Bucket=BUCKET, Key=key, UploadId=begun, PartNumber=number, Body=part
        )
        done.append({"PartNumber": number, "ETag": answer["ETag"]})
    return s3.complete_multipart_upload(
        Bucket=BUCKET, Key=key, UploadId=begun, MultipartUpload={"Parts": done}, **arguments
    )


@law
def parts_make_an_object(s3):
    parts = [b"a" * PART, b"b" * PART, b"tail"]
    answer = upload(s3, "parts", parts)
    sums = b"".join(hashlib.md5(part).digest() for part in parts)
    assert answer["ETag"] == f'"{hashlib.md5(sums).hexdigest()}-3"', answer["ETag"]
    assert read(s3, "parts") == b"".join(parts)
    assert read(s3, "parts", PartNumber=3) == b"tail"


@law
def completion_keeps_its_conditions(s3):
    etag = upload(s3, "completed", [b"1"], IfNoneMatch="*")["ETag"]
    for arguments in [{"IfNoneMatch": "*"}, {"IfMatch": '"0"'}]:
        try:
            upload(s3, "completed", [b"2"], **arguments)
        except ClientError as error:
            assert error.response["Error"]["Code"] == "PreconditionFailed", error
        else:
            raise AssertionError(f"{arguments} was not kept")
    upload(s3, "completed", [b"3"], IfMatch=etag)
    assert read(s3, "completed") == b"3"


@law
def wrong_completions_are_refused(s3):
    begun = s3.create_multipart_upload(Bucket=BUCKET, Key="wrong")["UploadId"]
    part = {"Bucket": BUCKET, "Key": "wrong", "UploadId": begun}
    etags = [s3.upload_part(**part, PartNumber=n, Body=b"x")["ETag"] for n in (1, 2)]
    wrong = {"Key": "wrong", "UploadId": begun}

    def listed(*numbers):
        return {"Parts": [{"PartNumber": n, "ETag": etags[n - 1]} for n in numbers]}

    complete = s3.complete_multipart_upload
    refused("EntityTooSmall", complete, **wrong, MultipartUpload=listed(1, 2))
    refused("InvalidPartOrder", complete, **wrong, MultipartUpload=listed(2, 1))
    missing = {"Parts": [{"PartNumber": 7, "ETag": etags[0]}]}
    refused("InvalidPart", complete, **wrong, MultipartUpload=missing)
    refused("NoSuchUpload", complete, Key="wrong", UploadId="no", MultipartUpload=listed(1))
    s3.abort_multipart_upload(**part)


@law
def unfinished_uploads_are_listed_until_aborted(s3):
    begun = [
        s3.create_multipart_upload(Bucket=BUCKET, Key=f"open/{key}")["UploadId"] for key in "aab"
    ]
    s3.upload_part(Bucket=BUCKET, Key="open/b", UploadId=begun[2], PartNumber=4, Body=b"four")
    parts = s3.list_parts(Bucket=BUCKET, Key="open/b", UploadId=begun[2])["Parts"]
    assert [(part["PartNumber"], part["Size"]) for part in parts] == [(4, 4)]
    listed = s3.list_multipart_uploads(Bucket=BUCKET, Prefix="open/")["Uploads"]
    assert sorted(one["UploadId"] for one in listed) == sorted(begun)
    for key, one in zip("aab", begun):
        s3.abort_multipart_upload(Bucket=BUCKET, Key=f"open/{key}", UploadId=one)
    assert "Uploads" not in s3.list_multipart_uploads(Bucket=BUCKET, Prefix="open/")


@law
def copies_keep_metadata_and_the_conditions_on_their_source(s3):
    etag = put(s3, "source", b"bytes", Metadata={"a": "1"})
    source = f"{BUCKET}/source"
    s3.copy_object(Bucket=BUCKET, Key="copy", CopySource=source, CopySourceIfMatch=etag)
    assert s3.head_object(Bucket=BUCKET, Key="copy")["Metadata"] == {"a": "1"}
    s3.copy_object(
        Bucket=BUCKET,
        Key="copy",
        CopySource=source,
        Metadata={"b": "2"},
        MetadataDirective="REPLACE",
    )
    assert s3.head_object(Bucket=BUCKET, Key="copy")["Metadata"] == {"b": "2"}
    copy = s3.copy_object
    refused("PreconditionFailed", copy, Key="copy", CopySource=source, CopySourceIfMatch='"0"')
    refused("NoSuchKey", copy, Key="copy", CopySource=f"{BUCKET}/no source")
    refused("InvalidRequest", copy, Key="source", CopySource=source)


@law
def copies_keep_the_conditions_on_their_destination(s3):
    put(s3, "from", b"bytes")
    source = f"{BUCKET}/from"
    s3.copy_object(Bucket=BUCKET, Key="to", CopySource=source, IfNoneMatch="*")
    etag = s3.head_object(Bucket=BUCKET, Key="to")["ETag"]
    copy = s3.copy_object
    refused("PreconditionFailed", copy, Key="to", CopySource=source, IfNoneMatch="*")
    refused("PreconditionFailed", copy, Key="to", CopySource=source, IfMatch='"0"')
    s3.copy_object(Bucket=BUCKET, Key="to", CopySource=source, IfMatch=etag)


@law
def parts_can_be_ranges_of_objects(s3):
    put(s3, "large", b"0" * PART + b"1" * 10)
    begun = s3.create_multipart_upload(Bucket=BUCKET, Key="joined")["UploadId"]
    done = []
    for number, text in [(1, f"0-{PART - 1}"), (2, f"{PART - 2}-{PART + 3}")]:
        answer = s3.upload_part_copy(
            Bucket=BUCKET,
            Key="joined",
            UploadId=begun,
            PartNumber=number,
            CopySource=f"{BUCKET}/large",
            CopySourceRange=f"bytes={text}",
        )
        done.append({"PartNumber": number, "ETag": answer["CopyPartResult"]["ETag"]})
    s3.complete_multipart_upload(
        Bucket=BUCKET, Key="joined", UploadId=begun, MultipartUpload={"Parts": done}
    )
    assert read(s3, "joined") == b"0" * PART + b"001111"


@law
def checksums_are_verified_kept_and_given_back(s3):
    # The check values of the catalogue of CRCs, and of sha1sum.
    known = {
        "ChecksumCRC32": "y/Q5Jg==",
        "ChecksumCRC32C": "4waSgw==",
        "ChecksumCRC64NVME": "rosUhgp5mIg=",
        "ChecksumSHA1": "98O8HYCOBHMq32eZZczDTKeuNEE=",
    }
    for name, value in known.items():
        put(s3, "sum", b"123456789", **{name: value})
        head = s3.head_object(Bucket=BUCKET, Key="sum", ChecksumMode="ENABLED")
        assert head.get(name) == value, (name, head)
    wrong = {"Key": "sum", "Body": b"123456780"}
    refused("400", s3.put_object, **wrong, ChecksumCRC32="y/Q5Jg==")
    refused("400", s3.put_object, **wrong, ContentMD5="JfnnlDI7RTiF9RgfGzpxiA==")
    assert read(s3, "sum") == b"123456789"


@law
def wrong_keys_are_refused(s3, url):
    for access, secret, code in [
        ("nobody", "x", "InvalidAccessKeyId"),
        (None, "x", "SignatureDoesNotMatch"),
    ]:
        session = boto3.Session(
            aws_access_key_id=access or boto3.Session().get_credentials().access_key,
            aws_secret_access_key=secret,
            region_name="us-east-1",
        )
        other = session.client("s3", endpoint_url=url, config=Config(retries={"max_attempts": 1}))
        refused(code, other.get_object, Key="one")
        refused("403", other.head_object, Key="one")


@law
def presigned_requests_are_taken(s3):
    put(s3, "signed", b"by query")
    arguments = {"Bucket": BUCKET, "Key": "signed"}
    link = s3.generate_presigned_url("get_object", Params=arguments, ExpiresIn=60)
    with urllib.request.urlopen(link) as answer:
        assert answer.read() == b"by query"


@law
def missing_buckets_are_told_apart(s3):
    assert s3.head_bucket(Bucket=BUCKET)
    try:
        s3.list_objects_v2(Bucket="no-such-bucket")
    except ClientError as error:
        assert error.response["Error"]["Code"] == "NoSuchBucket", error
    else:
        raise AssertionError("a bucket that is not there was listed")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("--without", default="", help="laws that are not asked")
    arguments = parser.parse_args()
    without = arguments.without.split(",")
    s3 = client(arguments.url, signature_version="s3v4")
    passed = failed = 0
    for one in LAWS:
        name = one.__name__.replace("_", " ")
        if one.__name__ in without:
            print(f"# {name}: not asked")
            continue
        try:
            one(*([s3, arguments.url][: one.__code__.co_argcount]))
            passed += 1
            print(f"ok - {name}")
        except Exception as error:
            failed += 1
            print(f"not ok - {name}\n    | {type(error).__name__}: {str(error)[:300]}")
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
