#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Fills a folder with Weft as it is installed: bin/, lib/weft/ and share/, which `make install` and
# the packages copy. What is in the list, packaging/files.txt, is put there; what is no longer in it
# goes. Usage: packaging/dist.sh BUILT [FOLDER [mount]], where BUILT holds what cargo made, as
# target/release, and FOLDER is dist; with the third word the bucket mount is part of it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
built=${1:?usage: packaging/dist.sh BUILT [FOLDER [mount]]} dist=${2:-dist} also=${3:-}
version=$(sed -n '/^\[workspace.package\]/,/^$/s/^version = "\(.*\)"$/\1/p' Cargo.toml)
placed=()
pages=$(mktemp -d)
trap 'rm -rf "$pages"' EXIT

# place MODE SOURCE PLACE: by rename, so that a running job keeps the file that it mapped; a file
# that is the same stays.
place() {
    local mode=$1 source=$2 place=$3
    placed+=("$place")
    cmp -s "$source" "$dist/$place" && return
    install -D -m "$mode" "$source" "$dist/$place.new"
    mv "$dist/$place.new" "$dist/$place"
}

place_listed() {
    local mode source place file
    while read -r mode source place; do
        if [ -n "$also" ] && [ "$mode" = "$also" ]; then
            read -r mode source place <<<"$source $place"
        fi
        [[ $mode == [0-7]* ]] || continue
        source=${source/#BUILT/$built} place=${place/VERSION/$version}
        # shellcheck disable=SC2086 # a pattern, meant to be expanded
        for file in $source; do
            place "$mode" "$file" "$place$([[ $place != */ ]] || basename "$file")"
        done
    done <packaging/files.txt
}

# From the command that was just built, so pages and completions are those of its options.
place_written() {
    local page shell
    mkdir "$pages/man1"
    "$built/weft" manual "$pages/man1"
    for page in "$pages"/man1/*.1; do place 644 "$page" "share/man/man1/${page##*/}"; done
    for shell in bash zsh fish; do "$built/weft" completions "$shell" >"$pages/$shell"; done
    place 644 "$pages/bash" share/bash-completion/completions/weft
    place 644 "$pages/zsh" share/zsh/site-functions/_weft
    place 644 "$pages/fish" share/fish/vendor_completions.d/weft.fish
}

# remove_others: what an earlier build has left.
remove_others() {
    local file
    comm -23 <(cd "$dist" && find . ! -type d | sed 's|^\./||' | sort) \
        <(printf '%s\n' "${placed[@]}" | sort) |
        while IFS= read -r file; do rm -f "$dist/$file"; done
    find "$dist" -mindepth 1 -type d -empty -delete
}

place_listed
place_written
remove_others
