"""``cadenza serve``: the real command, spoken to over real HTTP."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from cadenza.web.app import HANDLERS, OPERATIONS
from tests.agents.stage import CHAT, give

TOKEN = "a-token-that-is-long-enough"
SCRIPT = """\
cadenza-script: 1
entries:
  - calls: [{name: complete, arguments: {status: needs_user_input, result: "Which colour?"}}]
  - calls: [{name: request_tool, arguments: {name: list_dir, reason: to look}}]
  - calls: [{name: complete, arguments: {status: success, result: "Blue."}}]
"""
PIECE = CHAT.replace("rules: []", "allowed_tools: [request_tool, read_file]")


class Served:
    """A server process with a journal and a project of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        give(folder, "chat2", PIECE.replace("name: chat", "name: chat2"))
        (folder / "script.yaml").write_text(SCRIPT, encoding="utf-8")
        env = {name: value for name, value in os.environ.items() if not name.startswith("CADENZA_")}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "cadenza", "--journal", str(folder / "j.sqlite"), "serve", "--port", "0"],
            cwd=folder,
            env={
                **env,
                "CADENZA_SERVE_TOKEN": TOKEN,
                "CADENZA_PROVIDER": f"scripted:{folder / 'script.yaml'}",
                "HOME": str(folder),
                "PYTHONUNBUFFERED": "1",
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        found = re.search(r"http://\S+", line)
        assert found, line + (self.process.stderr.read() if self.process.stderr else "")
        self.url = found[0]
        self.http = httpx.Client(base_url=self.url, headers={"authorization": f"Bearer {TOKEN}"}, timeout=30)

    def close(self) -> int:
        self.http.close()
        self.process.terminate()
        self.process.communicate(timeout=30)
        return self.process.returncode

    def post(self, path: str, **body: Any) -> httpx.Response:
        return self.http.post(path, json=body)

    def start(self) -> str:
        made = self.post("/runs", piece="chat2", task="Paint", cwd=str(self.folder))
        assert made.status_code == 201, made.text
        return str(made.json()["id"])

    def until(self, run: str, *status: str) -> Any:
        end = time.monotonic() + 30
        while (shown := self.http.get(f"/runs/{run}").json())["run"]["status"] not in status:
            assert time.monotonic() < end, shown["run"]
            time.sleep(0.05)
        return shown


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    server = Served(tmp_path_factory.mktemp("served"))
    yield server
    server.close()


def open_request(served: Served, run: str) -> Any:
    (request,) = served.http.get("/requests", params={"run": run}).json()["requests"]
    return request


def test_a_run_is_started_asked_approved_and_completed(served: Served) -> None:
    run = served.start()
    shown = served.until(run, "waiting_human")
    (request,) = shown["requests"]
    assert (request["text"], request["schema"]) == ("Which colour?", None)
    answered = served.post(f"/requests/{request['id']}/answer", value="blue")
    assert (answered.status_code, answered.json()["result"]) == (200, "resumed")
    served.until(run, "waiting_human")
    card = next(row for row in served.http.get("/requests", params={"run": run}).json()["requests"])
    assert card["reason"] == "tool_request"
    assert card["schema"]["required"] == ["approved"]
    approved = served.post(f"/requests/{card['id']}/approve", note="look")
    assert approved.json()["result"] == "resumed"
    done = served.until(run, "completed")
    assert done["output"] == "Blue."
    again = served.post(f"/requests/{card['id']}/approve", note="look")
    assert (again.status_code, again.json()["result"]) == (200, "already decided")
    other = served.post(f"/requests/{card['id']}/decline")
    assert (other.status_code, other.json()["result"]) == (409, "already decided")


def test_an_answer_for_a_cancelled_run_is_not_waited_for(served: Served) -> None:
    run = served.start()
    served.until(run, "waiting_human")
    request = open_request(served, run)
    cancelled = served.post(f"/runs/{run}/cancel", reason="enough")
    assert cancelled.json()["status"] in ("cancelled", "queued")
    served.until(run, "cancelled")
    late = served.post(f"/requests/{request['id']}/answer", value="blue")
    assert (late.status_code, late.json()["result"]) == (409, "not waiting")


def test_a_run_is_answered_without_an_id_only_where_one_request_is_open(served: Served) -> None:
    run = served.start()
    served.until(run, "waiting_human")
    assert served.post(f"/runs/{run}/answer", value="blue").json()["result"] == "resumed"
    fork = served.post(f"/runs/{run}/fork", at=1)
    assert fork.status_code == 201
    served.until(fork.json()["id"], "waiting_human")


def test_events_are_streamed_and_go_on_behind_the_last_one_that_was_seen(served: Served) -> None:
    run = served.start()
    served.until(run, "waiting_human")
    first = served.http.get(f"/runs/{run}/events").text
    ids = [int(line.removeprefix("id: ")) for line in first.splitlines() if line.startswith("id: ")]
    assert ids == list(range(1, len(ids) + 1))
    assert "event: stands" in first
    rest = served.http.get(f"/runs/{run}/events", headers={"last-event-id": str(ids[2])}).text
    assert next(line for line in rest.splitlines() if line.startswith("id: ")) == f"id: {ids[3]}"
    wrong = served.http.get(f"/runs/{run}/events", headers={"last-event-id": "x"})
    assert wrong.status_code == 400


def test_a_screen_that_nobody_waits_for_resumes_nobody(served: Served) -> None:
    assert served.post("/captcha-pool/resolve", screen="shared:x").json() == {"resumed": 0, "runs": []}


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "told"),
    [
        ("GET", "/runs/nope", None, 404, "there is no run 'nope'"),
        ("GET", "/requests/nope", None, 404, "no request"),
        ("POST", "/runs", b"{", 400, "the body is no JSON"),
        ("POST", "/runs", b"[]", 400, "must be a JSON object"),
        ("POST", "/runs", b'{"piece": "chat2"}', 400, "task must be a text"),
        ("POST", "/runs", b'{"piece": "chat2", "task": "x", "colour": 1}', 400, "unknown key 'colour'"),
        ("POST", "/runs", b'{"piece": "gone", "task": "x"}', 404, "there is no piece 'gone'"),
        ("POST", "/runs", b'{"piece": "chat2", "task": "x", "budget": {"tokens": "a"}}', 400, "tokens"),
        ("POST", "/runs", b'{"piece": "chat2", "task": "x", "permission": "all"}', 400, "options"),
        ("POST", "/runs", b"x" * 3_000_000, 400, "longer than"),
        ("GET", "/runs?limit=0", None, 400, "limit=0"),
        ("POST", "/captcha-pool/resolve", b"{}", 400, "screen must be a text"),
    ],
)
def test_what_cannot_be_done_is_said(
    served: Served, method: str, path: str, body: bytes | None, status: int, told: str
) -> None:
    reply = served.http.request(method, path, content=body)
    assert reply.status_code == status
    assert told in reply.json()["error"]["message"]


def test_who_does_not_know_the_token_and_pages_of_others_are_kept_out(served: Served) -> None:
    assert httpx.get(f"{served.url}/health").status_code == 200
    for headers in ({}, {"authorization": "Bearer wrong"}):
        assert httpx.get(f"{served.url}/runs", headers=headers).status_code == 401
    cross = served.http.post("/runs", json={}, headers={"origin": "https://evil.example"})
    assert cross.status_code == 403


def test_the_description_names_every_route_and_nothing_else(served: Served) -> None:
    document = served.http.get("/openapi.json").json()
    described = {(method.upper(), path) for path, ops in document["paths"].items() for method in ops}
    assert described == {(operation.method, operation.path) for operation in OPERATIONS}
    assert set(HANDLERS) == {operation.name for operation in OPERATIONS}
    assert json.dumps(document)


def test_it_ends_when_it_is_told_to(tmp_path: Path) -> None:
    server = Served(tmp_path)
    run = server.start()
    server.until(run, "waiting_human")
    assert server.close() in (0, -15, 143)


def test_an_address_that_others_can_reach_must_be_meant(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "cadenza", "serve", "--host", "0.0.0.0", "--port", "0"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=30, check=False)
    assert done.returncode == 2
    assert "can be reached by others" in done.stderr
