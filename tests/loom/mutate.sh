#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Do the models see a mistake? Weakens each release store, acquire load, exchange and fence of
# crates/ring, and each word of crates/collectives that ranks publish or observe while they wait for
# each other, one at a time and in a copy of the sources, and runs the models: those that still hold
# have not seen it. Some minutes; not part of `make test` (docs/testing.md).
#
#   tests/loom/mutate.sh [FILE:LINE]...   only these
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
target=$(realpath -m "${CARGO_TARGET_DIR:-target}/mutations")
git ls-files -z | grep -zvE '^(docs|tests/(mpi|report))/' | tar --null -T - -cf - |
    tar -xf - -C "$work"
seen=0 unseen=0
export CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16
# Mistakes show after few switches between threads; models that hold end sooner so.
export LOOM_MAX_PREEMPTIONS=2

# sites: FILE:LINE of every ordering that a comment or a fence says is needed, outside of tests. No
# model has calls that do not wait (Ready), and a rank that gives up has nothing more to publish.
sites() {
    awk '/^impl Ready/ { skips = 1 } /^}/ { skips = 0 }
        /\.(publish|observe)\(/ && !/GIVEN_UP/ && !skips { print FILENAME ":" FNR }' \
        crates/collectives/src/exchange.rs
    grep -nE 'Ordering::(Release|Acquire|AcqRel)|fence\(Ordering::SeqCst\)' crates/ring/src/*.rs \
        crates/ring/src/lane/*.rs |
        grep -vE '(tests|models)\.rs:|^[^:]*:[0-9]+: *//' | cut -d: -f1,2
}

mutate() {
    local file=${1%:*} line=${1#*:} text status crate=weft-ring
    [[ $file != crates/collectives/* ]] || crate=weft-collectives
    text=$(sed -n "${line}s/^ *//p" "$file")
    sed -i -E "${line}s/Ordering::(Release|AcqRel|Acquire)/Ordering::Relaxed/
        ${line}s/fence\(Ordering::SeqCst\);//
        ${line}s/\.publish\(/.set(/
        ${line}s/\.observe\(/.get(/" "$work/$file"
    (cd "$work" && RUSTFLAGS='--cfg loom' timeout 600 cargo test --release --quiet --locked \
        -p "$crate" --lib --target-dir "$target" -- models no_chunk) \
        >"$work/result" 2>&1
    status=$?
    cp "$file" "$work/$file"
    if grep -qE '^error(\[|:) ' "$work/result" && ! grep -q '^test result' "$work/result"; then
        printf 'not built: %s: %s\n' "$1" "$text"
        unseen=$((unseen + 1))
    elif [ "$status" = 0 ]; then
        printf 'not seen: %s: %s\n' "$1" "$text"
        unseen=$((unseen + 1))
    else
        printf 'seen: %s: %s (%s)\n' "$1" "$text" "$(sed -n '
            s/^test \(.*\) \.\.\. FAILED$/\1/p
            s/^    \([a-z_:]*models[a-z_:]*\)$/\1/p' "$work/result" |
            sort -u | head -n 2 | paste -sd ' ')"
        seen=$((seen + 1))
    fi
}

[ $# -gt 0 ] || mapfile -t all < <(sites)
for site in "${@:-${all[@]}}"; do mutate "$site"; done
printf '%s of %s mistakes seen\n' "$seen" $((seen + unseen))
[ "$unseen" = 0 ]
