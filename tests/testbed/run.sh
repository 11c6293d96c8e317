#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Hosts joined by a network, on one machine. Usage: tests/testbed/run.sh [--full] [--transport
# weft|native|tcp] [--mpi NAME]... [SUITE]...
#
#   --full        every program on 2 and on 4 hosts, with and without loss; without it the whole
#                 takes about four minutes on two cores
#   --transport   what carries the messages of the programs (default weft)
#   --mpi         only this MPI: debian-openmpi, openmpi, mpich or intel; may be given again
#   SUITE         a file of tests/testbed/suites without .sh; default all
#
# Prints `ok`, `not ok` or `skip` with the time of each case, and at the end
# `N passed, N failed, N skipped`. What a case printed lies in report/testbed/. Exit code 0 when
# none failed, 1 when one did, 2 for bad usage. WEFT names another weft command to test with.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
RUN=tests/testbed/run.sh
# shellcheck source=tests/mpi/arguments.sh
. tests/mpi/arguments.sh
# shellcheck source=tests/testbed/again.sh
. tests/testbed/again.sh
# Every host has a /dev/shm of its own, which left_on_hosts looks into; this machine's is for
# others.
shared_memory_names() { :; }
read_arguments "$@"
[ ${#suites[@]} -gt 0 ] ||
    suites=(network links flows harsh attack firewall launch collectives programs)

TESTBED=$ROOT/tests/testbed/testbed.sh
if ! reason=$("$TESTBED" check); then
    skip_all 'hosts in namespaces' "$reason"
fi
prepare_run testbed
# A second of silence is death in some suites, and so these processes go before other jobs of this
# machine, which would keep them waiting for a processor. What is started from here inherits it.
renice -n -10 $$ >/dev/null 2>&1
BEDS=()

remove_testbeds() {
    local bed
    for bed in "${BEDS[@]}"; do "$TESTBED" "$bed" down 2>/dev/null; done
    BEDS=()
}
trap 'remove_testbeds; rm -rf "$WORK"' EXIT

# new_testbed OPTIONS...: makes one and names it in BED; it is removed at the end.
new_testbed() {
    BED=$("$TESTBED" up --owner $$ "$@") || return 1
    BEDS+=("$BED")
    AGENT=$("$TESTBED" "$BED" agent)
}

bed() { "$TESTBED" "$BED" "$@"; }

# job LIST SECONDS MPI OPTIONS... -- PROGRAM...: weft run on the first of these hosts. Its ranks
# keep to the host's processors by themselves; an MPI that binds them counts those of the whole
# machine, and puts the first rank of every host on the same one.
job() {
    local list=$1 seconds=$2 mpi=$3
    shift 3
    bed host "${list%%[,:]*}" "$WEFT" run --hosts "$list" --launcher "$AGENT" --mpi "$mpi" \
        --timeout "$seconds" --quiet --bind none "$@"
}

# listens HOST PROCESS PORT: until a TCP port of that host is listened at; false when the process is
# gone before.
listens() {
    local hex
    hex=$(printf ':%04X 0*:0000 0A ' "$3")
    # All is read: who is left by grep -q ends with a signal, and that is no success here.
    until bed host "$1" cat /proc/net/tcp /proc/net/tcp6 | grep " [0-9A-F]*$hex" >/dev/null; do
        kill -0 "$2" || return 1
        sleep 0.1
    done
}

# waits_for FILE PATTERN COUNT SECONDS: until this many lines of FILE have PATTERN.
waits_for() {
    local end=$((SECONDS + $4))
    while [ "$(grep -c "$2" "$1")" -lt "$3" ]; do
        [ $SECONDS -lt $end ] || { echo "after $4 s $3 lines with '$2' were not there"; return 1; }
        sleep 0.1
    done
}

# A rank behind these words and FILE says everything into FILE.HOST, and not through its launcher,
# which may lose the last words of a rank that aborts, or be cut off from them.
INTO_FILE=(sh -c 'exec "$@" >>"$0.$(hostname)" 2>&1')

# The port at which the server of fi_pingpong waits for its client: none that the kernel gives to
# connections, as its own one is.
PINGPONG_PORT=7592

# Files that a job left in the /dev/shm of a host of the testbed, or in its folder for others.
left_on_hosts() {
    local host left status=0
    for host in $(bed hosts); do
        # shellcheck disable=SC2016 # expanded there
        left=$(bed host "$host" sh -c 'find /dev/shm "$TMPDIR" -mindepth 1 2>/dev/null; true') ||
            { echo "$host cannot be looked at"; status=1; }
        [ -z "$left" ] || { echo "left on $host: $left"; status=1; }
    done
    return $status
}

# As left_on_hosts; fails when it found some, and has removed them then: the next cases are judged
# by what they leave themselves.
nothing_is_left_on_hosts() {
    local host
    left_on_hosts && return
    for host in $(bed hosts); do
        # shellcheck disable=SC2016 # expanded there
        bed host "$host" sh -c 'find /dev/shm "$TMPDIR" -mindepth 1 -delete' 2>/dev/null
    done
    return 1
}

for suite in "${suites[@]}"; do
    # shellcheck source=/dev/null
    . "tests/testbed/suites/$suite.sh"
done
summary
