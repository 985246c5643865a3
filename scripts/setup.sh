#!/bin/sh
# Set up the project on a fresh machine: a virtual environment, the tested set of packages, a working OpenGL.
set -eu
PYTHON=${PYTHON:-python3}
VENV=${VENV:-.venv}

"$PYTHON" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' || {
    echo "setup: $("$PYTHON" --version) found, Python 3.11 to 3.13 needed: make PYTHON=/path/to/python3.12 ..." >&2
    exit 1
}
if [ ! -x "$VENV/bin/pip" ]; then
    echo "setup: creating $VENV"
    "$PYTHON" -m venv "$VENV" || {
        echo "setup: this Python cannot create virtual environments; on Debian: apt-get install python3-venv" >&2
        exit 1
    }
fi

echo "setup: installing the packages of constraints.txt (about two minutes the first time)"
export PIP_DISABLE_PIP_VERSION_CHECK=1
"$VENV/bin/pip" install --quiet --no-warn-script-location -c constraints.txt "setuptools>=77" wheel
"$VENV/bin/pip" install --quiet --no-warn-script-location -c constraints.txt -e '.[dev,train]'

# Rendering needs EGL or OSMesa, and OpenCV needs libGL: install them where we may, else say what to install.
if ! "$VENV/bin/python" -m worldmodel.envs.gl; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        echo "setup: installing OpenGL libraries with apt-get"
        apt-get update -qq && apt-get install -y -qq libegl1 libgl1 libgl1-mesa-dri libosmesa6 libglib2.0-0 >/dev/null
        "$VENV/bin/python" -m worldmodel.envs.gl
    else
        exit 1 # the check above has said what is missing
    fi
fi
echo "setup: ready"
