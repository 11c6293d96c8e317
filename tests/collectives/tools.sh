# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Cases of tests/collectives/run.sh, which sources this file: other tools of the interface.

# tooled MPI PLACE TOOL: a job of barriers with a tool, which by PLACE is a part of the program, a
# library of it, or preloaded.
tooled() {
    local compiler folder=$ROOT/tests/collectives
    local tool=$work/lib$3-$1.so program=$work/$3-$1 variables=()
    compiler=$(compiler "$1")
    case $2 in
    part) "$compiler" -o "$program" "$folder/barriers.c" "$folder/$3.c" -ldl ;;
    library)
        "$compiler" -shared -fPIC -o "$tool" "$folder/$3.c" -ldl &&
            "$compiler" -o "$program" "$folder/barriers.c" -Wl,--no-as-needed "$tool"
        ;;
    preloaded)
        "$compiler" -shared -fPIC -o "$tool" "$folder/$3.c" -ldl &&
            "$compiler" -o "$program" "$folder/barriers.c"
        variables=(--env "LD_PRELOAD=$tool")
        ;;
    esac >"$work/out" 2>&1 || return
    job 2 "$1" "${variables[@]}" --json "$work/record" -- "$program"
}

# with_tool MPI PLACE: a tool sees all barriers, and Weft serves them.
with_tool() {
    tooled "$1" "$2" tool || return
    [ "$(grep -ac '^the tool saw 2000 barriers$' "$work/out")" = 2 ] || return
    [ "$(count "$work/record" barrier weft)" = 4000 ]
}

# past_weft MPI PLACE: a tool hands no barrier on, so the MPI has all of them; the last line names
# the tool's file.
past_weft() {
    local file=libpast-$1.so
    if [ "$2" = part ]; then file=past-$1; fi
    tooled "$1" "$2" past || return
    [ "$(count "$work/record" barrier weft)-$(count "$work/record" barrier mpi)" = 0-0 ] &&
        [ "$(grep -c "^weft: no call of a collective.*/$file stands" "$work/out")" = 1 ]
}
