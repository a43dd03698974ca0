"""A model server of a test's own: nobody else's prompts are in its slots, and its options are known."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

OURS = ("--chat-template-file", str(Path(__file__).with_name("chat-template.jinja")))
CONTEXT = 8192
"""Tokens that one slot holds."""


@contextlib.contextmanager
def model_server(log: Path, *options: str, slots: int = 2, template: Sequence[str] = OURS) -> Iterator[str]:
    """Start one as ``.ci/llama.sh`` does, with ``options`` besides; gives its root address."""
    port = _free_port()
    argv = [*_program(), "--host", "127.0.0.1", "--port", str(port), "-np", str(slots)]
    argv += ["-c", str(CONTEXT * slots), "--jinja", *template]
    argv += ["--swa-full", "-cram", "0", "--slot-save-path", f"{log.parent}/", *options]
    with log.open("wb") as out:
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
    url = f"http://127.0.0.1:{port}"
    try:
        _wait(url, process, log)
        yield url
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:  # it reads a prompt to the end before it listens
            process.kill()
            process.wait()


def post(url: str, path: str, body: dict[str, Any]) -> Any:
    """What the server answers to a JSON body."""
    data = json.dumps(body).encode()
    request = urllib.request.Request(url + path, data, {"content-type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=200) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        raise AssertionError(f"{path}: {error.code} {error.read().decode()[:500]}") from error


def _program() -> list[str]:
    program, model = (os.environ.get(f"CADENZA_LLAMA_{name}") for name in ("PROGRAM", "MODEL"))
    if program and model:
        return [program, "-m", model]
    reason = "CADENZA_LLAMA_PROGRAM and CADENZA_LLAMA_MODEL are not set: .ci/llama.sh sets them"
    if os.environ.get("CADENZA_REQUIRE_LLAMA") and not os.environ.get("CADENZA_LLAMA_URL"):
        pytest.fail(reason)
    pytest.skip(reason)


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def _wait(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if process.poll() is not None:
            break
        with contextlib.suppress(OSError), urllib.request.urlopen(f"{url}/health", timeout=2):
            return
        time.sleep(0.2)
    pytest.fail(f"llama-server was not ready: {log.read_text(errors='replace')[-2000:]}")
