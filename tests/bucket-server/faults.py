#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Holds weft-bucket-server to its faults and counters, through boto3 and the control path.

faults.py URL    The server needs a bucket `faults`; credentials from the environment. Prints a line
for each law; the last one is `N passed, N failed, N skipped`.
"""

import json
import sys
import time
import urllib.error
import urllib.request

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

BUCKET = "faults"
LAWS = []


def law(function):
    """Adds a law; its name is the function's."""
    LAWS.append(function)
    return function


class Server:
    """The server through S3 and through its control path."""

    def __init__(self, url):
        self.url = url
        settings = Config(
            s3={"addressing_style": "path"}, retries={"total_max_attempts": 1}, read_timeout=20
        )
        self.s3 = boto3.client(
            "s3", endpoint_url=url, region_name="us-east-1", config=settings
        )

    def control(self, method, path, value=None):
        body = None if value is None else json.dumps(value).encode()
        request = urllib.request.Request(f"{self.url}/-/{path}", data=body, method=method)
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

    def set(self, **faults):
        return self.control("POST", "faults", faults)

    def fill(self, prefix, count, size):
        value = {"bucket": BUCKET, "prefix": prefix, "count": count, "size": size}
        self.control("POST", "objects", value)

    def read(self, key, **arguments):
        return self.s3.get_object(Bucket=BUCKET, Key=key, **arguments)["Body"].read()

    def put(self, key, body):
        return self.s3.put_object(Bucket=BUCKET, Key=key, Body=body)["ETag"]

    def refusal(self, call, **arguments):
        try:
            call(Bucket=BUCKET, **arguments)
        except ClientError as error:
            return error.response["Error"]["Code"]
        return None


def breaks(call, *arguments):
    """Whether a call ends in an error of the connection."""
    try:
        call(*arguments)
    except (BotoCoreError, OSError):
        return True
    return False


@law
def large_objects_need_no_memory_and_are_the_same_each_time(server):
    server.fill("huge", 1, 1 << 40)
    assert server.s3.head_object(Bucket=BUCKET, Key="huge")["ContentLength"] == 1 << 40
    there = f"bytes={700 << 30}-{(700 << 30) + 99_999}"
    first = server.read("huge", Range=there)
    assert len(first) == 100_000 and first == server.read("huge", Range=there)
    assert first[:64] != first[64:128]


@law
def a_hundred_thousand_keys_take_a_hundred_lists(server):
    server.fill("many/", 100_000, 4096)
    server.control("DELETE", "counters")
    pager = server.s3.get_paginator("list_objects_v2")
    keys = [
        entry["Key"]
        for page in pager.paginate(Bucket=BUCKET, Prefix="many/")
        for entry in page["Contents"]
    ]
    assert keys == [f"many/{index:07}" for index in range(100_000)]
    counts = server.control("GET", "counters")
    assert counts["requests"] == {"ListObjectsV2": 100}, counts["requests"]
    server.control("DELETE", "counters")
    listed = server.s3.list_objects_v2(Bucket=BUCKET, Delimiter="/")
    assert {"Prefix": "many/"} in listed["CommonPrefixes"]
    assert server.control("GET", "counters")["requests"] == {"ListObjectsV2": 1}


@law
def ranges_and_bytes_are_counted(server):
    server.put("counted", b"x" * 1000)
    server.control("DELETE", "counters")
    server.read("counted", Range="bytes=10-19")
    server.read("counted")
    server.put("written", b"y" * 77)
    server.refusal(server.s3.get_object, Key="missing")
    counts = server.control("GET", "counters")
    assert counts["requests"] == {"GetObject": 3, "PutObject": 1}, counts
    assert counts["refusals"] == {"NoSuchKey": 1}
    assert 1010 < counts["sent_bytes"] < 10_000, counts["sent_bytes"]
    assert counts["read_bytes"] == 1010 and counts["written_bytes"] == 77
    assert [(one["key"], one["first"], one["length"]) for one in counts["ranges"]] == [
        ("counted", 10, 10),
        ("counted", 0, 1000),
    ]


@law
def answers_wait_for_their_first_byte(server):
    server.put("late", b"late")
    server.set(first_byte_ms=300)
    begin = time.monotonic()
    server.read("late")
    assert time.monotonic() - begin >= 0.3


@law
def connections_keep_to_their_rate(server):
    server.fill("stream", 1, 4 << 20)
    server.set(connection_rate=8 << 20)
    begin = time.monotonic()
    assert len(server.read("stream")) == 4 << 20
    assert time.monotonic() - begin >= 0.4
    server.set(connection_rate=0, total_rate=8 << 20)
    begin = time.monotonic()
    server.put("upload", b"z" * (4 << 20))
    assert time.monotonic() - begin >= 0.4


@law
def requests_are_refused_at_their_share(server):
    server.put("asked", b"1")
    server.set(slow_down=0.3, seed=5, operations=["GetObject"])
    first = [server.refusal(server.s3.get_object, Key="asked") for _ in range(60)]
    assert server.refusal(server.s3.head_object, Key="asked") is None
    server.set(seed=5)
    again = [server.refusal(server.s3.get_object, Key="asked") for _ in range(60)]
    assert first == again, "one seed, two runs"
    assert 6 <= first.count("SlowDown") <= 36 and first.count(None) + first.count(
        "SlowDown"
    ) == 60


@law
def connections_are_reset_and_bodies_break_off(server):
    server.put("broken", b"b" * 100_000)
    server.set(reset=1.0)
    assert breaks(server.read, "broken")
    server.set(reset=0.0, cut=1.0)
    assert breaks(server.read, "broken")
    server.set(cut=0.0)
    assert server.read("broken") == b"b" * 100_000


@law
def one_bit_is_turned_over(server):
    body = bytes(range(256)) * 400
    server.put("flipped", body)
    server.set(flip=1.0)
    found = server.s3.get_object(Bucket=BUCKET, Key="flipped", Range="bytes=0-99999")
    found = found["Body"].read()
    turned = [(a ^ b).bit_count() for a, b in zip(found, body)]
    assert sum(turned) == 1, sum(turned)


@law
def objects_change_between_requests(server):
    etag = server.put("changing", b"c" * 100)
    server.set(change=1.0, operations=["GetObject"])
    assert server.refusal(server.s3.get_object, Key="changing", IfMatch=etag) is not None
    found = server.s3.get_object(Bucket=BUCKET, Key="changing")
    assert found["ETag"] != etag and found["ContentLength"] == 100
    assert found["Body"].read() != b"c" * 100


@law
def a_server_that_is_gone_comes_back_with_its_objects(server):
    server.put("kept", b"kept")
    server.set(gone=True)
    assert breaks(server.read, "kept")
    server.set(gone=False)
    assert server.read("kept") == b"kept"


@law
def credentials_expire(server):
    server.put("expiring", b"1")
    server.set(expired=True)
    assert server.refusal(server.s3.get_object, Key="expiring") == "ExpiredToken"


@law
def older_stores_can_be_played(server):
    server.put("older", b"1")
    source = f"{BUCKET}/older"
    copy = {"Key": "older", "CopySource": source, "IfNoneMatch": "*"}
    put = {"Key": "older", "Body": b"2", "IfNoneMatch": "*"}
    copy.update(MetadataDirective="REPLACE")
    copies, puts = server.s3.copy_object, server.s3.put_object
    server.set(conditional_copy="refused", conditional_put="refused", checksums=False)
    assert server.refusal(copies, **copy) == "NotImplemented"
    assert server.refusal(puts, **put) == "NotImplemented"
    server.set(conditional_copy="ignored", conditional_put="ignored")
    assert server.refusal(copies, **copy) is None
    assert server.refusal(puts, **put) is None
    head = server.s3.head_object(Bucket=BUCKET, Key="older", ChecksumMode="ENABLED")
    assert not [name for name in head if name.startswith("Checksum")], head


@law
def wrong_settings_are_refused(server):
    for wrong in [{"slow_donw": 1}, {"reset": 2}, {"operations": ["Get"]}, []]:
        try:
            server.control("POST", "faults", wrong)
        except urllib.error.HTTPError as error:
            assert error.code == 400 and json.load(error)["error"]
        else:
            raise AssertionError(f"{wrong} was taken")


def main():
    server = Server(sys.argv[1])
    passed = failed = 0
    for one in LAWS:
        name = one.__name__.replace("_", " ")
        try:
            server.control("DELETE", "faults")
            one(server)
            passed += 1
            print(f"ok - {name}")
        except Exception as error:
            failed += 1
            print(f"not ok - {name}\n    | {type(error).__name__}: {str(error)[:300]}")
    server.control("DELETE", "faults")
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
