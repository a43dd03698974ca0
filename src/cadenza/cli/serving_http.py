"""``serve``: the HTTP face, and a worker beside it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cadenza.cli.context import Context
from cadenza.cli.output import out
from cadenza.errors import UsageError

if TYPE_CHECKING:
    from cadenza.settings import Settings

LOOPBACK = ("127.0.0.1", "::1", "localhost")


def serve(
    ctx: typer.Context,
    host: Annotated[
        str, typer.Option(help="The address to listen on; others than loopback are open.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8642,
    token_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Read the token there; else CADENZA_SERVE_TOKEN.")
    ] = None,
    open_host: Annotated[
        bool, typer.Option("--open-host", help="Yes, listen on an address that others can reach.")
    ] = False,
) -> None:
    """Serve runs, requests and events over HTTP; plays all that can be played."""
    import asyncio

    if host not in LOOPBACK and not open_host:
        raise UsageError(f"{host} can be reached by others", hint="add --open-host if that is meant")
    token, made = _token(token_file)
    try:
        asyncio.run(_serve(Context.of(ctx).settings(), host, port, token, made=made))
    except KeyboardInterrupt:
        return


def _token(file: Path | None) -> tuple[str, bool]:
    """The token, and whether it was made just now."""
    import os
    import secrets

    if file is not None:
        try:
            token = file.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"the token file {file} cannot be read: {error}") from error
    else:
        token = os.environ.get("CADENZA_SERVE_TOKEN", "").strip()
        if not token:
            return secrets.token_urlsafe(24), True
    if len(token) < 16 or not token.isascii():
        raise UsageError("the token is shorter than 16 characters", hint="use a longer one, of ASCII letters")
    return token, False


async def _serve(settings: "Settings", host: str, port: int, token: str, *, made: bool) -> None:
    import asyncio

    try:
        import uvicorn

        from cadenza.web.app import make_app
    except ImportError as error:
        hint = "pip install 'cadenza[serve]'"
        raise UsageError(
            f"cadenza serve needs a package that is not installed: {error.name}", hint=hint
        ) from None
    from cadenza.engine import Engine

    async with Engine(settings=settings) as engine:
        app = make_app(engine, token)
        config = uvicorn.Config(app, host=host, port=port, log_level="warning", timeout_graceful_shutdown=3)
        server = uvicorn.Server(config)
        stop = asyncio.Event()
        worker = asyncio.create_task(engine.worker.serve(stop), name="worker")
        serving = asyncio.create_task(server.serve(), name="http")
        try:
            await _ready(server, serving)
            address = server.servers[0].sockets[0].getsockname()
            out.line(f"serving on http://{host}:{address[1]}")
            if made:
                out.line(f"token: {token}")
            done, _ = await asyncio.wait((worker, serving), return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            stop.set()
            server.should_exit = True
            await asyncio.gather(worker, serving, return_exceptions=True)


async def _ready(server: Any, serving: Any) -> None:
    import asyncio

    while not server.started:
        if serving.done():
            raise UsageError("the address cannot be listened on", hint="is something else using the port?")
        await asyncio.sleep(0.02)
