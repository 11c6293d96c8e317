#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Copies what `make build` made in dist/ to a prefix, and removes it again. Needs no compiler and no
# network. Usage: packaging/install.sh install|uninstall, with PREFIX (/usr/local) and
# DESTDIR (none) in the environment; the build of a package names a DESTDIR, in front of the prefix.
#
# lib/weft/installed-files lists the installed files, and the folders that were made for them. From
# this list an update removes files that it no longer has, and uninstall removes everything, even if
# the checkout has changed since.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# Others are to use what root installs, also where root's own files are private.
umask 022

say() { printf 'make %s: %s\n' "$action" "$*" >&2; }
die() { say "$*"; exit 1; }

action=${1:-}
case $action in
install | uninstall) ;;
*) printf 'usage: packaging/install.sh install|uninstall\n' >&2; exit 2 ;;
esac
prefix=${PREFIX:-/usr/local}
[[ $prefix == /* ]] || die "PREFIX is \"$prefix\"; it must be an absolute path"
root=${DESTDIR:-}${prefix%/}
[ -n "$root" ] || die 'PREFIX is "/"; name a folder, such as /usr/local'
list=lib/weft/installed-files
files=() folders=()

# make_folder PLACE: with those above it; notes each that was not there. The prefix is `.`.
make_folder() {
    local place=$1 folder=$root/$1
    [ "$place" != . ] || folder=$root
    [ ! -d "$folder" ] || return 0
    if [ "$place" = . ]; then
        mkdir -p "$(dirname "$root")"
    else
        make_folder "$(dirname "$place")"
    fi || no_room "$folder"
    mkdir "$folder" || no_room "$folder"
    folders+=("$place")
}

no_room() {
    die "cannot write $1; a prefix of your own, such as PREFIX=\$HOME/.local, needs no root"
}

# put PLACE: by rename, so that a running job keeps the file that it mapped.
put() {
    make_folder "$(dirname "$1")"
    install -m "$(stat -c %a "dist/$1")" "dist/$1" "$root/$1.new" ||
        no_room "$root/$1"
    mv -f "$root/$1.new" "$root/$1"
    files+=("$1")
}

# read_list: what an earlier install has noted, into old_files and old_folders. A line that leaves
# the prefix is not ours.
read_list() {
    local kind place
    old_files=() old_folders=()
    [ -f "$root/$list" ] || return 0
    while read -r kind place; do
        [[ -n $place && $place != /* && /$place/ != */../* ]] ||
            die "$root/$list has a line that is not of this script: $kind $place; remove it"
        case $kind in
        file) old_files+=("$place") ;;
        folder) old_folders+=("$place") ;;
        esac
    done <"$root/$list"
}

install_files() {
    local file
    [ -x dist/bin/weft ] || die 'dist/bin/weft is not there; run `make build` first'
    read_list
    while IFS= read -r file; do put "$file"; done < <(cd dist && find . -type f | cut -c3- | sort)
    make_folder lib/weft
    files+=("$list")
    comm -13 <(printf '%s\n' "${files[@]}" | sort) \
        <(printf '%s\n' "${old_files[@]}" | sort) |
        while IFS= read -r file; do [ -z "$file" ] || rm -f "$root/$file"; done
    {
        printf 'file %s\n' "${files[@]}"
        # In the order in which they can be removed: the innermost first.
        { printf '%s\n' "${old_folders[@]}" "${folders[@]}"; } | sed '/^$/d' | sort -ru |
            sed 's/^/folder /'
    } >"$root/$list.new"
    mv -f "$root/$list.new" "$root/$list"
    say "Weft is in $root; add $prefix/bin to PATH if it is not there"
}

uninstall_files() {
    local place
    [ -f "$root/$list" ] || die "$root/$list is not there, so nothing was installed in $root"
    read_list
    for place in "${old_files[@]}"; do rm -f "$root/$place"; done
    for place in "${old_folders[@]}"; do
        [ "$place" != . ] || place=
        rmdir --ignore-fail-on-non-empty "$root/$place" 2>/dev/null || true
    done
    say "removed ${#old_files[@]} files from $root"
}

"${action}_files"
