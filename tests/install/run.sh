#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# `make install` and `make uninstall` with what `make build` made: a real MPI over Weft from the
# prefix, from a moved one and through a link; updates, other people's files, wrong use; manual
# pages, completions and the modulefile as their readers take them; README's install lines. The
# packages have a judge of their own, packaging/check.sh. Usage: tests/install/run.sh
#
# Prints `ok`, `not ok` or `skip`, ends with `N passed, N failed, N skipped`. 10 seconds.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
ROOT=$PWD
# shellcheck source=tests/reports.sh
. tests/reports.sh
need_weft
unset PREFIX DESTDIR MAKEFLAGS MAKELEVEL
prefix=$work/prefix

# Neither cargo nor a Rust compiler is there: what was built is only copied.
make_quietly() { env PATH=/usr/bin:/bin make --no-print-directory "$@" >"$work/out" 2>&1; }

# files FOLDER: what is in it, one a line.
files() { (cd "$1" && find . ! -type d | cut -c3- | sort); }

# refused WORDS COMMAND...: the command fails and says the words.
refused() {
    local words=$1
    shift
    ! "$@" && grep -qF -- "$words" "$work/out"
}

# carries PATH-OF-WEFT: two ranks of Open MPI exchange messages over that Weft's own libraries.
carries() {
    (cd / && env -u WEFT_PROVIDER_DIR WEFT_MPI_PATH="$ROOT/.env/mpi/openmpi" timeout 60 "$1" run \
        -n 2 --mpi openmpi --oversubscribe --require-weft -- "$1" bench latency -m 8:8 -i 20) \
        >"$work/out" 2>&1
}

# --- copies ---------------------------------------------------------------------------------------

make_quietly install PREFIX="$prefix" && diff -r dist "$prefix" >"$work/difference"
[ $? = 1 ] && [ "$(cat "$work/difference")" = "Only in $prefix/lib/weft: installed-files" ] &&
    [ "$(cd dist && find . -type f -printf '%m %p\n' | sort)" = "$(cd "$prefix" &&
        find . -type f ! -name installed-files -printf '%m %p\n' | sort)" ]
report $? 'make install copies dist/ with its modes, without a compiler'

(umask 077 && make_quietly install PREFIX="$work/of-root") &&
    find "$work/of-root" ! -perm -o=r -o -type d ! -perm -o=x >"$work/out" &&
    [ ! -s "$work/out" ] && make_quietly uninstall PREFIX="$work/of-root"
report $? 'under umask 077, too, others can read what is installed'

wanted=$(sed -n 's/^[0-7]\{3\} *[^ ]* *\(.*[^/]\)$/\1/p' packaging/files.txt |
    sed "s/VERSION/$(basename "$prefix"/share/modulefiles/weft/*)/")
[ -n "$wanted" ] && (cd "$prefix" && ls -d $wanted bin/weft share/man/man1/weft-run.1 \
    share/bash-completion/completions/weft) >"$work/out" 2>&1
report $? 'every file of packaging/files.txt is there'

make_quietly install PREFIX=/opt/weft DESTDIR="$work/image" &&
    [ "$(ls "$work/image")" = opt ] && diff <(files "$prefix") <(files "$work/image/opt/weft") &&
    make_quietly uninstall PREFIX=/opt/weft DESTDIR="$work/image" &&
    [ -z "$(ls "$work/image/opt")" ]
report $? 'DESTDIR stands in front of PREFIX, and only there'

# --- runs from there ------------------------------------------------------------------------------

name='a real MPI runs over Weft from the prefix'
if [ -x .env/mpi/openmpi/bin/mpiexec ]; then
    carries "$prefix/bin/weft"
    report $? "$name"
    mv "$prefix" "$work/moved" && mkdir "$work/links" &&
        ln -s ../moved/bin/weft "$work/links/weft" && carries "$work/links/weft"
    report $? 'and from a prefix that was moved, through a link'
    mv "$work/moved" "$prefix"
else
    skip "$name" 'Open MPI is not installed; scripts/setup.sh test installs it'
fi

# --- updates and other people's files -------------------------------------------------------------

inode=$(stat -c %i "$prefix/bin/weft")
: >"$prefix/lib/weft/libweft-old.so" && echo 'file lib/weft/libweft-old.so' \
    >>"$prefix/lib/weft/installed-files" && echo theirs >"$prefix/lib/weft/theirs" &&
    exec 3<"$prefix/bin/weft" && make_quietly install PREFIX="$prefix" &&
    [ ! -e "$prefix/lib/weft/libweft-old.so" ] &&
    [ "$(stat -c %i "$prefix/bin/weft")" != "$inode" ] &&
    cmp -s /dev/fd/3 "$prefix/bin/weft"
report $? 'an update takes away what is no longer there, and a running weft keeps its file'
exec 3<&-

make_quietly uninstall PREFIX="$prefix" && [ "$(files "$prefix")" = lib/weft/theirs ] &&
    refused 'nothing was installed' make_quietly uninstall PREFIX="$prefix" &&
    rm "$prefix/lib/weft/theirs"
report $? "uninstall leaves other people's files alone"
rm -rf "$prefix"
mkdir -p "$prefix/bin" && make_quietly install PREFIX="$prefix" &&
    make_quietly install PREFIX="$prefix" && make_quietly uninstall PREFIX="$prefix" &&
    [ "$(cd "$prefix" && find . | sort | tr '\n' ' ')" = '. ./bin ' ]
report $? 'uninstall leaves nothing but the folders that were there before'

# --- wrong use ------------------------------------------------------------------------------------

refused 'must be an absolute path' make_quietly install PREFIX=here &&
    refused 'name a folder' make_quietly install PREFIX=/ &&
    refused 'usage:' sh -c "packaging/install.sh remove >'$work/out' 2>&1" && : >"$work/file" &&
    refused "PREFIX=\$HOME/.local, needs no root" make_quietly install PREFIX="$work/file/below" &&
    mkdir -p "$work/false/lib/weft" && echo 'file ../../file' \
    >"$work/false/lib/weft/installed-files" &&
    refused 'a line that is not of this script' make_quietly uninstall PREFIX="$work/false" &&
    [ -e "$work/file" ]
report $? 'a relative prefix, a prefix below a file and a list that leaves the prefix are refused'
mkdir -p "$work/empty/packaging" && cp packaging/install.sh "$work/empty/packaging" &&
    refused 'run `make build` first' sh -c \
        "PREFIX='$work/none' '$work/empty/packaging/install.sh' install >'$work/out' 2>&1" &&
    [ ! -e "$work/none" ]
report $? 'without a build the refusal says what to run'

# --- what its readers make of it ------------------------------------------------------------------

make_quietly install PREFIX="$prefix" || cat "$work/out"

# warnings PAGE: what man(1) has against it.
warnings() { MANROFFOPT='' man --warnings=w -l "$1" 2>&1 >/dev/null; }
name='man(1) has nothing against the manual pages, and finds them'
if command -v man >/dev/null; then
    for page in "$prefix"/share/man/man1/*.1; do warnings "$page"; done >"$work/out"
    [ ! -s "$work/out" ] && MANPATH=$prefix/share/man MANWIDTH=80 man weft-run >"$work/out" 2>&1 &&
        grep -q '^ *--require-weft' "$work/out" && ! grep -qE '^.{90}' "$work/out"
    report $? "$name"
else
    skip "$name" 'man is not installed'
fi

for shell in bash zsh fish; do
    case $shell in
    bash) script=bash-completion/completions/weft ;;
    zsh) script=zsh/site-functions/_weft ;;
    fish) script=fish/vendor_completions.d/weft.fish ;;
    esac
    if command -v "$shell" >/dev/null; then
        "$shell" -n "$prefix/share/$script" >"$work/out" 2>&1 && [ ! -s "$work/out" ] &&
            grep -q require-weft "$prefix/share/$script"
        report $? "$shell reads the completions"
    else
        skip "$shell reads the completions" "$shell is not installed"
    fi
done

# What the modulefile does to PATH and MANPATH, in a shell that knows neither yet.
module_case='module load weft && command -v weft && man -w weft-run && man -w ls &&
    module unload weft && ! command -v weft'
for kind in modules lmod; do
    case $kind in
    modules) start=/usr/share/modules/init/bash ;;
    lmod) start=${LMOD_INIT:-/usr/share/lmod/lmod/init/bash} ;;
    esac
    if [ -r "$start" ]; then
        mv "$prefix" "$work/moved"
        env -i HOME="$work" PATH=/usr/bin:/bin TERM=dumb \
            MODULEPATH="$work/moved/share/modulefiles" \
            bash -c ". '$start'; $module_case" >"$work/out" 2>&1 &&
            grep -qx "$work/moved/bin/weft" "$work/out" &&
            grep -qx "$work/moved/share/man/man1/weft-run.1" "$work/out"
        report $? "the modulefile, from a moved prefix, by $start"
        mv "$work/moved" "$prefix"
    else
        skip "the modulefile by $kind" "$start is not there"
    fi
done

# The lines of README's section, as written, but for the build, which is done, in a folder that
# looks like this one: they write into it. The job is a short one here, over the Open MPI of the
# tests, and must end well.
job='/^weft run /d'
[ ! -x .env/mpi/openmpi/bin/mpiexec ] ||
    job='s/^\(weft run [^#]*[^# ]\) *#.*/timeout 60 \1 -m 8:8 -i 20 || exit/'
sed -n "/^## Install/,/^## /{/^\`\`\`/,/^\`\`\`/{/^\`\`\`/d;/^make build/d;$job;p}}" README.md \
    >"$work/lines"
grep -q '^make install' "$work/lines" && mkdir "$work/home" "$work/checkout" &&
    ln -s "$ROOT"/* "$ROOT/.env" "$work/checkout/" && rm -f "$work/checkout/exchange" &&
    (cd "$work/checkout" && HOME=$work/home PATH=/usr/bin:/bin \
        WEFT_MPI_PATH=$PWD/.env/mpi/openmpi bash -c ". '$work/lines'; type -p weft") \
        >"$work/out" 2>&1 && [ "$(tail -n 1 "$work/out")" = "$work/home/.local/bin/weft" ] &&
    grep -q 'provider' "$work/out" &&
    { [ ! -x .env/mpi/openmpi/bin/mpicc ] || [ -x "$work/checkout/exchange" ]; } &&
    HOME=$work/home make_quietly uninstall PREFIX="$work/home/.local" &&
    [ -z "$(ls -A "$work/home/.local" 2>/dev/null)" ]
report $? "README's install lines, as written"

summary
