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

# Names that stay valid for longer than any machine takes.
remount_long() { remount --metadata-ttl 3600; }

# list_slowly FOLDER SECONDS: lists a folder and looks at each name, as ls -l does, in six times so
# many seconds or more; how many times is in $work/lives then. Ends with 3 if 1,000 names took that
# long, which are more than one call of the kernel gets: some may have been too old by then.
list_slowly() {
    timeout 300 "$PYTHON" - "$@" "$work/lives" <<'EOF'
import os, sys, time
folder, ttl = sys.argv[1], float(sys.argv[2])
os.chdir(folder)
moments = [time.monotonic()]
for number, entry in enumerate(os.scandir("."), 1):
    os.lstat(entry.name)
    if number % 1000 == 0:
        until = moments[0] + 6 * ttl * number / 100_000
        time.sleep(max(0, until - time.monotonic()))
    moments.append(time.monotonic())
longest = max(b - a for a, b in zip(moments, moments[1000:]))
print(len(moments) - 1, "names in", moments[-1] - moments[0], "s, 1,000 in at most", longest)
assert len(moments) == 100_001
with open(sys.argv[3], "w") as file:
    print(int((moments[-1] - moments[0]) / ttl) + 1, file=file)
sys.exit(3 if longest >= ttl else 0)
EOF
}
# The kernel asks for the folder itself once in each time to live, and its attributes stand above.
short_lived() {
    local ttl lives
    for ttl in 1 3 9; do
        remount --metadata-ttl "$ttl" && forget || return 1
        list_slowly "$mnt/hundred" "$ttl"
        case $? in
            0) break ;;
            3) [ "$ttl" = 9 ] || continue ;;
        esac
        return 1
    done
    lives=$(cat "$work/lives")
    asked "get('ListObjectsV2') <= 110 + $lives and get('HeadObject') <= 1 + $lives" &&
        asked 'get("GetObject") == 0'
}
check "a listing of 100,000 keys that outlasts their time to live takes hardly more requests" \
    short_lived

long_list() {
    remount_long && forget &&
        [ "$(ls -l "$mnt/hundred" | wc -l)" = 100001 ] &&
        asked 'get("ListObjectsV2") <= 110 and get("HeadObject") == 0 and get("GetObject") == 0'
}
check "ls -l of 100,000 keys takes hardly more than their 100 lists, and no head" long_list

again() { forget && ls -l "$mnt/hundred" >"$work/again" &&
    asked 'get("ListObjectsV2") == 0 and get("HeadObject") == 0'; }
check "ls -l again, while names are valid, takes no request" again

finds() {
    remount_long && forget &&
        [ "$(find "$mnt/deep" -type f | wc -l)" = 16000 ] &&
        asked 'sum(requests.values()) <= 40 and get("HeadObject") == 0'
}
check "find over 16,000 keys in 16 folders takes at most 40 requests" finds

# It takes 20 where nothing else runs, and took 21 beside other suites; one folder at a time takes
# 1,600.
finds_many() {
    remount_long && forget &&
        [ "$(find "$mnt/wide" -type f | wc -l)" = 16000 ] &&
        asked 'sum(requests.values()) <= 40 and get("HeadObject") == 0'
}
check "find over 16,000 keys in 1,600 folders takes at most 40 requests" finds_many

one_stat() {
    remount_long && forget && stat "$mnt/deep/3/f0000007" >"$work/stat" &&
        asked 'sum(requests.values()) <= 6'
}
check "stat of one deep name takes at most 6 requests" one_stat

sequential() {
    objects stream 1 64000000
    remount_long && forget && [ "$(cat "$mnt/stream" | wc -c)" = 64000000 ] &&
        asked 'read_bytes <= 64_000_000 and get("HeadObject") <= 1'
}
check "a file read from end to end is fetched once" sequential

sparse() {
    remount_long && forget && "$PYTHON" - "$mnt/sparse" <<'EOF' &&
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
    remount_long && cat "$mnt/stream" >"$work/stream" && forget &&
        cmp "$mnt/stream" "$work/stream" && asked 'read_bytes == 0'
}
check "a file read before is not fetched again" cached

absent() {
    remount_long && forget || return 1
    for _ in $(seq 30); do ls "$mnt/absent" 2>/dev/null; done
    asked 'sum(requests.values()) <= 3'
}
check "a name that is not there is asked for once" absent
