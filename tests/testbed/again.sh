# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# A server that is killed and started again at its address, its client, and a bystander (again.c),
# as processes of a testbed's hosts. Sourced by run.sh; suites harsh and attack use it.

AGAIN_NEEDS='no C compiler or no libfabric headers (Debian: gcc libfabric-dev)'

# again_is_built: compiles the program; false where the compiler or libfabric's headers are missing.
again_is_built() {
    command -v cc >/dev/null && [ -f /usr/include/rdma/fabric.h ] || return 1
    cc -std=gnu11 -O2 -Wall -Wextra -Werror -Wno-missing-field-initializers -o "$WORK/again" \
        tests/testbed/again.c -lfabric
}

# again_on HOST NAME WORDS...: one of its processes in the background, its number in NAME.pid and
# what it says in NAME. AGAIN_KEY is the job's key, if it is set, also to nothing.
again_on() {
    local host=$1 name=$2 folder key
    shift 2
    folder=${WEFT_PROVIDER_DIR:-$(dirname "$WEFT")/../lib/weft}
    key=${AGAIN_KEY-$(printf '5e%.0s' {1..32})}
    : >"$WORK/$name"
    # shellcheck disable=SC2016 # the inner shell expands
    bed host "$host" env "FI_PROVIDER_PATH=$folder" ${key:+"FI_WEFT_JOB_KEY=$key"} \
        sh -c 'echo $$ >"$0"; exec "$@"' "$WORK/$name.pid" "$WORK/again" "$@" \
        >"$WORK/$name" 2>&1 &
}

# a_server_is_killed_and_started_again HOST [mute]: its client, on a0, gets errors for what was
# under way, and then talks to the new one.
a_server_is_killed_and_started_again() {
    local host=$1 here there client server status
    here=$(bed address a0) there=$(bed address "$host")
    again_on a0 client client 2 "$here" 7001 "$there" 7000 "${@:2}"
    client=$!
    waits_for "$WORK/client" 'client is there' 1 40 || return 1
    again_on "$host" first server 1 "$there" 7000 "$here" 7001 "${@:2}"
    server=$!
    waits_for "$WORK/first" 'is under way' 1 40 &&
        bed host "$host" kill -KILL "$(cat "$WORK/first.pid")"
    wait $server
    again_on "$host" second server 2 "$there" 7000 "$here" 7001 "${@:2}"
    server=$!
    wait $client
    status=$?
    wait $server || status=$?
    cat "$WORK/client" "$WORK/first" "$WORK/second"
    return $status
}
