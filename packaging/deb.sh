#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Makes the Debian packages from dist/ with cargo-deb; compiles nothing. Usage: packaging/deb.sh,
# which prints the paths of the packages: weft and, if `make build-mount` put the bucket mount into
# dist/, weft-mount. tools/weft and mount/daemon have the contents of their control files.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
[ -x dist/bin/weft ] || { echo 'deb.sh: dist/ is empty; run `make build` first' >&2; exit 1; }
out=target/packages
version=$(sed -n '/^\[workspace.package\]/,/^$/s/^version = "\(.*\)"$/\1/p' Cargo.toml)
moment=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}

# complete IMAGE PACKAGE CRATES: what each package has: debian/copyright and the texts for these
# crates of licences.py, and Debian's changelog. Its programs are stripped.
complete() {
    local image=$1 package=$2 crates=$3 maintainer doc=$1/usr/share/doc/$2
    mkdir -p "$doc"
    packaging/licences.py debian $crates >"$image/copyright"
    packaging/licences.py texts $crates | gzip -9n >"$doc/linked-crates.txt.gz"
    find "$image/usr" -type f \( -path '*/bin/*' -o -name '*.so' \) -exec \
        strip --strip-unneeded --remove-section=.comment --remove-section=.note {} +
    maintainer=$(sed -n 's/^maintainer = "\(.*\)"$/\1/p' tools/weft/Cargo.toml)
    printf '%s (%s-1) unstable; urgency=medium\n\n  * %s\n\n -- %s  %s\n' "$package" "$version" \
        'NEWS.md in /usr/share/doc/weft says what changed.' "$maintainer" \
        "$(date -uRd "@$moment")" >"$image/changelog"
}

# pack PACKAGE CRATE: by what this crate's Cargo.toml says.
pack() {
    PATH=$PWD/.env/packaging/bin:$PATH SOURCE_DATE_EPOCH=$moment cargo-deb deb --quiet --no-build \
        --no-strip --locked --offline -p "$2" --output "$out/$1_$version-1_amd64.deb"
}

image=$out/deb share=$out/deb/usr/share
rm -rf "$image"
mkdir -p "$image/usr"
cp -r dist/bin dist/lib dist/share "$image/usr/"
# It has a package of its own, so that this one is the same on each builder's machine.
rm -f "$image/usr/bin/weft-mount"
# What Debian has another place for: debian/copyright for licences, vendor-completions for zsh. A
# package is on the PATH without a module.
rm -r "$share/modulefiles" "$share"/doc/weft/LICENSE-*
mkdir -p "$share/zsh/vendor-completions"
mv "$share/zsh/site-functions/_weft" "$share/zsh/vendor-completions/_weft"
rmdir "$share/zsh/site-functions"
mv "$share/doc/weft/CHANGELOG.md" "$share/doc/weft/NEWS.md"
complete "$image" weft ''
pack weft weft

image=$out/deb-mount
rm -rf "$image" "$out"/weft-mount_*.deb
[ -x dist/bin/weft-mount ] || exit 0
grep -qF "weft (= $version-1)" mount/daemon/Cargo.toml || {
    echo "deb.sh: weft-mount must depend on weft (= $version-1); mount/daemon/Cargo.toml names" \
        'another version' >&2
    exit 1
}
mkdir -p "$image/usr/bin"
cp dist/bin/weft-mount "$image/usr/bin/"
complete "$image" weft-mount mount-alone
pack weft-mount weft-daemon
