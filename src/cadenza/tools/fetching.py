"""A tool that reads one page of the network, where the movement may use the network."""

from __future__ import annotations

import http.client
import ipaddress
import os
import re
import socket
import ssl
from html.parser import HTMLParser
from typing import Any
from urllib.parse import SplitResult, urljoin, urlsplit

from cadenza.core.tooling import ToolSpec
from cadenza.tools.base import Tool, ToolContext, ToolError, ToolResult
from cadenza.tools.schemas import schema, text

MOST_BYTES = 4 * 1024 * 1024
REDIRECTS = 5
SECONDS = 30.0
PRIVATE = "CADENZA_FETCH_PRIVATE"
"""The environment variable that, set to 1, lets pages of private addresses be read (a server of one's
own)."""


def _fetch(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
    if not context.rights.network:
        raise ToolError(
            "this movement may not use the network (network: true in its piece)", code="no_network"
        )
    url = arguments["url"]
    for _ in range(REDIRECTS + 1):
        status, headers, body = _get(url, min(SECONDS, context.rights.seconds))
        target = headers.get("location")
        if status not in (301, 302, 303, 307, 308) or not target:
            return _shown(url, status, headers.get("content-type", ""), body)
        url = urljoin(url, target)
    raise ToolError(f"{arguments['url']} leads on more than {REDIRECTS} times", code="redirects")


def _get(url: str, seconds: float) -> tuple[int, dict[str, str], bytes]:
    parts = _checked(url)
    host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
    address = _address(host, port)
    connection: http.client.HTTPConnection
    if parts.scheme == "https":
        connection = http.client.HTTPSConnection(host, port, timeout=seconds)
    else:
        connection = http.client.HTTPConnection(host, port, timeout=seconds)
    try:
        raw = socket.create_connection((address, port), timeout=seconds)
        if parts.scheme == "https":
            raw = ssl.create_default_context().wrap_socket(raw, server_hostname=host)
        connection.sock = raw
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        connection.request("GET", path, headers={"User-Agent": "cadenza", "Accept": "text/*, */*;q=0.5"})
        reply = connection.getresponse()
        body = reply.read(MOST_BYTES + 1)
        return reply.status, {name.lower(): value for name, value in reply.getheaders()}, body
    except (OSError, http.client.HTTPException) as error:
        raise ToolError(f"{url} cannot be read: {error}", code="unreachable") from error
    finally:
        connection.close()


def _checked(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise ToolError(f"{url!r} is no address: {error}", code="bad_url") from error
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ToolError(f"{url!r} is no http or https address", code="bad_url")
    if re.search(r"[\x00-\x20\x7f]", url):
        raise ToolError("an address holds no blanks or control characters", code="bad_url")
    return parts


def _address(host: str, port: int) -> str:
    """The address to connect to: looked up once, and checked, so that it cannot change in between."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise ToolError(f"there is no host {host}: {error}", code="unreachable") from error
    addresses = [str(entry[4][0]) for entry in found]
    if os.environ.get(PRIVATE) != "1":
        for address in addresses:
            if not ipaddress.ip_address(address.partition("%")[0]).is_global:
                message = f"{host} is a private address, which is not read ({PRIVATE}=1 allows it)"
                raise ToolError(message, code="private_address")
    return addresses[0]


def _shown(url: str, status: int, kind: str, body: bytes) -> ToolResult:
    data = {"status": status, "url": url, "bytes": min(len(body), MOST_BYTES), "type": kind}
    if not re.match(
        r"(text/|application/(json|xml|xhtml|javascript)|[^;]*\+(json|xml))", kind or "text/plain"
    ):
        raise ToolError(f"{url} is {kind}, not text", code="binary")
    found = re.search(r"charset=\"?([\w.-]+)", kind)
    try:
        words = body[:MOST_BYTES].decode(found[1] if found else "utf-8", "replace")
    except LookupError:
        words = body[:MOST_BYTES].decode("utf-8", "replace")
    if "html" in kind:
        words = page_text(words)
    if len(body) > MOST_BYTES:
        words += f"\n[cut after {MOST_BYTES:,} bytes]"
    if status >= 400:
        return ToolResult(text=f"HTTP {status}\n{words}", error=True, code="http_status", data=data)
    return ToolResult(text=words or "(an empty page)", data=data)


def page_text(page: str) -> str:
    """What a page says, without its markup, scripts and styles."""
    reader = _Reader()
    reader.feed(page)
    reader.close()
    lines = (" ".join(line.split()) for line in "".join(reader.parts).splitlines())
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


class _Reader(HTMLParser):
    _SILENT = frozenset({"script", "style", "noscript", "template", "svg"})
    _BLOCKS = frozenset(
        {"p", "div", "br", "li", "tr", "h1", "h2", "h3", "h4", "h5", "section", "pre", "table"}
    )

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._silent = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin an element."""
        if tag in self._SILENT:
            self._silent += 1
        elif tag in self._BLOCKS:
            self.parts.append("\n")

    def handle_endtag(self, tag: str) -> None:
        """End an element."""
        if tag in self._SILENT:
            self._silent = max(self._silent - 1, 0)
        elif tag in self._BLOCKS:
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        """Text."""
        if not self._silent:
            self.parts.append(data)


FETCHING: tuple[Tool, ...] = (
    Tool(
        ToolSpec(
            name="fetch_url",
            description="Read a page of the network as text.",
            parameters=schema(("url",), url=text("An http or https address.")),
            effect="read",
        ),
        _fetch,
    ),
)
"""The tool that reads pages."""
