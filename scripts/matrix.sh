#!/bin/sh
# The set-up and the tests on every promised Python that is found here, each in an environment of its own under
# build/matrix; arguments go to pytest.
#   sh scripts/matrix.sh            set up and test all of them
#   sh scripts/matrix.sh --list     only name the interpreters
#   MUJOCO_GL=osmesa sh scripts/matrix.sh tests/envs
set -u
cd "$(dirname "$0")/.."

# The interpreter of version $1: on the PATH, or one of pyenv's, newest last.
interpreter() {
    for python in "python$1" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"$1"*/bin/python; do
        "$python" -c "import sys, venv; sys.exit('%d.%d' % sys.version_info[:2] != '$1')" 2>/dev/null && found=$python
    done
    [ -n "${found:-}" ] && command -v "$found"
    unset found
}

failed=
for version in 3.11 3.12 3.13; do
    python=$(interpreter $version) || {
        echo "matrix: no Python $version found"
        continue
    }
    echo "matrix: Python $version is $python"
    [ "${1:-}" != --list ] || continue
    make --no-print-directory test PYTHON="$python" VENV="build/matrix/$version" ARGS="$*" || failed="$failed $version"
done
[ -z "$failed" ] || {
    echo "matrix: failed on Python$failed" >&2
    exit 1
}
