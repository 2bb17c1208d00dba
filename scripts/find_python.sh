#!/bin/sh
# Prints the path of a CPython 3.10 that can make virtual environments. Launchpad has no wheel for 3.11 or later.

answers() {
    "$1" -c 'import ensurepip, platform, sys, venv
ok = sys.version_info[:2] == (3, 10) and platform.python_implementation() == "CPython"
sys.exit(not ok)' >/dev/null 2>&1
}

# pyenv puts a python3.10 on PATH that fails unless that version is selected, hence the look at its folders.
for python in \
    python3.10 \
    "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.10.*/bin/python3.10 \
    "${UV_PYTHON_INSTALL_DIR:-$HOME/.local/share/uv/python}"/cpython-3.10.*/bin/python3.10
do
    if answers "$python"; then
        command -v "$python"
        exit 0
    fi
done

echo "No CPython 3.10 with its venv module was found: get one with 'pyenv install 3.10', 'uv python install 3.10'" \
    "or, on Ubuntu 22.04, 'apt-get install python3.10-venv', and run make again." >&2
exit 1
