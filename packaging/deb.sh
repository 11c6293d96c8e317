#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Makes the Debian package from dist/ with cargo-deb; compiles nothing. Usage: packaging/deb.sh,
# which prints the path of the package. If `make build-mount` put the bucket mount into dist/, the
# package contains it. tools/weft/Cargo.toml has the content of its control file.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
[ -x dist/bin/weft ] || { echo 'deb.sh: dist/ is empty; run `make build` first' >&2; exit 1; }
out=target/packages image=target/packages/deb also=
[ ! -x dist/bin/weft-mount ] || also=mount
rm -rf "$image"
mkdir -p "$image/usr"
version=$(sed -n '/^\[workspace.package\]/,/^$/s/^version = "\(.*\)"$/\1/p' Cargo.toml)
cp -r dist/bin dist/lib dist/share "$image/usr/"

# What Debian has another place for: debian/copyright for licences, vendor-completions for zsh. A
# package is on the PATH without a module.
share=$image/usr/share
rm -r "$share/modulefiles" "$share"/doc/weft/LICENSE-*
mkdir -p "$share/zsh/vendor-completions"
mv "$share/zsh/site-functions/_weft" "$share/zsh/vendor-completions/_weft"
rmdir "$share/zsh/site-functions"
mv "$share/doc/weft/CHANGELOG.md" "$share/doc/weft/NEWS.md"
packaging/licences.py debian $also >"$image/copyright"
packaging/licences.py texts $also | gzip -9n >"$share/doc/weft/linked-crates.txt.gz"

strip --strip-unneeded --remove-section=.comment --remove-section=.note "$image"/usr/bin/* \
    "$image"/usr/lib/weft/*.so
moment=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}
maintainer=$(sed -n 's/^maintainer = "\(.*\)"$/\1/p' tools/weft/Cargo.toml)
printf 'weft (%s-1) unstable; urgency=medium\n\n  * %s\n\n -- %s  %s\n' "$version" \
    'NEWS.md in this folder says what changed.' "$maintainer" "$(date -uRd "@$moment")" \
    >"$image/changelog"

PATH=$PWD/.env/packaging/bin:$PATH SOURCE_DATE_EPOCH=$moment cargo-deb deb --quiet --no-build \
    --no-strip --locked --offline -p weft --output "$out/weft_$version-1_amd64.deb"
