"""A server that speaks OpenAI's chat-completions format over real HTTP, for tests of whatever calls one.

::

    with FakeOpenAI(Say("Hello", chunks=4), Fail(429, retry_after="2")) as server:
        client = OpenAI(base_url=server.url, api_key="any")
        ...
    assert server.requests[0].body["model"] == "m"

Answers are given in order, one per call; :meth:`FakeOpenAI.add` adds more while it runs. A call that finds
none left gets a 400 that says so, because that is a mistake in the test.
"""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections import deque
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, cast

import msgspec

from cadenza.core.outcomes import Usage

CREATED = 1_700_000_000


class Say(msgspec.Struct, frozen=True):
    """An answer with ``text``.

    ``chunks`` is how many pieces a streamed one comes in. ``slow`` waits that many seconds before the
    chunk with the number ``slow_at`` (from 0). ``cut_at`` breaks the connection off before that chunk:
    with ``clean_cut`` the stream ends properly in HTTP but without a finish reason and ``[DONE]``.
    """

    text: str
    chunks: int = 1
    usage: Usage = Usage(input=12, output=3, cached=4)
    finish: str = "stop"
    slow: float = 0
    slow_at: int = 0
    cut_at: int | None = None
    clean_cut: bool = False

    def pieces(self) -> list[str]:
        """The text in ``chunks`` parts of about the same length."""
        size = max(1, -(-len(self.text) // self.chunks))
        return [self.text[at : at + size] for at in range(0, len(self.text), size)] or [""]


class Fail(msgspec.Struct, frozen=True):
    """An HTTP error in the format's own envelope. ``retry_after`` is sent as the header says it."""

    status: int
    message: str = "the fake says no"
    retry_after: str | None = None
    code: str | None = None
    headers: Mapping[str, str] = {}


class Raw(msgspec.Struct, frozen=True):
    """Whatever bytes, with status 200: for answers that are not of the format."""

    body: bytes
    content_type: str = "text/event-stream"


class Reset(msgspec.Struct, frozen=True):
    """The connection is reset before any answer."""


Answer = Say | Fail | Raw | Reset


class Recorded(msgspec.Struct, frozen=True):
    """A request as it arrived; header names are in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any


class FakeOpenAI:
    """The server: a context manager that listens on a free port of 127.0.0.1.

    ``rejects`` names request fields that get a 400, as from servers that do not know them.
    ``model`` is what its answers say they come from.
    """

    def __init__(self, *answers: Answer, rejects: tuple[str, ...] = (), model: str = "fake-model") -> None:
        self.model = model
        self.rejects = rejects
        self.requests: list[Recorded] = []
        self._answers = deque(answers)
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._server: _Server | None = None
        self._port = 0

    @property
    def url(self) -> str:
        """The base URL for a client: it ends in ``/v1``."""
        return f"http://127.0.0.1:{self._port}/v1"

    @property
    def bodies(self) -> list[Any]:
        """The JSON bodies of all requests so far."""
        return [request.body for request in self.requests]

    def add(self, *answers: Answer) -> None:
        """Have more answers ready, after those that wait."""
        with self._lock:
            self._answers.extend(answers)

    def refuse(self) -> None:
        """Stop listening: connections to :attr:`url` are refused until :meth:`listen`."""
        if self._server is not None:
            self._stopping.set()
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def listen(self) -> None:
        """Listen, on the same port as before where there was one."""
        if self._server is None:
            self._stopping.clear()
            self._server = _Server(("127.0.0.1", self._port), self)
            self._port = self._server.server_address[1]
            threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def __enter__(self) -> FakeOpenAI:
        self.listen()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.refuse()

    def take(self, request: Recorded) -> Answer:
        """Record a request and choose its answer."""
        with self._lock:
            self.requests.append(request)
            return self._checked(request) or (
                self._answers.popleft() if self._answers else Fail(400, "the fake has no answer left")
            )

    def pause(self, seconds: float) -> None:
        """Wait, but no longer than the server lives."""
        self._stopping.wait(seconds)

    def _checked(self, request: Recorded) -> Fail | None:
        if request.path != "/v1/chat/completions":
            return Fail(404, f"no such path: {request.path}")
        if not isinstance(request.body, dict):
            return Fail(400, "the body is not a JSON object")
        for field in ("model", "messages"):
            if not request.body.get(field):
                return Fail(400, f"you must provide a {field} parameter")
        for field in self.rejects:
            if field in request.body:
                return Fail(400, f"Unrecognized request argument supplied: {field}")
        return None


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True

    def __init__(self, address: tuple[str, int], fake: FakeOpenAI) -> None:
        self.fake = fake
        super().__init__(address, _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is no news here."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    @property
    def fake(self) -> FakeOpenAI:
        return cast(_Server, self.server).fake

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""

    def do_GET(self) -> None:
        if self.path == "/v1/models":
            model = {"id": self.fake.model, "object": "model", "created": CREATED, "owned_by": "cadenza"}
            self._send_json(200, {"object": "list", "data": [model]})
        else:
            self._send_fail(Fail(404, f"no such path: {self.path}"))

    def do_POST(self) -> None:
        answer = self.fake.take(self._recorded())
        match answer:
            case Reset():
                self._reset()
            case Fail():
                self._send_fail(answer)
            case Raw():
                self._send(200, answer.body, {"content-type": answer.content_type})
            case Say():
                self._say(answer)

    def _recorded(self) -> Recorded:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        try:
            body = json.loads(raw)
        except ValueError:
            body = None
        headers = {name.lower(): value for name, value in self.headers.items()}
        return Recorded(self.command, self.path, headers, body)

    def _say(self, answer: Say) -> None:
        body = self.fake.requests[-1].body
        if body.get("stream"):
            usage_wanted = bool((body.get("stream_options") or {}).get("include_usage"))
            self._stream(answer, usage_wanted)
            return
        self.fake.pause(answer.slow)
        message = {"role": "assistant", "content": answer.text, "refusal": None}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": answer.finish}
        self._send_json(200, self._envelope("chat.completion", [choice], _usage(answer.usage)))

    def _stream(self, answer: Say, usage_wanted: bool) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for number, delta in enumerate(_deltas(answer)):
            if number == answer.cut_at:
                self._end_chunked() if answer.clean_cut else self._reset()
                return
            if answer.slow and number == answer.slow_at:
                self.fake.pause(answer.slow)
            self._event([_choice(delta, None)])
        self._event([_choice({}, answer.finish)])
        if usage_wanted:
            self._event([], _usage(answer.usage))
        self._chunk(b"data: [DONE]\n\n")
        self._end_chunked()

    def _event(self, choices: list[Any], usage: Any = None) -> None:
        event = self._envelope("chat.completion.chunk", choices, usage)
        self._chunk(b"data: " + json.dumps(event).encode() + b"\n\n")

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def _end_chunked(self) -> None:
        self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()

    def _envelope(self, kind: str, choices: list[Any], usage: Any) -> dict[str, Any]:
        head = {"id": "chatcmpl-fake", "object": kind, "created": CREATED, "model": self.fake.model}
        return {**head, "choices": choices, "usage": usage}

    def _send_fail(self, answer: Fail) -> None:
        headers = dict(answer.headers)
        if answer.retry_after is not None:
            headers["retry-after"] = answer.retry_after
        kind = "invalid_request_error" if answer.status < 500 else "server_error"
        error = {"message": answer.message, "type": kind, "param": None, "code": answer.code}
        self._send_json(answer.status, {"error": error}, headers)

    def _send_json(self, status: int, value: Any, headers: Mapping[str, str] | None = None) -> None:
        self._send(
            status, json.dumps(value).encode(), {"content-type": "application/json", **(headers or {})}
        )

    def _send(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _reset(self) -> None:
        """Close with unsent data thrown away, so that the client sees a reset, not an end."""
        self.close_connection = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()


def _deltas(answer: Say) -> Iterator[dict[str, str]]:
    pieces = answer.pieces()
    yield {"role": "assistant", "content": pieces[0]}
    yield from ({"content": piece} for piece in pieces[1:])


def _choice(delta: Mapping[str, str], finish: str | None) -> dict[str, Any]:
    return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cached},
    }
