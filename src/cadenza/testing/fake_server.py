"""What the fake model servers share: real HTTP on a free port, answers in order, faults on demand.

A format adds three things to :class:`FakeServer`: what a request must look like, what an answer looks
like in one piece, and the frames that it is streamed in.
"""

from __future__ import annotations

import json
import socket
import struct
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, ClassVar, TypeVar, cast

import msgspec

from cadenza.core.outcomes import Usage
from cadenza.providers.base import ToolCall

CREATED = 1_700_000_000


class Say(msgspec.Struct, frozen=True):
    """An answer with ``text``, then ``calls`` of tools.

    ``chunks`` is how many pieces a streamed one comes in. ``slow`` waits that many seconds before the
    chunk with the number ``slow_at`` (from 0). ``cut_at`` breaks the connection off before that chunk:
    with ``clean_cut`` the stream ends properly in HTTP but not in the format. ``cache_written`` is how
    many of the input's tokens were put into the prompt cache; only Anthropic's format tells that.
    A streamed call's arguments come in two pieces, behind all text.
    """

    text: str
    chunks: int = 1
    usage: Usage = Usage(input=12, output=3, cached=4)
    finish: str = "stop"
    slow: float = 0
    slow_at: int = 0
    cut_at: int | None = None
    clean_cut: bool = False
    cache_written: int = 0
    calls: tuple[ToolCall, ...] = ()

    def pieces(self) -> list[str]:
        """The text in ``chunks`` parts of about the same length; none where there are only calls."""
        size = max(1, -(-len(self.text) // self.chunks))
        return [self.text[at : at + size] for at in range(0, len(self.text), size)] or (
            [] if self.calls else [""]
        )


class Fail(msgspec.Struct, frozen=True):
    """An HTTP error in the format's own envelope. ``retry_after`` is sent as the header says it.

    ``code`` is OpenAI's ``code`` or Anthropic's error ``type``.
    """

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
Fake = TypeVar("Fake", bound="FakeServer")


class Recorded(msgspec.Struct, frozen=True):
    """A request as it arrived; header names are in lower case, ``raw`` is the body's bytes."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any
    raw: bytes = b""


def halves(text: str) -> tuple[str, str]:
    """A call's arguments as they are streamed."""
    middle = len(text) // 2
    return text[:middle], text[middle:]


def unanswered(calls: Sequence[str], results: Sequence[str]) -> str | None:
    """The first call without a result behind it; None where each has one."""
    return next((call for call in calls if call not in results), None)


class FakeServer(ABC):
    """The server: a context manager that listens on a free port of 127.0.0.1.

    ``rejects`` names request fields that get a 400, as from servers that do not know them.
    ``model`` is what its answers say they come from. ``answering`` is asked where no answer waits: for
    callers whose order is not known, or to pass a request on. Several threads may call it.
    """

    path: ClassVar[str] = ""
    """Where the format's calls go."""

    def __init__(
        self,
        *answers: Answer,
        rejects: tuple[str, ...] = (),
        model: str = "fake-model",
        answering: Callable[[Recorded], Answer] | None = None,
    ) -> None:
        self.model = model
        self.rejects = rejects
        self.requests: list[Recorded] = []
        self._answers = deque(answers)
        self._answering = answering
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._server: _Server | None = None
        self._port = 0

    @property
    def root(self) -> str:
        """The server's address, without a path."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def bodies(self) -> list[Any]:
        """The JSON bodies of all requests so far."""
        return [request.body for request in self.requests]

    def add(self, *answers: Answer) -> None:
        """Have more answers ready, after those that wait."""
        with self._lock:
            self._answers.extend(answers)

    def refuse(self) -> None:
        """Stop listening: connections are refused until :meth:`listen`."""
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

    def __enter__(self: Fake) -> Fake:
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
            wrong = self._checked(request)
            waiting = self._answers.popleft() if self._answers and wrong is None else None
        given = wrong or waiting
        if given is not None:
            return given
        if self._answering is not None:
            return self._answering(request)
        return Fail(400, "the fake has no answer left")

    def pause(self, seconds: float) -> None:
        """Wait, but no longer than the server lives."""
        self._stopping.wait(seconds)

    def _checked(self, request: Recorded) -> Fail | None:
        if request.path != self.path:
            return Fail(404, f"no such path: {request.path}")
        if not isinstance(request.body, dict):
            return Fail(400, "the body is not a JSON object")
        return self.problem(request)

    @abstractmethod
    def problem(self, request: Recorded) -> Fail | None:
        """What is wrong with a request, in the format's own words."""

    @abstractmethod
    def models(self) -> dict[str, Any]:
        """The answer to a call for the list of models."""

    @abstractmethod
    def whole(self, answer: Say, asked: Mapping[str, Any]) -> dict[str, Any]:
        """An answer in one piece; ``asked`` is the request's body."""

    @abstractmethod
    def opening(self, answer: Say, asked: Mapping[str, Any]) -> Iterable[bytes]:
        """What a stream begins with, before the first piece of text."""

    @abstractmethod
    def piece(self, text: str, number: int, asked: Mapping[str, Any]) -> bytes:
        """The frame of one piece of text, counted from 0."""

    @abstractmethod
    def closing(self, answer: Say, asked: Mapping[str, Any]) -> Iterable[bytes]:
        """What a stream ends with: the calls, and why it ends."""

    @abstractmethod
    def envelope(self, failure: Fail) -> dict[str, Any]:
        """The body of an error."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True

    def __init__(self, address: tuple[str, int], fake: FakeServer) -> None:
        self.fake = fake
        super().__init__(address, _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is no news here."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    @property
    def fake(self) -> FakeServer:
        return cast(_Server, self.server).fake

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""

    def do_GET(self) -> None:
        if self.path.partition("?")[0] == "/v1/models":
            self._send_json(200, self.fake.models())
        else:
            self._send_fail(Fail(404, f"no such path: {self.path}"))

    def do_POST(self) -> None:
        request = self._recorded()
        answer = self.fake.take(request)
        match answer:
            case Reset():
                self._reset()
            case Fail():
                self._send_fail(answer)
            case Raw():
                self._send(200, answer.body, {"content-type": answer.content_type})
            case Say() if request.body.get("stream"):
                self._stream(answer, request.body)
            case Say():
                self.fake.pause(answer.slow)
                self._send_json(200, self.fake.whole(answer, request.body))

    def _recorded(self) -> Recorded:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        try:
            body = json.loads(raw)
        except ValueError:
            body = None
        headers = {name.lower(): value for name, value in self.headers.items()}
        return Recorded(self.command, self.path, headers, body, raw)

    def _stream(self, answer: Say, asked: Mapping[str, Any]) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        self._chunks(self.fake.opening(answer, asked))
        for number, text in enumerate(answer.pieces()):
            if number == answer.cut_at:
                self._end_chunked() if answer.clean_cut else self._reset()
                return
            if answer.slow and number == answer.slow_at:
                self.fake.pause(answer.slow)
            self._chunks([self.fake.piece(text, number, asked)])
        self._chunks(self.fake.closing(answer, asked))
        self._end_chunked()

    def _chunks(self, frames: Iterable[bytes]) -> None:
        for data in frames:
            self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
            self.wfile.flush()

    def _end_chunked(self) -> None:
        self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()

    def _send_fail(self, failure: Fail) -> None:
        headers = dict(failure.headers)
        if failure.retry_after is not None:
            headers["retry-after"] = failure.retry_after
        self._send_json(failure.status, self.fake.envelope(failure), headers)

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
