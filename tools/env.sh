# Sourced by the scripts beside it: makes .venv in the checkout the environment they run in.
# setup_venv installs what pyproject.toml asks for, by package name, once per change of that list.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
jobs=${WEFT_JOBS:-$(nproc 2>/dev/null || getconf _NPROCESSORS_ONLN)}
export PIP_DISABLE_PIP_VERSION_CHECK=1

# setup_venv EXTRA...: dependencies of the package, of its build, and of the extras named.
setup_venv() {
  local python=${PYTHON:-python3}
  if [[ ! -x .venv/bin/python ]]; then
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
      echo "weft needs Python 3.11 or newer; $python is $("$python" -V). Set PYTHON." >&2
      exit 1
    }
    "$python" -m venv .venv
  fi
  export VIRTUAL_ENV="$root/.venv" PATH="$root/.venv/bin:$PATH"
  python tools/install_deps.py "$@"
}

# build_package: installs the package into .venv; build/package keeps the object files.
build_package() {
  CMAKE_BUILD_PARALLEL_LEVEL=$jobs python -m pip install -q --no-build-isolation --no-deps \
    --force-reinstall -C build-dir=build/package .
}
