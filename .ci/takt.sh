#!/usr/bin/env bash
# .ci/takt.sh [COMMAND...] : run COMMAND with the real TAKT for tests/compat; its program is in CADENZA_TAKT.
# Without COMMAND it only installs TAKT, and says where.
#
# It is kept in ${CADENZA_CI_CACHE:-$HOME/.cache/cadenza-ci}/takt (about 40 seconds, once), with a Node.js 20
# where the system's is older. It is a tool of the tests, never a dependency.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
. "$here/.ci/common.sh"

version=0.35.4
cache=${CADENZA_CI_CACHE:-$HOME/.cache/cadenza-ci}
home=$cache/takt
program=$home/node_modules/.bin/takt

modern() { node -e 'process.exit(Number(process.versions.node.split(".")[0]) < 20 ? 1 : 0)' 2>/dev/null; }
installed() { [ -x "$program" ] && grep -q "\"version\": \"$version\"" "$home/node_modules/takt/package.json"; }
add() {
    say "installing $* in $home"
    npm install --prefix "$home" --no-audit --no-fund --loglevel=error "$@" >&2
}

need 'git --version' git ca-certificates
need 'node --version' nodejs
mkdir -p "$home"
exec 9>"$cache/takt.lock"
flock 9
[ -x "$home/node_modules/.bin/node" ] && PATH=$home/node_modules/.bin:$PATH
if ! modern; then
    need 'npm --version' npm
    add node@20
    PATH=$home/node_modules/.bin:$PATH
    modern || die "this Node.js is too old for TAKT: $(node --version)"
fi
if ! installed; then
    need 'npm --version' npm
    add "takt@$version"
    installed || die "takt@$version was installed, but $program is not it"
fi
flock -u 9
exec 9>&-

export PATH CADENZA_TAKT=$program
[ $# -gt 0 ] || { printf '%s\n' "$program"; exit 0; }
exec "$@"
