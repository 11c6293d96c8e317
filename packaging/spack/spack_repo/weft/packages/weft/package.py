# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Weft for Spack: `spack repo add packaging/spack/spack_repo/weft`, then `spack install weft`."""

from spack_repo.builtin.build_systems import cargo
from spack_repo.builtin.build_systems.cargo import CargoPackage

from spack.package import *


class Weft(CargoPackage):
    """Faster MPI on ordinary machines and clouds, without root or code changes: a libfabric
    provider for unmodified programs of Open MPI, MPICH and Intel MPI, with the tools around it."""

    homepage = "https://github.com/weft-fabric/weft"
    git = "https://github.com/weft-fabric/weft.git"

    # CargoPackage names none, and `spack audit packages` wants one.
    default_buildsystem = "cargo"

    license("Apache-2.0 OR MIT")

    version("main", branch="main")

    variant("mount", default=False, description="Build weft-mount, which mounts S3 buckets")

    depends_on("c", type="build")
    depends_on("rust@1.88:", type="build")
    depends_on("rust@1.94:", type="build", when="+mount")

    requires("platform=linux", msg="Weft runs on Linux")
    requires("target=x86_64:", msg="Weft runs on x86-64")


class CargoBuilder(cargo.CargoBuilder):
    """Weft is a command with its libraries; `cargo install` would leave out the libraries."""

    @property
    def build_args(self):
        with open(join_path(self.build_directory, "packaging", "files.txt")) as listed:
            packages = next(line.split()[1:] for line in listed if line.startswith("cargo "))
        if self.spec.satisfies("+mount"):
            packages.append("weft-daemon")
        return ["--release", "--locked"] + [f"--package={name}" for name in packages]

    @property
    def check_args(self):
        return ["--locked", "-p", "weft-launch"]

    def build(self, pkg, spec, prefix):
        with working_dir(self.build_directory):
            pkg.module.cargo("build", *self.std_build_args, *self.build_args)
            also = ["mount"] if spec.satisfies("+mount") else []
            Executable("packaging/dist.sh")(join_path("target", "release"), "dist", *also)

    def install(self, pkg, spec, prefix):
        with working_dir(self.build_directory):
            Executable("packaging/install.sh")("install", extra_env={"PREFIX": str(prefix)})
