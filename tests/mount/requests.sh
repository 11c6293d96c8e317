# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# How many requests programs cost, and how many bytes. Sourced by tests/mount/run.sh.

objects hundred/k 100000 4096
for folder in $(seq 16); do objects "deep/$folder/f" 1000 10; done
python3 - "$BUCKET_URL" <<'END'
import json, sys, urllib.request
for folder in range(1600):
    value = {"bucket": "data", "prefix": f"wide/{folder:04}/f", "count": 10, "size": 10}
    data = json.dumps(value).encode()
    urllib.request.urlopen(urllib.request.Request(f"{sys.argv[1]}/-/objects", data=data)).read()
END
objects sparse 1 1000000000
unmount_bucket

# The folders above are asked for again meanwhile.
short_lived() {
    remount && forget && [ "$(ls -l "$mnt/hundred" | wc -l)" = 100001 ] &&
        asked 'get("ListObjectsV2") <= 150 and get("HeadObject") <= 20 and get("GetObject") == 0'
}
check "ls -l of 100,000 keys takes hardly more where names are believed for a second" short_lived

long_list() {
    remount --metadata-ttl 60 && forget &&
        [ "$(ls -l "$mnt/hundred" | wc -l)" = 100001 ] &&
        asked 'get("ListObjectsV2") <= 110 and get("HeadObject") == 0 and get("GetObject") == 0'
}
check "ls -l of 100,000 keys takes hardly more than their 100 lists, and no head" long_list

again() { forget && ls -l "$mnt/hundred" >"$work/again" &&
    asked 'get("ListObjectsV2") == 0 and get("HeadObject") == 0'; }
check "ls -l again, while names are believed, takes no request" again

finds() {
    remount --metadata-ttl 60 && forget &&
        [ "$(find "$mnt/deep" -type f | wc -l)" = 16000 ] &&
        asked 'sum(requests.values()) <= 20 and get("HeadObject") == 0'
}
check "find over 16,000 keys in 16 folders takes at most 20 requests" finds

finds_many() {
    remount --metadata-ttl 60 && forget &&
        [ "$(find "$mnt/wide" -type f | wc -l)" = 16000 ] &&
        asked 'sum(requests.values()) <= 20 and get("HeadObject") == 0'
}
check "find over 16,000 keys in 1,600 folders takes at most 20 requests" finds_many

one_stat() {
    remount --metadata-ttl 60 && forget && stat "$mnt/deep/3/f0000007" >"$work/stat" &&
        asked 'sum(requests.values()) <= 6'
}
check "stat of one deep name takes at most 6 requests" one_stat

sequential() {
    objects stream 1 64000000
    remount --metadata-ttl 60 && forget && [ "$(cat "$mnt/stream" | wc -c)" = 64000000 ] &&
        asked 'read_bytes <= 64_000_000 and get("HeadObject") <= 1'
}
check "a file read from end to end is fetched once" sequential

sparse() {
    remount --metadata-ttl 60 && forget && "$PYTHON" - "$mnt/sparse" <<'EOF' &&
import os, random, sys
file = os.open(sys.argv[1], os.O_RDONLY)
seed = random.randrange(1 << 32)
print("seed", seed)
random.seed(seed)
blocks = random.sample(range(1_000_000_000 // 131_072), 300)
for block in blocks:
    assert len(os.pread(file, 131_072, block * 131_072)) == 131_072
EOF
        asked 'read_bytes <= 1.3 * 300 * 131_072'
}
check "300 random reads of 128 KiB fetch at most 1.3 of their bytes" sparse

cached() {
    remount --metadata-ttl 60 && cat "$mnt/stream" >"$work/stream" && forget &&
        cmp "$mnt/stream" "$work/stream" && asked 'read_bytes == 0'
}
check "a file read before is not fetched again" cached

absent() {
    remount --metadata-ttl 60 && forget || return 1
    for _ in $(seq 30); do ls "$mnt/absent" 2>/dev/null; done
    asked 'sum(requests.values()) <= 3'
}
check "a name that is not there is asked for once" absent
