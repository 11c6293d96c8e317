# SPDX-License-Identifier: Apache-2.0 OR MIT
# The front door: every target sets up what it needs first (scripts/setup.sh), so `make demo` and
# `make test` work on a fresh Debian 12.

SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help build build-mount install uninstall deb wheel packages check-packages demo test \
  tests-built ready check check-exports check-stores bench bench-network bench-mount readme \
  readme-hosts readme-collectives readme-shared-cores clean \
  setup-build setup-mount setup-peers judge-mount setup-demo setup-test setup-packages

PREFIX ?= /usr/local
BUILT := $(shell sed -n 's/^cargo //p' packaging/files.txt)
TARGET_FOLDER := $(or $(CARGO_TARGET_DIR),target)

help:
	@printf 'make %-21s%s\n' \
	  demo 'installs MPIs, builds, compares Weft with each MPI'\''s own transport (report/)' \
	  build 'builds dist/bin/weft and the libraries in dist/lib/weft' \
	  build-mount 'builds the bucket mount, dist/bin/weft-mount: minutes; needs Rust 1.94' \
	  install 'copies dist/ to PREFIX (/usr/local), below DESTDIR' \
	  uninstall 'removes what make install copied to PREFIX' \
	  deb 'makes the Debian packages, in target/packages' \
	  wheel 'makes the wheel for pip, in target/packages' \
	  packages 'makes all packages' \
	  check 'checks format, clippy, structure rules and documentation' \
	  test 'sets up what is missing, builds, runs all tests' \
	  check-packages 'lintian and other checkers; installs and uses each package' \
	  check-exports 'checks the output of weft export with code of AWS, Kubernetes and others' \
	  check-stores 'runs the tests of the mount'\''s store against two other S3 servers' \
	  judge-mount 'all of pjdfstest, and 100,000 steps of fsx, on a mounted bucket' \
	  bench 'the full comparison: half an hour (QUICK=1: minutes); page and data in report/' \
	  bench-network 'the same between hosts in namespaces: a quarter of an hour; report/network/' \
	  bench-mount 'weft-mount beside Mountpoint, s3fs and rclone: an hour; writes tables' \
	  readme 'latency and bandwidth: minutes; writes README'\''s tables and figure' \
	  readme-hosts 'latency between hosts: five minutes; writes its tables' \
	  readme-collectives 'collectives on one host: some minutes; writes their tables' \
	  readme-shared-cores 'collectives of 4 and 8 ranks that share cores: 20 minutes; writes tables' \
	  clean 'removes target/, dist/ and report/, but not .env/ with the MPIs'

setup-build:
	@scripts/setup.sh build
setup-mount:
	@scripts/setup.sh mount
setup-peers:
	@scripts/setup.sh peers
setup-demo: setup-build
	@scripts/setup.sh demo
setup-test: setup-build
	@scripts/setup.sh test
setup-packages: setup-build
	@scripts/setup.sh packages

# dist/ then holds Weft as it is installed; packaging/files.txt lists it. The bucket mount stands on
# AWS's SDK, 250 crates, which nothing else needs; so only `make build-mount` begins with it. From
# then on it is a part of dist/, of all that is built and packed from here, until `make clean`.
MOUNT ?= $(if $(wildcard dist/bin/weft-mount),mount)
build: setup-build
	cargo build --release --locked $(BUILT:%=-p %) $(if $(MOUNT),-p weft-daemon)
	@packaging/dist.sh $(TARGET_FOLDER)/release dist $(MOUNT)
build-mount: setup-mount
	@$(MAKE) --no-print-directory build MOUNT=mount

# Both copy or remove files, and build nothing.
install:
	@PREFIX='$(PREFIX)' DESTDIR='$(DESTDIR)' packaging/install.sh install
uninstall:
	@PREFIX='$(PREFIX)' DESTDIR='$(DESTDIR)' packaging/install.sh uninstall

# Into target/packages/: the Debian packages from dist/, the wheel from a build for older systems.
deb: setup-packages build
	@packaging/deb.sh
wheel: setup-packages
	@packaging/wheel.sh $(MOUNT)
packages: deb wheel
check-packages: packages
	@packaging/check.sh

demo: setup-demo build
	dist/bin/weft doctor || true
	dist/bin/weft bench compare --quick --out report

bench: setup-demo build
	-@scripts/scale.sh $(if $(QUICK),--quick) report/scale.txt
	dist/bin/weft bench compare --out report $(if $(QUICK),--quick)

# One cable without limits at both usual MTUs, and four paths.
bench-network: setup-demo build
	dist/bin/weft bench compare --testbed direct,mtu=1500 --testbed direct,mtu=9000 \
	  --testbed paths=4,rate=500mbit --benchmarks latency,bw,mbw_mr,alltoall -n 8 -m 1048576 \
	  --size-time 0.05 -r 3 --out report/network

# Only this builds peers: Mountpoint's library has 67 MB of C, rclone comes through Go's proxy.
PEERS := .env/peers
bench-mount: setup-peers build-mount
	cargo build --release --locked -p weft-bucket-server
	CARGO_TARGET_DIR=$(abspath $(PEERS))/target cargo build --release \
	  --manifest-path tests/mount/mountpoint-peer/Cargo.toml
	command -v go >/dev/null && GOBIN=$(abspath $(PEERS))/bin \
	  go install github.com/rclone/rclone@v1.76.0 || echo 'without rclone: there is no go'
	dist/bin/weft bench mount --limit 120 --server $(TARGET_FOLDER)/release/weft-bucket-server \
	  --peer weft=dist/bin/weft-mount --peer weft-async=dist/bin/weft-mount \
	  --peer weft-ttl=dist/bin/weft-mount --peer local= --peer s3fs=$$(command -v s3fs) \
	  --peer mountpoint=$(PEERS)/target/release/mountpoint-peer \
	  --peer mountpoint-ttl=$(PEERS)/target/release/mountpoint-peer \
	  $$([ -x $(PEERS)/bin/rclone ] && echo --peer rclone=$(PEERS)/bin/rclone) --out report/mount
	@scripts/readme-mount.py report/mount

judge-mount: setup-test
	cargo build --locked -p weft-daemon -p weft-bucket-server
	WEFT_PJDFSTEST= WEFT_FSX_STEPS=100000 tests/mount/run.sh posix programs

readme: setup-demo build
	dist/bin/weft bench compare --mpi openmpi,mpich,intel --transport weft,native,weft+plain \
	  --benchmarks latency,bw -r 8 --repeat-scale 0.5 --out report/readme
	@scripts/readme-results.py report/readme

# The tables of a message between two hosts.
readme-hosts: setup-demo build
	dist/bin/weft bench compare --testbed direct,mtu=1500 --testbed direct,mtu=9000 \
	  --mpi openmpi,mpich,intel,debian-openmpi --benchmarks latency -r 7 -m 8:1048576 \
	  --size-time 0.03 --out report/readme-hosts
	@scripts/readme-hosts.py report/readme-hosts

# The tables of collectives inside a host.
readme-collectives: setup-demo build
	dist/bin/weft bench compare --mpi openmpi,debian-openmpi,mpich,intel --transport weft,native \
	  --benchmarks barrier,bcast,reduce,allreduce,allgather,alltoall -n 2 -r 7 -m 8:1048576 \
	  --size-time 0.01 --out report/readme-collectives
	@scripts/readme-collectives.py report/readme-collectives

# The same of ranks that share cores.
readme-shared-cores: setup-demo build
	dist/bin/weft bench compare --mpi openmpi,debian-openmpi,mpich,intel --transport weft,native \
	  --benchmarks barrier,bcast,reduce,allreduce,allgather,alltoall,alltoallw -n 4,8 -r 6 \
	  -m 8:1048576 --size-time 0.01 --out report/readme-shared-cores
	@scripts/readme-shared-cores.py report/readme-shared-cores

tests-built: setup-build
	@scripts/test.sh --build

# What the tests need. Set-up waits for the network, and fat LTO for one processor: side by side the
# three take half the time on two cores.
ready: setup-test build tests-built

test:
	@$(MAKE) --no-print-directory -j ready
	@scripts/test.sh

check: setup-build
	@scripts/check.sh

# Their code is 60 MB of wheels, so this is no part of `make test`.
check-exports: build
	@scripts/setup.sh exports
	@tests/exports/run.sh

# S3 servers of others, from crates.io and through Go's proxy; no part of `make test`.
STORES := .env/stores
check-stores: setup-mount setup-test
	cargo install --quiet --root $(STORES) --features binary s3s-fs@0.14.1
	GOBIN=$(abspath $(STORES)/bin) go install github.com/versity/versitygw/cmd/versitygw@v1.8.0
	@tests/stores/run.sh

clean:
	rm -rf $(TARGET_FOLDER) dist report
