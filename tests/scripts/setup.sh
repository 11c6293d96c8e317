# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# scripts/setup.sh on a machine without packages, whose network fails for a moment, whose Rust is
# too old or whose disk is too small. Sourced by run.sh.

# program NAME: a made-up one, from stdin. What it is called with is in the file `called`.
program() {
    { printf '#!/bin/bash\necho "%s $*" >>called\n' "$1"; cat; } >"$copy/bin/$1"
    chmod +x "$copy/bin/$1"
}

# make_machine: no package is installed, and nothing waits. The number of times that a request fails
# is in the file of its name.
make_machine() {
    copy=$work/machine
    rm -rf "$copy"
    mkdir -p "$copy/scripts" "$copy/bin"
    cp scripts/setup.sh "$copy/scripts"
    cp Cargo.lock Cargo.toml "$copy"
    program dpkg-query <<<'exit 1'
    program sleep </dev/null
    program id <<<'echo 0'
    # As apt does it: with a list that it could not fetch, an update succeeds, and packages are
    # unknown.
    program apt-get <<'PROGRAM'
fails() {
    left=$(cat "$1" 2>/dev/null || echo 0)
    [ "$left" = 0 ] || echo $((left - 1)) >"$1"
    [ "$left" != 0 ]
}
case " $* " in
*' update '*) if fails lists; then rm -f have-lists; else touch have-lists; fi ;;
*' install '*)
    [ -e have-lists ] || { echo 'E: Unable to locate package make'; exit 100; }
    if fails packages; then echo 'E: Failed to fetch'; exit 100; fi ;;
esac
PROGRAM
    program cargo <<'PROGRAM'
if [ "$1" = --version ]; then echo 'cargo 1.99.0 (0 2026-01-01)'; exit; fi
left=$(cat crates 2>/dev/null || echo 0)
[ "$left" = 0 ] || { echo $((left - 1)) >crates; exit 101; }
PROGRAM
    program rustc <<<"echo 'rustc 1.99.0 (0 2026-01-01)'"
}

# set_up [TIER]: by default the tier that all others begin with.
set_up() {
    (cd "$copy" && PATH=$copy/bin:$PATH scripts/setup.sh "${1:-build}") >"$work/set-up" 2>&1
}

# after_failures WHAT...: each fails twice, and the third time it does not.
after_failures() {
    local what
    make_machine
    for what; do echo 2 >"$copy/$what"; done
    set_up || { cat "$work/set-up"; return 1; }
    cmp "$copy/Cargo.lock" "$copy/.env/stamp/crates"
}
check 'packages are installed after a list of them could not be fetched twice' after_failures lists
check 'packages are fetched again' after_failures packages
check 'crates are fetched again' after_failures crates

# gives_up WHAT WORDS: it never works; set-up ends with 1, and the words.
gives_up() {
    make_machine
    echo 100 >"$copy/$1"
    set_up
    [ $? = 1 ] && tail -n 1 "$work/set-up" | grep -F -- "$2" && [ ! -e "$copy/.env/stamp" ] ||
        { cat "$work/set-up"; return 1; }
}
check 'packages that never come are named' \
    gives_up lists 'setup: apt-get install failed: gcc libc6-dev make'
check 'so are crates' gives_up crates 'setup: cargo fetch --locked failed'

# as_user: who may not install is told the command.
as_user() {
    make_machine
    program id <<<'echo 1000'
    ends 1 'apt-get install --no-install-recommends -y gcc libc6-dev make' set_up_aloud &&
        ! grep -q apt-get "$copy/called"
}
set_up_aloud() { set_up "$@"; local status=$?; cat "$work/set-up"; return "$status"; }
check 'who may not install packages is told which are missing' as_user

# too_old NAME VERSION: this program of Rust is older than Cargo.toml's rust-version: set-up says
# which it is, the limit and how to mend it, and fetches nothing.
too_old() {
    local wanted
    wanted=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml)
    make_machine
    program "$1" <<<"echo '$1 $2 (0 2025-01-01)'"
    ends 1 "setup: $1 is $2, and Weft needs $wanted or newer. Install" set_up_aloud &&
        ! grep -q 'cargo fetch' "$copy/called"
}
check 'Debian 12 has a cargo that is too old' too_old cargo 1.65.0
check 'so has Debian 13' too_old cargo 1.85.0
check 'rustc may be older than cargo' too_old rustc 1.87.0-nightly

# has_free MIB: the disk of the machine.
has_free() {
    program df <<PROGRAM
echo 'Filesystem 1048576-blocks Used Available Capacity Mounted on'
echo '/dev/vda   258048 1000 $1 1% /'
PROGRAM
}

# small_disk: who would run out of disk in the middle of the tests is told before anything is
# fetched.
small_disk() {
    make_machine
    has_free 8191
    ends 1 'has 8191 MiB of free disk, and the first build with its tests needs 8192 MiB' \
        set_up_aloud test && ! grep -q 'apt-get' "$copy/called"
}
check 'a disk that is too small for the tests is told at once' small_disk

# what_is_built_already: most of what fills the disk is there.
what_is_built_already() {
    make_machine
    has_free 100
    mkdir -p "$copy/target/debug"
    echo 100 >"$copy/packages"
    ends 1 'setup: apt-get install failed' set_up_aloud test
}
check 'who has built before needs no such disk' what_is_built_already
