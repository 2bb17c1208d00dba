#!/bin/sh
# Prints the path of a CPython 3.11 or 3.10 that can make virtual environments. Reverb has no wheel for 3.12 or later.

answers() {
    "$1" -c 'import ensurepip, platform, sys, venv
ok = sys.version_info[:2] in ((3, 10), (3, 11)) and platform.python_implementation() == "CPython"
sys.exit(not ok)' >/dev/null 2>&1
}

# pyenv puts a python3.11 on PATH that fails unless that version is selected, hence the look at its folders.
for version in 3.11 3.10
do
    for python in \
        "python$version" \
        "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"$version".*/bin/"python$version" \
        "${UV_PYTHON_INSTALL_DIR:-$HOME/.local/share/uv/python}"/cpython-"$version".*/bin/"python$version"
    do
        if answers "$python"; then
            command -v "$python"
            exit 0
        fi
    done
done

echo "No CPython 3.11 or 3.10 with its venv module was found: get one with 'pyenv install 3.11', 'uv python install" \
    "3.11' or, on Debian 12, 'apt-get install python3.11-venv', and run make again." >&2
exit 1
