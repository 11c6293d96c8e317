#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Counts by callgrind how many instructions the calls of an 8-byte message, inside a node and over
# the network's route, and 8-byte one-sided operations take in the built provider, prints them, and
# fails when one takes more than its budget: 5 to 10 per cent more than it took in
# docs/lab/2026-11-23-order-of-the-code.md. Counts do not depend on how busy the machine is; the
# compiler's version moves them by a few per cent. That a message of a busy job takes as many
# instructions while weft top reads the job's counters is shown the same way. About 30 seconds.
#
#   WEFT_PROVIDER_DIR   folder of libweft-fi.so, a release build (default: dist/lib/weft)
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
# shellcheck source=tests/provider/checks.sh
. tests/provider/checks.sh
rounds=2000

# instructions KIND FUNCTION: sets `each` to what one call takes, or with FUNCTION `*` all calls of
# one round; false where the program fails
instructions() {
    local collected
    each=0
    timeout 300 valgrind --tool=callgrind --callgrind-out-file=/dev/null \
        --toggle-collect="counted_$2" "$work/calls" "$1" "$rounds" >"$work/output" 2>&1 || return
    collected=$(sed -n 's/.*Collected : \([0-9]*\).*/\1/p' "$work/output")
    each=$((${collected:-0} / rounds))
}

# count KIND FUNCTION NAME BUDGET
count() {
    if ! instructions "$1" "$2"; then
        not_ok "$3" "$(tail -c 300 "$work/output" | tr '\n' ' ')"
        return
    fi
    printf '# %-45s %5s instructions\n' "$3" "$each"
    if [ "$each" -lt 10 ]; then not_ok "$3" "nothing was counted"; elif [ "$each" -gt "$4" ]; then
        not_ok "$3" "$each instructions, more than the budget of $4"
    else ok "${3}_keeps_to_$4_instructions"; fi
}

# watched KIND ROUNDS NAME: all calls of a message take no more while weft top reads the process's
# counters all the time than in a run as long without it
watched() {
    local rounds=$2 unwatched weft="$folder/../../bin/weft" seen top
    if [ ! -x "$weft" ]; then
        skip "$3" "no $weft"
        return
    fi
    instructions "$1" '*'
    unwatched=$each
    while "$weft" top --once --interval 0.1 --json; do :; done >"$work/top" 2>&1 &
    top=$!
    instructions "$1" '*'
    kill "$top"
    wait "$top" 2>/dev/null
    seen=$(grep -c '"command": "callgrind' "$work/top")
    printf '# %-45s %5s instructions, %s when read %s times\n' "$3" "$unwatched" "$each" "$seen"
    # Three in a thousand: over UDP packets come in another order now and then.
    if [ "$seen" = 0 ]; then
        not_ok "$3" "weft top did not see the program: $(head -c 300 "$work/top" | tr '\n' ' ')"
    elif [ "$unwatched" -lt 10 ] || [ "$each" -lt 10 ] ||
        [ $((1000 * (each - unwatched))) -gt $((3 * unwatched)) ]; then
        not_ok "$3" "$each instructions, $unwatched without weft top"
    else ok "${3}_takes_no_more"; fi
}

if [ ! -f "$folder/libweft-fi.so" ]; then
    not_ok "the_provider_is_built" "no $folder/libweft-fi.so (run: make build)"
    finish
fi
if ! command -v valgrind >/dev/null; then
    skip "instructions" "valgrind is missing (Debian: valgrind)"
    finish
fi
if ! command -v cc >/dev/null || [ ! -f /usr/include/rdma/fabric.h ]; then
    skip "instructions" "no C compiler or no libfabric headers (Debian: gcc libfabric-dev)"
    finish
fi
if ! cc -std=gnu11 -O2 -Wall -Wextra -Werror -Wno-missing-field-initializers -rdynamic \
    -o "$work/calls" tests/instructions/calls.c -lfabric 2>"$work/errors"; then
    not_ok "the_counted_program_compiles" "$(head -c 300 "$work/errors" | tr '\n' ' ')"
    finish
fi
count tagged inject fi_tinjectdata 150
count tagged post fi_trecv 120
count tagged empty fi_cq_read_that_finds_nothing 160
count tagged find fi_cq_read_that_finds_a_tagged_message 420
# A message of a busy job, all in all: its receive is posted, it is looked for in vain, sent, found.
# Time goes by calls of the clock, so that a busy machine changes no count.
watched pingpong 60000 a_message_beside_weft_top
count plain inject fi_injectdata 150
count plain post fi_recv 110
count plain find fi_cq_read_that_finds_a_plain_message 420
count late keep fi_cq_read_that_keeps_an_unexpected_message 490
count late match fi_trecv_that_matches_an_unexpected_message 365
count late take fi_cq_read_of_an_entry_that_waits 90
# Private memory by messages: under valgrind a target seems to be away, and would be read by single
# copy.
export FI_WEFT_SINGLE_COPY=never
count private write fi_write_by_messages 3280
count private read fi_read_by_messages 3070
count private fetch fi_fetch_atomic_by_messages 3920
count shared write fi_write_to_mapped_memory 710
count shared read fi_read_of_mapped_memory 710
count shared fetch fi_fetch_atomic_on_mapped_memory 1310
# Over UDP, each message answered by one, under a job key: the system calls themselves are not
# counted.
unset FI_WEFT_SINGLE_COPY
export FI_WEFT_ROUTE=srd \
    FI_WEFT_JOB_KEY=000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f
count pingpong inject fi_tinjectdata_over_udp 3280
count pingpong empty fi_cq_read_that_finds_nothing_over_udp 1980
count pingpong find fi_cq_read_that_finds_a_message_over_udp 3950
watched pingpong 20000 a_message_over_udp_beside_weft_top
finish
