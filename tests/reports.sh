# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# How suites report their cases. Sourced by their run.sh in the project's root; `work` is then a new
# folder that is removed at the end (a suite with more to tidy sets a trap of its own and removes it
# too).

# Cases run as other users, too, who read what the suite has made.
umask 022
passed=0 failed=0 skipped=0
work=$(mktemp -d)
bare=
trap 'rm -rf "$work" ${bare:+"$bare"}' EXIT

# make_bare: sets `bare`, a folder whose path has neither spaces nor colons, also where TMPDIR has
# some: for what LD_PRELOAD names, and for what cannot start from another path.
make_bare() {
    bare=$work
    [[ $work != *[[:space:]:]* ]] || bare=$(mktemp -d -p /tmp)
}

# need_weft: WEFT is the command that is tested, by default what `make build` made; without it the
# suite ends.
need_weft() {
    WEFT=$(realpath -m "${WEFT:-dist/bin/weft}")
    [ -x "$WEFT" ] && return
    printf 'run.sh: %s is missing; run `make build` first\n' "$WEFT" >&2
    exit 2
}

# begin_outside_jobs [PREFIX...]: this shell may be a rank or have settings of its own; the cases
# begin without variables of Weft, MPIs and Slurm, and without those of these prefixes. Open MPI
# runs as root.
begin_outside_jobs() {
    local name kinds='FI_|OMPI_MCA_|OMPI_COMM|PMI_|PMIX_|SLURM_|MPI_LOCAL|I_MPI_|MPIR_CVAR'
    for name in "$@"; do kinds+="|$name"; done
    while read -r name; do unset "$name"; done < <(compgen -e | grep -E "^($kinds)")
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
}

# is_wanted CASE: whether the suite's command line, in `wanted`, names this case, or none.
is_wanted() { [ ${#wanted[@]} = 0 ] || [[ " ${wanted[*]} " == *" $1 "* ]]; }

# wait_for SECONDS COMMAND...: until the command is true; false when it is not by then.
wait_for() {
    local until=$((SECONDS + $1))
    shift
    until "$@"; do
        [ "$SECONDS" -lt "$until" ] || { echo "after that time still not: $*"; return 1; }
        sleep 0.05
    done
}

# in_three COMMAND...: true in one of three times. For what is measured: a machine that stands still
# for a moment may spoil one time.
in_three() { "$@" || "$@" || "$@"; }

# ends CODE WORDS COMMAND...: the command ends with this exit code and says the words.
ends() {
    local code=$1 words=$2 ended
    shift 2
    "$@" >"$work/out" 2>&1
    ended=$?
    echo "exit code $ended, wanted $code" >>"$work/out"
    [ "$ended" = "$code" ] && grep -qF -- "$words" "$work/out"
}

# A suite that sets show_seconds shows how long each case took, since the one before it.
show_seconds= case_began=$SECONDS
line() { # line WORD NAME
    printf '%s - %s%s\n' "$1" "$2" "${show_seconds:+ ($((SECONDS - case_began)) s)}"
    case_began=$SECONDS
}

ok() { # ok NAME
    passed=$((passed + 1))
    line ok "$1"
}

not_ok() { # not_ok NAME
    failed=$((failed + 1))
    line 'not ok' "$1"
}

skip() { # skip NAME WHY
    skipped=$((skipped + 1))
    printf 'skip - %s: %s\n' "$1" "$2"
}

skip_all() { # skip_all NAME WHY: and the suite ends
    skip "$@"
    summary
    exit
}

report() { # report STATUS NAME: what the case printed to $work/out is shown if it failed
    if [ "$1" = 0 ]; then
        ok "$2"
    else
        not_ok "$2"
        tail -n 20 "$work/out" | cut -c 1-200 | sed 's/^/    | /'
    fi
}

check() { # check NAME COMMAND...
    local name=$1
    shift
    "$@" >"$work/out" 2>&1
    report $? "$name"
}

# summary: the last line, and the exit code of the suite.
summary() {
    printf '%s passed, %s failed, %s skipped\n' "$passed" "$failed" "$skipped"
    [ "$failed" = 0 ]
}
