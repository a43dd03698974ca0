"""The application that ``cadenza serve`` serves: JSON over HTTP, and events as they come (SSE).

Every request but ``/health`` needs the token; whatever changes something must come from this server's own
pages or from no page at all. All that is done here is done by :class:`~cadenza.service.Service`.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from cadenza.core.spending import Spend
from cadenza.engine import Engine
from cadenza.errors import CadenzaError, Conflict, InputRefused, NotFound, UsageError
from cadenza.journal.store import Decision, RequestRow
from cadenza.service import Options
from cadenza.web.events import event_stream
from cadenza.web.openapi import Operation, document

MOST_BODY = 2 * 1024 * 1024
"""The longest body of a request, in bytes."""

Handler = Callable[[Engine, Request, dict[str, Any]], Awaitable[Any]]

_WORDS = {
    "accepted": "resumed",
    "equal": "already decided",
    "conflict": "already decided",
    "late": "not waiting",
    "expired": "expired",
}
_CODES = {"accepted": 200, "equal": 200, "conflict": 409, "late": 409, "expired": 410}


def make_app(engine: Engine, token: str, origins: frozenset[str] = frozenset()) -> Starlette:
    """The application over an engine. ``origins`` are pages, besides none, that may change something."""

    def endpoint(operation: Operation) -> Callable[[Request], Awaitable[Response]]:
        handler = HANDLERS[operation.name]

        async def answer(request: Request) -> Response:
            try:
                body = await _body(request) if operation.method == "POST" else {}
                made = await handler(engine, request, body)
            except CadenzaError as error:
                return _refused(error)
            return made if isinstance(made, Response) else _json(made)

        return answer

    routes = [Route(op.path, endpoint(op), methods=[op.method], name=op.name) for op in OPERATIONS]
    routes.append(Route("/health", _health))
    return Starlette(routes=routes, middleware=[Middleware(Guard, token=token, origins=origins)])


async def _health(request: Request) -> Response:
    return JSONResponse({"status": "ok"})


class Guard:
    """Lets in who knows the token; keeps out pages of other origins that would change something."""

    def __init__(self, app: ASGIApp, token: str, origins: frozenset[str]) -> None:
        self._app = app
        self._token = token.encode()
        self._origins = origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http" or scope["path"] == "/health":
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        given = headers.get(b"authorization", b"").removeprefix(b"Bearer ")
        if not hmac.compare_digest(given, self._token):
            hint = "send Authorization: Bearer TOKEN"
            await _problem(401, "the token is missing or wrong", hint)(scope, receive, send)
            return
        origin = headers.get(b"origin", b"").decode("latin-1")
        if scope["method"] not in ("GET", "HEAD") and origin and origin not in self._origins:
            await _problem(403, f"a page of {origin} may not change anything here", None)(
                scope, receive, send
            )
            return
        await self._app(scope, receive, send)


async def _body(request: Request) -> dict[str, Any]:
    raw = b""
    async for chunk in request.stream():
        raw += chunk
        if len(raw) > MOST_BODY:
            raise InputRefused(f"the body is longer than {MOST_BODY:,} bytes")
    if not raw.strip():
        return {}
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise InputRefused(f"the body is no JSON: {error}") from error
    if not isinstance(body, dict):
        raise InputRefused("the body must be a JSON object")
    return body


def _json(value: Any, status: int = 200) -> Response:
    return Response(msgspec.json.encode(value), status_code=status, media_type="application/json")


def _refused(error: CadenzaError) -> Response:
    status = 500
    if isinstance(error, NotFound):
        status = 404
    elif isinstance(error, Conflict):
        status = 409
    elif isinstance(error, UsageError):
        status = 400
    return _problem(status, error.message, error.hint)


def _problem(status: int, message: str, hint: str | None) -> Response:
    return JSONResponse({"error": {"message": message, "hint": hint}}, status_code=status)


# -- what each route does ---------------------------------------------------------------------------------


def _only(body: dict[str, Any], *known: str) -> None:
    unknown = [key for key in body if key not in known]
    if unknown:
        raise InputRefused(f"unknown key {unknown[0]!r}", hint=f"known are {', '.join(known) or 'none'}")


def _text(body: dict[str, Any], key: str, *, needed: bool = True) -> str | None:
    value = body.get(key)
    if value is None and not needed:
        return None
    if not isinstance(value, str):
        raise InputRefused(f"{key} must be a text", hint=f'send {{"{key}": "…"}}')
    return value


async def _runs(engine: Engine, request: Request, body: dict[str, Any]) -> Any:
    query = request.query_params
    limit = query.get("limit", "100")
    if not limit.isdecimal() or not 0 < int(limit) <= 1000:
        raise InputRefused(f"limit={limit} is no number from 1 to 1000")
    status = [word for word in query.get("status", "").split(",") if word]
    return {"runs": engine.service.runs(workspace=query.get("workspace"), status=status, limit=int(limit))}


async def _start(engine: Engine, request: Request, body: dict[str, Any]) -> Any:
    _only(body, "piece", "task", "cwd", "workspace", "language", "permission", "budget", "interactive")
    from pathlib import Path

    options: dict[str, Any] = {"interactive": bool(body.get("interactive", False))}
    if body.get("cwd") is not None:
        options["cwd"] = Path(_text(body, "cwd") or ".")
    options |= {
        key: body[key] for key in ("workspace", "language", "permission") if body.get(key) is not None
    }
    try:
        if body.get("budget") is not None:
            options["budget"] = msgspec.convert(body["budget"], Spend)
        msgspec.convert({k: v for k, v in options.items() if k not in ("cwd", "budget")}, Options)
    except msgspec.ValidationError as error:
        raise InputRefused(f"the options cannot be taken: {error}") from error
    run = await engine.start(_text(body, "piece") or "", _text(body, "task") or "", **options)
    return _json(engine.service.row(run.id), 201)


def _id(request: Request) -> str:
    return str(request.path_params["id"])


async def _run(engine: Engine, request: Request, body: dict[str, Any]) -> Any:
    row = engine.service.row(_id(request))
    state = engine.service.state(row.id)
    output = None if state.previous is None else engine.service.text(state.previous)
    return {
        "run": row,
        "task": engine.service.text(state.run.task),
        "output": output,
        "reports": engine.service.reports(row.id),
        "requests": [_shown(engine, item) for item in engine.service.inbox(run=row.id)],
        "tree": engine.service.tree(row.id),
    }


async def _events(engine: Engine, request: Request, body: dict[str, Any]) -> Any:
    run = engine.service.run(_id(request)).id
    last = request.headers.get("last-event-id") or request.query_params.get("after", "0")
    if not last.isdecimal():
        raise InputRefused(f"Last-Event-ID is {last!r}, which is no event's number")
    stream = event_stream(engine, run, int(last), follow=request.query_params.get("follow") == "1")
    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    return StreamingResponse(stream, media_type="text/event-stream", headers=headers)


async def _cancel(engine: Engine, request: Request, body: dict[str, Any]) -> Any:
    _only(body, "reason")
    run = await engine.cancel(_id(request), _text(body, "reason", needed=False) or "")
    await engine.idle(run.id)
    return engine.service.row(run.id)


async def _resume(engine: Engine, request: Request, body: dict[str, Any]) -> Any:
    _only(body, "restart_visit")
    run = await engine.resume(_id(request), restart_visit=body.get("restart_visit") is True)
    return engine.service.row(run.id)


async def _retry(engine: Engine, request: Request, body: dict[str, Any]) -> Any:
    _only(body, "movement")
    run = await engine.retry(_id(request), movement=_text(body, "movement", needed=False))
    return engine.service.row(run.id)


async def _fork(engine: Engine, request: Request, body: dict[str, Any]) -> Any:
    _only(body, "at")
    at = body.get("at")
    if at is not None and (not isinstance(at, int) or isinstance(at, bool)):
        raise InputRefused("at must be an event's number")
    run = await engine.fork(_id(request), at)
    return _json(engine.service.row(run.id), 201)


def _shown(engine: Engine, row: RequestRow) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(row)
    return {**found, "text": engine.service.text(row.question), "schema": engine.service.schema(row)}


async def _requests(engine: Engine, request: Request, body: dict[str, Any]) -> Any:
    query = request.query_params
    rows = engine.service.inbox(run=query.get("run"), workspace=query.get("workspace"))
    return {"requests": [_shown(engine, row) for row in rows]}


async def _request(engine: Engine, request: Request, body: dict[str, Any]) -> Any:
    return _shown(engine, engine.service.request(_id(request)))


def _decided(engine: Engine, decision: Decision) -> Response:
    """What became of an answer; the run goes on here."""
    if decision.result == "accepted":
        engine.play(decision.request.run)
    told = {"result": _WORDS[decision.result], "request": _shown(engine, decision.request)}
    return _json(told, _CODES[decision.result])


async def _answer(engine: Engine, request: Request, body: dict[str, Any]) -> Any:
    _only(body, "value")
    if "value" not in body:
        raise InputRefused("there is no value", hint='send {"value": …}')
    return _decided(engine, engine.service.answer(_id(request), body["value"]))


async def _answer_run(engine: Engine, request: Request, body: dict[str, Any]) -> Any:
    _only(body, "value")
    if "value" not in body:
        raise InputRefused("there is no value", hint='send {"value": …}')
    return _decided(engine, engine.service.answer_run(engine.service.run(_id(request)).id, body["value"]))


async def _approve(engine: Engine, request: Request, body: dict[str, Any]) -> Any:
    _only(body, "note")
    note = _text(body, "note", needed=False) or ""
    return _decided(engine, engine.service.decide(_id(request), approved=True, note=note))


async def _decline(engine: Engine, request: Request, body: dict[str, Any]) -> Any:
    _only(body, "note")
    note = _text(body, "note", needed=False) or ""
    return _decided(engine, engine.service.decide(_id(request), approved=False, note=note))


async def _captcha(engine: Engine, request: Request, body: dict[str, Any]) -> Any:
    _only(body, "screen")
    rows = engine.service.resolve_screen(_text(body, "screen") or "")
    for row in rows:
        engine.play(row.run)
    return {"resumed": len(rows), "runs": [row.run for row in rows]}


async def _openapi(engine: Engine, request: Request, body: dict[str, Any]) -> Any:
    return document(OPERATIONS)


OPERATIONS: tuple[Operation, ...] = (
    Operation("runs", "GET", "/runs", "List runs, newest first.", query=("status", "workspace", "limit")),
    Operation(
        "start",
        "POST",
        "/runs",
        "Start a run; it is played here.",
        body=("piece", "task", "cwd", "workspace", "language", "permission", "budget", "interactive"),
        needed=("piece", "task"),
        status=201,
    ),
    Operation("run", "GET", "/runs/{id}", "Show a run, its reports, its open requests and its tree."),
    Operation(
        "events",
        "GET",
        "/runs/{id}/events",
        "A run's events as server-sent events; Last-Event-ID goes on behind one.",
        query=("after", "follow"),
    ),
    Operation("cancel", "POST", "/runs/{id}/cancel", "End a run.", body=("reason",)),
    Operation("resume", "POST", "/runs/{id}/resume", "Let a held run go on.", body=("restart_visit",)),
    Operation("retry", "POST", "/runs/{id}/retry", "Reopen a run that has ended.", body=("movement",)),
    Operation("fork", "POST", "/runs/{id}/fork", "Begin a run as this one stood.", body=("at",), status=201),
    Operation(
        "answer_run",
        "POST",
        "/runs/{id}/answer",
        "Answer the one request that a run has open.",
        body=("value",),
        needed=("value",),
    ),
    Operation("requests", "GET", "/requests", "The inbox, oldest first.", query=("run", "workspace")),
    Operation("request", "GET", "/requests/{id}", "Show a request."),
    Operation(
        "answer", "POST", "/requests/{id}/answer", "Answer a request.", body=("value",), needed=("value",)
    ),
    Operation("approve", "POST", "/requests/{id}/approve", "Say yes to a request.", body=("note",)),
    Operation("decline", "POST", "/requests/{id}/decline", "Say no to a request.", body=("note",)),
    Operation(
        "captcha",
        "POST",
        "/captcha-pool/resolve",
        "Say that a confirmation screen was solved: every run that waits for it goes on.",
        body=("screen",),
        needed=("screen",),
    ),
    Operation("openapi", "GET", "/openapi.json", "This description."),
)

HANDLERS: dict[str, Handler] = {
    "runs": _runs,
    "start": _start,
    "run": _run,
    "events": _events,
    "cancel": _cancel,
    "resume": _resume,
    "retry": _retry,
    "fork": _fork,
    "answer_run": _answer_run,
    "requests": _requests,
    "request": _request,
    "answer": _answer,
    "approve": _approve,
    "decline": _decline,
    "captcha": _captcha,
    "openapi": _openapi,
}
