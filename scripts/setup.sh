#!/bin/sh
# Set up the project on a fresh machine: a virtual environment, the tested set of packages, a working OpenGL.
#   PYTHON=/path/to/python3.12   the interpreter            VENV=.venv   where the environment goes
#   TORCH=cpu                    torch's small CPU wheel    EXTRAS=dev,train   the optional parts
set -eu
cd "$(dirname "$0")/.."
PYTHON=${PYTHON:-python3}
VENV=${VENV:-.venv}
TORCH=${TORCH:-}
EXTRAS=${EXTRAS:-dev,train}
TORCH_INDEX=${TORCH_INDEX:-https://download.pytorch.org/whl/cpu}
RUN=$VENV/bin/python
LOG=$VENV/setup.log

say() { echo "setup: $*"; }
fail() {
    say "$*" >&2
    exit 1
}

# What went wrong in a log of pip's, and the way out, in two lines.
explain() {
    package=$(sed -n \
        -e 's/.*Failed building wheel for \([^ ]*\).*/\1/p' \
        -e 's/.*No matching distribution found for \([^ ]*\).*/\1/p' \
        -e 's/.*Cannot install \([^ ,]*\).*/\1/p' "$LOG" | head -n 1)
    : "${package:=a package}"
    if grep -q 'No space left on device' "$LOG"; then
        why="the disk is full" out="free 7 GB where $VENV lies and in ${TMPDIR:-/tmp} (make it another disk by TMPDIR=)"
    elif grep -qE 'Failed building wheel|Failed to build|metadata-generation-failed' "$LOG"; then
        why="$package has no wheel for $("$RUN" --version) here, and building it failed"
        out="take another Python from 3.11 to 3.13 on 64-bit Linux: make PYTHON=/path/to/python3.12 ..."
    elif grep -qE 'ProxyError|NewConnectionError|name resolution|ConnectTimeout|timed out|SSLError|Network is unreachable' "$LOG"; then
        why="no package index was reached for $package"
        out="check the network; behind a proxy: export HTTPS_PROXY=http://host:port, and PIP_CERT=file where it has a certificate of its own"
    elif grep -qE 'No matching distribution found|ResolutionImpossible' "$LOG"; then
        why="no $package that constraints.txt allows was found for $("$RUN" --version): the package index lacks it, or none was reached"
        out="check the network, and which index is in use (pip config list, PIP_INDEX_URL), or take another Python from 3.11 to 3.13"
    else
        why="pip failed: $(grep -v '^\[notice\]' "$LOG" | tail -n 1)" out="read the whole log"
    fi
    say "$why" >&2
    say "way out: $out (all that pip said: $LOG)" >&2
}

# pip install, with a line for whatever takes long to download.
pip_install() {
    { "$RUN" -m pip install --no-warn-script-location --progress-bar off "$@" 2>&1 || touch "$LOG.failed"; } |
        tee -a "$LOG" | while IFS= read -r line; do
        case $line in
        *Downloading*\([5-9][0-9].*\ MB\) | *Downloading*\([1-9][0-9][0-9].*\ MB\) | *Downloading*\ GB\)) echo "  ${line##* Downloading }" ;;
        esac
    done
    [ ! -e "$LOG.failed" ] || {
        explain
        exit 1
    }
}

"$PYTHON" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' ||
    fail "$("$PYTHON" --version 2>&1) found, Python 3.11 to 3.13 needed: make PYTHON=/path/to/python3.12 ..."
if ! "$RUN" -m pip --version >/dev/null 2>&1; then
    say "creating $VENV with $("$PYTHON" --version)"
    "$PYTHON" -m venv --clear "$VENV" ||
        fail "this Python cannot create virtual environments; on Debian: apt-get install python3-venv"
elif [ "$("$RUN" --version)" != "$("$PYTHON" --version)" ]; then
    say "$VENV has $("$RUN" --version) and keeps it; for $("$PYTHON" --version) give VENV=another-folder, or: make clean"
fi
rm -f "$LOG" "$LOG.failed"
export PIP_DISABLE_PIP_VERSION_CHECK=1

pinned() { sed -n "s/^$1==\([^ ;]*\).*/\1/p" constraints.txt; }
if ! "$RUN" -c 'from importlib.metadata import version; version("torch")' 2>/dev/null; then
    if [ "$TORCH" = cpu ]; then
        say "downloading about 0.6 GB, 2 GB on disk (torch without CUDA): two minutes or so"
        pip_install --no-deps --index-url "$TORCH_INDEX" "torch==$(pinned torch)"
    else
        say "downloading about 3.1 GB, 6 GB on disk, where pip finds torch's standard wheel for Linux (CUDA); 0.6 GB with TORCH=cpu"
    fi
fi
say "installing the packages of constraints.txt into $VENV"
pip_install -c constraints.txt "setuptools>=77" wheel
pip_install -c constraints.txt --no-build-isolation -e ".[$EXTRAS]"
# dm_control requires labmaze, which has no wheel for Python 3.13; pyproject.toml lists what else it requires.
if "$RUN" -c 'import sys; sys.exit(sys.version_info[:2] < (3, 13))'; then
    pip_install --no-deps "dm-control==$(pinned dm-control)"
fi

# Rendering needs EGL or OSMesa, and OpenCV needs libGL: install them where we may, else say what to install.
check() {
    "$RUN" -m worldmodel.envs.check && return
    code=$?
    [ $code -lt 128 ] || say "drawing a frame ended with signal $((code - 128)); try MUJOCO_GL=osmesa, or: $RUN -m worldmodel.scripts doctor" >&2
    return $code
}
if ! check; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        say "installing OpenGL libraries with apt-get"
        apt-get update -qq && apt-get install -y -qq libegl1 libgl1 libgl1-mesa-dri libosmesa6 libglib2.0-0 >/dev/null
        check
    else
        exit 1 # the check has said what is missing
    fi
fi
say "ready"
