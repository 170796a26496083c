#!/bin/sh
# The steps of the Containerfile, as a script: it also runs where there is no container engine.
#
#   install.sh lagwise REQUIREMENTS WHEELS TARGET    a virtual environment with Lagwise and all that it needs
#   install.sh java                                  the JVM of Spark, by apt (root)
#   install.sh folders                               the folder of the data, for the account of the image (root)
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
folders)
    mkdir -p /var/lib/lagwise
    chown 10001:10001 /var/lib/lagwise
    chmod 0750 /var/lib/lagwise
    ;;
*)
    echo "usage: install.sh lagwise REQUIREMENTS WHEELS TARGET | java | folders" >&2
    exit 2
    ;;
esac
