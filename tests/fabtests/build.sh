#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Compiles libfabric's own tests from its source tree, without its build system: what belongs to
# each program is read from the tree's Makefile.am. Programs that need hardware of others are left
# out. Usage: build.sh SOURCE OUT [FOLDER OF libfabric.so.1]
#   SOURCE   a libfabric source tree (it holds include/rdma and fabtests/), of the version of the
#            library to test with
#   OUT      where the programs go; what is there and newer than its sources stays
set -euo pipefail
source=$(realpath "$1")
out=$(realpath -m "$2")
library=${3:-}
tests=$source/fabtests
mkdir -p "$out/objects"

# joined MAKEFILE: lines with their continuations in one.
joined() { sed -e ':again' -e '/\\$/{N;s/\\\n/ /;b again' -e '}' "$1"; }

# value NAME: the value of a variable of Makefile.am, variables in it expanded once.
value() {
    local text
    text=$(joined "$tests/Makefile.am" | sed -n "s/^$1 *= *//p")
    while [[ $text =~ \$\(([a-z_]+)\) ]]; do
        text=${text//"${BASH_REMATCH[0]}"/$(value "${BASH_REMATCH[1]}")}
    done
    printf '%s\n' "$text"
}

# compile FILE: into an object; prints its path.
compile() {
    local object=$out/objects/${1//\//_}.o
    if [ ! "$object" -nt "$tests/$1" ]; then
        cc -w -g -O1 -D_GNU_SOURCE -DHAVE_EPOLL=1 -DHAVE_CLOCK_GETTIME=1 -DHAVE___INT128=1 \
            -DCONFIG_PATH='""' -I"$tests/include" -I"$tests/multinode/include" \
            -I"$source/include" -c -o "$object" "$tests/$1"
    fi
    printf '%s\n' "$object"
}

# link PROGRAM: folder/name as Makefile.am has it.
link() {
    local file objects=()
    for file in $(value "${1//[\/-]/_}_SOURCES"); do
        case $file in *.c) objects+=("$(compile "$file")") ;; esac
    done
    local folder=()
    [ -z "$library" ] || folder=(-L"$library" "-Wl,-rpath-link,$library")
    cc -o "$out/${1##*/}" "${objects[@]}" "$out/libfabtests.a" "${folder[@]}" -l:libfabric.so.1 \
        -lpthread -ldl -lm
}

common=()
for file in $(value libfabtests_la_SOURCES); do
    case $file in *.c) common+=("$(compile "$file")") ;; esac
done
ar -rcs "$out/libfabtests.a" "${common[@]}"
built=0
for program in $(joined "$tests/Makefile.am" | sed -n 's/^bin_PROGRAMS *= *//p'); do
    case $program in prov/* | component/*) continue ;; esac
    link "$program"
    built=$((built + 1))
done
printf '%s programs of libfabric'\''s tests in %s\n' "$built" "$out"
