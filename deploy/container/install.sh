#!/bin/sh
# The steps of the Containerfile, as a script: it also runs where there is no container engine.
#
#   install.sh lagwise REQUIREMENTS WHEELS TARGET    a virtual environment with Lagwise and all that it needs
#   install.sh java                                  the JVM of Spark, by apt (root)
#   install.sh account                               the account of the image, and its folder of the data (root)
set -eu

case ${1:-} in
lagwise)
    requirements=$2 wheels=$3 target=$4
    set -- "$wheels"/lagwise-*.whl
    if [ $# -ne 1 ] || ! [ -f "$1" ]; then
        echo "install.sh: there must be exactly one wheel of Lagwise in $wheels: remove old ones, run make packages" >&2
        exit 1
    fi
    python3 -m venv "$target"
    # Every package in the version and with the hash of the lock file; then Lagwise itself, which must fit to them.
    # pyspark is on PyPI as a source archive only (of jars and Python: there is nothing to compile).
    "$target/bin/python" -m pip install --no-cache-dir --disable-pip-version-check --require-hashes \
        --only-binary :all: --no-binary pyspark --no-deps -r "$requirements"
    "$target/bin/python" -m pip install --no-cache-dir --disable-pip-version-check --no-deps "$1"
    "$target/bin/python" -m pip check
    # Nothing is installed in a running container.
    "$target/bin/python" -m pip uninstall --yes --quiet pip setuptools
    "$target/bin/lagwise" --version
    ;;
java)
    apt-get update -q
    DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends openjdk-17-jre-headless
    rm -rf /var/lib/apt/lists/*
    java -version
    ;;
account)
    # The JVM and Hadoop's classes ask for the name and the home of the account: without one, Spark does not start.
    groupadd --gid 10001 lagwise
    useradd --uid 10001 --gid 10001 --home-dir /tmp --no-create-home --no-log-init --shell /usr/sbin/nologin lagwise
    mkdir -p /var/lib/lagwise
    chown 10001:10001 /var/lib/lagwise
    chmod 0700 /var/lib/lagwise
    ;;
*)
    echo "usage: install.sh lagwise REQUIREMENTS WHEELS TARGET | java | account" >&2
    exit 2
    ;;
esac
