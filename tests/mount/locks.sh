# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Locks that hold between the mounts of a job, on two hosts of tests/testbed. Sourced by
# tests/mount/run.sh.

# shellcheck source=tests/mount/two_hosts.sh
. tests/mount/two_hosts.sh

# locker HOST CALL FILE...: locker.py on a host (0 or 1), with a file of its mount.
locker() {
    local number=$1 call=$2 file=$3
    shift 3
    on "${hosts[number]}" python3 "$LOCKER" "$call" "$work/node$number/$file" "$@"
}
# has HOST FILE..., put FILE TEXT: a file that both hosts see.
has() { on "${hosts[$1]}" test -e "$work/node$1/$2"; }
put() {
    on a0 sh -c "printf $2 >'$work/node0/$1'" && wait_for 60 has 1 "$1"
}
# is_taken, is_free HOST FILE CALL KIND...
is_taken() { locker "$1" try "${@:2}"; [ $? = 7 ]; }
is_free() { locker "$1" try "${@:2}"; }

# held HOST FILE CALL KIND...: as long as held_by runs, which is_held ends.
held() {
    rm -f "$work/held"
    locker "$1" hold "$2" "$3" "$4" "$work/held" "${@:5}" &
    held_by=$!
    wait_for 60 test -e "$work/held"
}
# locker_ids FILE: the processes of locker.py with this file, on whichever host.
locker_ids() { pgrep -f "^python3 $LOCKER .*/$1( |\$)"; }
let_go() { # let_go FILE
    kill -9 $(locker_ids "$1") && wait "$held_by" 2>/dev/null
    wait_for 60 no_locker "$1"
}
no_locker() { ! locker_ids "$1" >/dev/null; }

# reads HOST FILE TEXT: by name, as a program that opens it now.
reads() { [ "$(on "${hosts[$1]}" cat "$work/node$1/$2")" = "$3" ]; }

# Without locks. Names may be twice as old as the time to live of one second; after that the first
# open sees what was closed, though the kernel has pages of the old content, longer or not.
closed_is_seen() {
    local text
    put closed first && reads 1 closed first || return 1
    for text in other longer-than-before x; do
        on a0 sh -c "printf $text >'$work/node0/closed'" && sleep 2.2 &&
            reads 1 closed "$text" || return 1
        [ "$(on b1 stat -c %s "$work/node1/closed")" = ${#text} ] || return 1
    done
    on b1 sh -c "printf back >'$work/node1/closed'" && sleep 2.2 && reads 0 closed back
}

locks_exclude() {
    local call
    put lock 0 || return 1
    for call in flock lockf; do
        held 0 lock "$call" LOCK_EX && is_taken 1 lock "$call" LOCK_EX &&
            is_taken 1 lock "$call" LOCK_SH && is_taken 0 lock "$call" LOCK_EX || return 1
        let_go lock && is_free 1 lock "$call" LOCK_EX || return 1
        held 0 lock "$call" LOCK_SH && is_free 1 lock "$call" LOCK_SH &&
            is_taken 1 lock "$call" LOCK_EX || return 1
        let_go lock && is_free 1 lock "$call" LOCK_EX || return 1
    done
}

lock_ranges() {
    held 0 lock lockf LOCK_EX 100 50 && is_taken 1 lock lockf LOCK_EX 149 1 &&
        is_free 1 lock lockf LOCK_EX 150 10 && is_free 1 lock lockf LOCK_EX 0 100 &&
        is_taken 1 lock lockf LOCK_SH 0 0 &&
        [ "$(locker 1 who lock)" = "write 100 50 0" ]
    local ended=$?
    let_go lock && [ "$(locker 1 who lock)" = "none 0 0 0" ] && return $ended
}

lock_waits() {
    held 0 lock lockf LOCK_EX && rm -f "$work/waits" || return 1
    locker 1 wait lock "$work/waits" &
    local waiter=$!
    wait_for 60 test -e "$work/waits" && sleep 1 && kill -0 "$waiter" || return 1
    kill -9 $(pgrep -f "^python3 $LOCKER hold ") && wait "$waiter" && wait_for 60 no_locker lock
}

lock_interrupted() {
    held 0 lock lockf LOCK_EX && timeout 30 "$TESTBED" "$bed" host b1 python3 "$LOCKER" \
        interrupted "$work/node1/lock" || return 1
    # A program that is killed while it waits goes, and leaves nothing.
    rm -f "$work/waits"
    locker 1 wait lock "$work/waits" &
    local waiter=$!
    wait_for 60 test -e "$work/waits" && sleep 0.5 &&
        kill -9 $(pgrep -f "^python3 $LOCKER wait ") || return 1
    wait "$waiter"
    let_go lock && is_free 1 lock lockf LOCK_EX
}

lock_counts() {
    put count 0 && count_on_both count &&
        wait_for 60 on a0 grep -qx 200 "$work/node0/count" &&
        wait_for 60 on b1 grep -qx 200 "$work/node1/count"
}

# SQLite takes ranges of bytes, and looks whether the journal is there, which the names must tell.
lock_database() {
    local number writers=()
    rm -f "$work"/data-*
    locker 0 database data.db 0 && wait_for 60 has 1 data.db || return 1
    for number in 0 1; do
        locker $number database data.db 15 "$work/data-$number" "$work/data-all" &
        writers+=($!)
    done
    # SQLite reads the file's first bytes when it opens it, without a lock: ESTALE if the other host
    # publishes just then.
    for number in 0 1; do wait_for 60 test -e "$work/data-$number" || return 1; done
    touch "$work/data-all"
    for number in "${writers[@]}"; do wait "$number" || return 1; done
    for number in 0 1; do [ "$(locker $number database data.db 0)" = "30 ok" ] || return 1; done
}

# Last: one of the mounts is gone then. A key that the other one keeps is free again; the locks of
# one that the dead one kept are refused.
lock_daemon_killed() {
    local name kept=0 refused=0
    for name in $(seq 12); do
        put "of$name" x || return 1
        held 1 "of$name" lockf LOCK_EX || return 1
    done
    kill -9 $(pgrep -f "^$WEFT_MOUNT data $work/node1 ")
    for name in $(seq 12); do
        wait_for 60 is_decided "of$name" || return 1
        if [ "$decided" = 0 ]; then kept=$((kept + 1)); else refused=$((refused + 1)); fi
    done
    echo "$kept free again, $refused refused"
    kill -9 $(pgrep -f "^python3 $LOCKER hold ")
    on b1 umount -l "$work/node1"
    [ $kept -gt 0 ] && [ $refused -gt 0 ]
}
is_decided() {
    local said
    said=$(locker 0 try "$1" lockf LOCK_EX 2>&1)
    decided=$?
    [ $decided = 0 ] || [[ $said = ENOLCK* ]]
}

# With a mount of its own: the kernel keeps the locks, and nothing is asked or published for them.
lock_alone() {
    local holder
    mount_bucket && printf 0 >"$mnt/alone" && rm -f "$work/held" || return 1
    python3 "$LOCKER" hold "$mnt/alone" flock LOCK_EX "$work/held" &
    holder=$!
    wait_for 60 test -e "$work/held"
    python3 "$LOCKER" try "$mnt/alone" flock LOCK_SH
    local ended=$?
    kill -9 "$holder"
    wait "$holder" 2>/dev/null
    [ $ended = 7 ] && python3 "$LOCKER" try "$mnt/alone" flock LOCK_EX && forget || return 1
    touch "$work/go"
    python3 "$LOCKER" count "$mnt/alone" 50 "$work/held" "$work/go" &&
        [ "$(cat "$mnt/alone")" = 50 ] && asked 'get("PutObject") == 1 and get("HeadObject") <= 3'
}

check "locks of one host, without a job" lock_alone
if ! reason=$("$TESTBED" check); then
    skip "locks between two hosts" "$reason"
else
    begin_two_hosts
    check "a bucket on two hosts of a job" mount_on_both
    check "what one host closed the other one reads two seconds later" closed_is_seen
    check "locks of two hosts of a job exclude and share" locks_exclude
    check "locks of ranges of a file" lock_ranges
    check "a program waits for a lock of another host, whose holder is killed" lock_waits
    check "a signal ends the wait for a lock" lock_interrupted
    check "four programs on two hosts count under a lock, and lose nothing" lock_counts
    if python3 -c 'import sqlite3' 2>/dev/null; then
        check "SQLite on two hosts writes one database" lock_database
    else
        skip "SQLite on two hosts writes one database" "python3 has no sqlite3"
    fi
    check "a mount is killed: its locks are free, or refused where it kept them" \
        lock_daemon_killed
    end_two_hosts 0
fi
