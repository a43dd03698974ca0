# Shell functions that the scripts beside this file share. To be sourced by bash.

say() { printf '== %s\n' "$*" >&2; }
die() { printf '!! %s\n' "$*" >&2; exit 1; }

# need COMMAND PACKAGE... : install the Debian packages unless the command works.
need() {
    local probe=$1
    shift
    if bash -c "$probe" >/dev/null 2>&1; then return 0; fi
    command -v apt-get >/dev/null || die "missing: $* (no apt-get here to install them with)"
    say "installing $*"
    if [ -z "${apt_updated:-}" ]; then
        as_root apt-get update -qq
        apt_updated=1
    fi
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >&2
    bash -c "$probe" >/dev/null 2>&1 || die "installed $*, but this still fails: $probe"
}

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"
    elif command -v sudo >/dev/null; then sudo "$@"
    else die "not root, and no sudo: ask an administrator for: $*"
    fi
}

# The first Python of at least 3.11.
find_python() {
    local name
    for name in python3.11 python3 python3.12 python3.13 python; do
        if "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            printf '%s\n' "$name"
            return 0
        fi
    done
    return 1
}

need_python() {
    find_python >/dev/null || need 'python3 -c "import sys; sys.exit(sys.version_info < (3, 11))"' python3
    python=$(find_python) || die "no Python of at least 3.11 was found"
    need "$python -c 'import venv, ensurepip'" python3-venv
}
