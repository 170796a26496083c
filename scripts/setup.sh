#!/usr/bin/env bash
# Makes a checkout ready: .venv with everything installed, Java, a browser for the tests.
#
#   scripts/setup.sh [python] [java] [browser]     (without arguments: all three)
#
# Run again, it looks at what is there and is done in a moment. What cannot be had is said in one line.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly venv=.venv
readonly stamp=$venv/.lagwise-setup
readonly log=$venv/setup.log
readonly minimum_java=17

say() { printf 'setup: %s\n' "$*" >&2; }
fail() { say "$*"; exit 1; }

# Runs a command with its output in the log; on failure the log's last lines are the explanation.
quietly() {
    if ! "$@" >>"$log" 2>&1; then
        tail -n 5 "$log" | sed 's/^/setup:   /' >&2
        return 1
    fi
}

is_root() { [ "$(id -u)" = 0 ]; }
can_apt() { is_root && command -v apt-get >/dev/null; }

apt_updated=
apt_install() {
    mkdir -p "$venv"
    if [ -z "$apt_updated" ]; then
        quietly apt-get update -q || true # an old index may still do
        apt_updated=yes
    fi
    DEBIAN_FRONTEND=noninteractive quietly apt-get install -q -y --no-install-recommends "$@"
}

find_python() {
    local candidate
    for candidate in "${PYTHON:-}" python3 python3.13 python3.12 python3.11; do
        if [ -n "$candidate" ] && command -v "$candidate" >/dev/null &&
            "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            command -v "$candidate"
            return
        fi
    done
    return 1
}

fingerprint() { { cat pyproject.toml scripts/setup.sh; pwd; "$1" -c 'import sys; print(sys.version)'; } | sha256sum; }

set_up_python() {
    local python
    if [ -x $venv/bin/python ] && [ -f $stamp ] && [ "$(fingerprint $venv/bin/python)" = "$(cat $stamp)" ]; then
        return
    fi
    python=$(find_python) || fail "there is no Python 3.11 or newer: install python3.11 (or set PYTHON to one)"
    if ! [ -x $venv/bin/pip ]; then
        say "making $venv with $($python --version)"
        if ! $python -m venv --clear $venv >/dev/null 2>&1; then
            # Debian ships Python without what venv needs.
            can_apt || fail "$python cannot make a virtual environment: install python3-venv"
            apt_install python3-venv "python$($python -c 'import sys; print("%d.%d" % sys.version_info[:2])')-venv" ||
                apt_install python3-venv || fail "python3-venv could not be installed"
            $python -m venv --clear $venv >/dev/null || fail "$python cannot make a virtual environment"
        fi
    fi
    say "installing Lagwise and what it needs into $venv (the first time takes minutes)"
    : >"$log"
    quietly $venv/bin/python -m pip install --disable-pip-version-check -e '.[all,dev]' ||
        fail "pip could not install the packages; is this machine offline? All of its output is in $log"
    fingerprint $venv/bin/python >$stamp
}

java_version() {
    local java=java
    [ -z "${JAVA_HOME:-}" ] || java=$JAVA_HOME/bin/java
    "$java" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1
}

set_up_java() {
    local version package
    version=$(java_version 2>/dev/null || true)
    [ "${version:-0}" -lt $minimum_java ] || return 0
    if [ -n "${JAVA_HOME:-}" ]; then
        fail "JAVA_HOME is $JAVA_HOME, which is not Java $minimum_java or newer: change it, or unset it"
    fi
    can_apt || fail "Lagwise needs Java $minimum_java or newer: install openjdk-17-jre-headless (or set JAVA_HOME)"
    say "installing Java"
    for package in openjdk-17-jre-headless openjdk-21-jre-headless default-jre-headless; do
        if apt_install $package 2>/dev/null && [ "$(java_version || echo 0)" -ge $minimum_java ]; then
            return
        fi
    done
    fail "Java could not be installed by apt; is this machine offline? The output is in $log"
}

set_up_browser() {
    local candidate
    for candidate in chromium chromium-browser google-chrome; do
        command -v $candidate >/dev/null && return
    done
    if ! can_apt; then
        say "there is no Chromium: the browser tests will be skipped (install the package chromium)"
        return
    fi
    say "installing Chromium for the browser tests"
    apt_install chromium || say "Chromium could not be installed: the browser tests will be skipped"
}

[ $# -gt 0 ] || set -- python java browser
for part in "$@"; do
    case $part in
    python | java | browser) "set_up_$part" ;;
    *) fail "there is no part called $part; there are: python, java, browser" ;;
    esac
done
