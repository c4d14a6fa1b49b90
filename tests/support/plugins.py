"""Which PJRT plugins for CPU are installed; as a script, their paths with colons between them."""

import importlib.util
from pathlib import Path

# Packages of the extra `test`, and the libraries in them: the version 0.81 of PJRT's interface, and
# 0.115.
LIBRARIES = {
    "xla_plugins": "xla_cpu_pjrt/xla_cpu_pjrt.so",
    "lammps_jax_pjrt_cpu": "pjrt_c_api_cpu_plugin.so",
}


def plugin_paths() -> list[str]:
    found = []
    for package, library in LIBRARIES.items():
        spec = importlib.util.find_spec(package)
        for folder in (spec and spec.submodule_search_locations) or ():
            if (Path(folder) / library).is_file():
                found.append(str(Path(folder) / library))
    return found


if __name__ == "__main__":
    print(":".join(plugin_paths()))
