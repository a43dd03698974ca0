"""A real model server for these tests: its address is in CADENZA_LLAMA_URL (``.ci/llama.sh`` starts one)."""

from __future__ import annotations

import os

import pytest


@pytest.fixture(scope="session")
def llama() -> str:
    """The server's root address, without ``/v1`` and without a slash at its end."""
    url = os.environ.get("CADENZA_LLAMA_URL")
    if url:
        return url.rstrip("/").removesuffix("/v1")
    reason = "CADENZA_LLAMA_URL is not set: run `.ci/llama.sh make test` to have a real model server"
    if os.environ.get("CADENZA_REQUIRE_LLAMA"):
        pytest.fail(reason)
    pytest.skip(reason)
