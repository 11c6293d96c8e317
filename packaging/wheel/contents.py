# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What the wheel holds, and the systems that it is for: packaging/wheel.sh builds for this glibc."""

from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PLATFORM = "manylinux_2_28_x86_64"


class Contents(BuildHookInterface):
    """Hatchling asks it before it writes the wheel."""

    PLUGIN_NAME = "custom"

    def initialize(self, version, build_data):
        """Names each file of tree/. None is Python, so any Python 3 will do; the rest is native."""
        tree = Path(self.root) / "tree"
        files = [path.relative_to(tree) for path in tree.rglob("*") if path.is_file()]
        for path in sorted(files):
            if path.parts[0] == "bin":
                build_data["shared_scripts"][f"tree/{path}"] = path.name
            else:
                build_data["shared_data"][f"tree/{path}"] = str(path)
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{PLATFORM}"
