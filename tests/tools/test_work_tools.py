"""The package's own tools, on real files, processes and servers."""

from __future__ import annotations

import asyncio
import base64
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cadenza.core.arguments import parse_arguments
from cadenza.core.tooling import Park, Rights, ToolSpec
from cadenza.tools import registry
from cadenza.tools.base import Tool, ToolContext, ToolError, ToolResult
from cadenza.tools.executor import WorkTools, cut
from cadenza.tools.fetching import page_text
from cadenza.tools.guard import inside
from cadenza.tools.redaction import Redactor
from cadenza.tools.sandbox import bubblewrap, sandbox_state

FULL = Rights(permission="full", commands=None, network=True, seconds=5.0)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "a.txt").write_text("one\ntwo\nthree\n", encoding="utf-8")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "c.py").write_text("x = 'two'\n", encoding="utf-8")
    (tmp_path / "bin.dat").write_bytes(b"\0\1\2")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").write_text("[core]\n", encoding="utf-8")
    return tmp_path


def use(work: Path, name: str, rights: Rights = FULL, **arguments: Any) -> ToolResult:
    tool = registry.find(name)
    assert tool is not None
    context = ToolContext(run="r", demand="d", workspace=work, rights=rights)
    return asyncio.run(WorkTools(Redactor({})).execute(tool, arguments, context))


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("read_file", {"path": "a.txt"}, "one\ntwo\nthree\n"),
        (
            "read_file",
            {"path": "a.txt", "offset": 2, "limit": 1},
            "two\n\n[1 more lines; go on with offset 3]",
        ),
        ("read_file", {"path": "a.txt", "offset": 9}, "(nothing there)"),
        ("write_file", {"path": "n/x.txt", "content": "hé"}, "Wrote n/x.txt (3 bytes)."),
        ("edit_file", {"path": "a.txt", "old": "two", "new": "2"}, "Changed a.txt."),
        ("append_file", {"path": "a.txt", "content": "four\n"}, "Appended to a.txt."),
        ("delete_file", {"path": "a.txt"}, "Deleted a.txt."),
        ("delete_file", {"path": "gone"}, "gone is not there."),
        ("list_dir", {}, ".git/\na.txt\nb/\nbin.dat"),
        ("list_dir", {"path": "b"}, "c.py"),
        ("make_dir", {"path": "d/e"}, "d/e is there."),
        ("file_info", {"path": "gone"}, "gone is not there."),
        ("glob", {"pattern": "**/*.py"}, "b/c.py"),
        ("glob", {"pattern": "*.txt"}, "a.txt"),
        ("glob", {"pattern": "nothing*"}, "(nothing found)"),
        ("grep", {"pattern": "tw[o]"}, "a.txt:2: two\nb/c.py:1: x = 'two'"),
        ("grep", {"pattern": "TWO", "ignore_case": True, "glob": "*.py"}, "b/c.py:1: x = 'two'"),
        ("run_command", {"argv": ["echo", "hi"]}, "hi\n"),
        ("shell", {"command": "echo $((1 + 1))"}, "2\n"),
    ],
)
def test_what_each_tool_does(work: Path, name: str, arguments: dict[str, Any], told: str) -> None:
    result = use(work, name, **arguments)
    assert (result.text, result.error) == (told, False)


@pytest.mark.parametrize(
    ("name", "arguments", "code", "told"),
    [
        ("read_file", {"path": "a.tx"}, "not_found", "did you mean a.txt?"),
        ("read_file", {"path": "b"}, "is_folder", "list_dir shows it"),
        ("read_file", {"path": "bin.dat"}, "binary", "no text file"),
        ("read_file", {"path": "../x"}, "outside", "leads out of the workspace"),
        ("read_file", {"path": "/etc/passwd"}, "outside", "leads out of the workspace"),
        ("read_file", {"path": "a\0b"}, "bad_path", "NUL"),
        ("write_file", {"path": "b", "content": "x"}, "is_folder", "is a folder"),
        ("write_file", {"path": ".git/config", "content": "x"}, "protected", "tools do not change"),
        ("write_file", {"path": ".cadenza/config.yaml", "content": "x"}, "protected", "tools do not change"),
        ("write_file", {"path": ".", "content": "x"}, "bad_path", "the workspace itself"),
        (
            "edit_file",
            {"path": "a.txt", "old": "twoo", "new": "2"},
            "not_found",
            "The nearest line is 2: 'two'",
        ),
        ("edit_file", {"path": "a.txt", "old": "e", "new": "3"}, "ambiguous", "stands 3 times"),
        ("edit_file", {"path": "a.txt", "old": "x", "new": "x"}, "nothing", "the same text"),
        ("delete_file", {"path": "b"}, "not_empty", "not empty"),
        ("grep", {"pattern": "("}, "bad_pattern", "cannot be read"),
        ("run_command", {"argv": ["false"]}, "exit_code", "exit code 1"),
        ("run_command", {"argv": ["no-such-program"]}, None, "no-such-program"),
        ("run_command", {"argv": []}, "bad_arguments", "argv"),
        ("fetch_url", {"url": "ftp://x/y"}, "bad_url", "no http or https"),
        ("fetch_url", {"url": "http://127.0.0.1:9/"}, "private_address", "private address"),
        ("fetch_url", {"url": "http://[::1]/"}, "private_address", "private address"),
        ("fetch_url", {"url": "http://169.254.169.254/latest"}, "private_address", "private address"),
        ("fetch_url", {"url": "http://a b/"}, None, "fetch_url"),
    ],
)
def test_what_cannot_be_done_tells_the_model_why(
    work: Path, name: str, arguments: dict[str, Any], code: str | None, told: str
) -> None:
    result = use(work, name, **arguments)
    assert result.error
    assert told in result.text
    assert code is None or result.code == code


def test_without_rights_nothing_is_run_or_fetched(work: Path) -> None:
    assert use(work, "run_command", Rights(permission="edit"), argv=["ls"]).code == "not_allowed"
    assert use(work, "fetch_url", Rights(), url="http://example.com").code == "no_network"


def test_repeating_what_is_idempotent_gives_the_same_state(work: Path) -> None:
    calls: dict[str, dict[str, Any]] = {
        "write_file": {"path": "n.txt", "content": "x"},
        "make_dir": {"path": "m"},
        "delete_file": {"path": "a.txt"},
    }
    for name, arguments in calls.items():
        tool = registry.find(name)
        assert tool is not None
        assert tool.spec.effect == "idempotent"
        use(work, name, **arguments)
        before = sorted(str(path) for path in work.rglob("*"))
        assert not use(work, name, **arguments).error
        assert sorted(str(path) for path in work.rglob("*")) == before


def test_a_link_out_of_the_workspace_leads_nowhere(
    work: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (outside / "secret").write_text("s", encoding="utf-8")
    (work / "link").symlink_to(outside)
    (work / "file").symlink_to(outside / "secret")
    for path in ("link/secret", "file", "link/../link/secret"):
        assert use(work, "read_file", path=path).code == "outside"
    assert use(work, "write_file", path="link/new", content="x").code == "outside"
    assert use(work, "write_file", path="file", content="x").code == "outside"
    assert (outside / "secret").read_text(encoding="utf-8") == "s"
    assert use(work, "glob", pattern="**/*").text.count("secret") == 0


@settings(max_examples=300, deadline=None)
@given(path=st.text(alphabet="ab./\\ ~é", max_size=30))
def test_whatever_the_path_it_is_inside_or_refused(path: str) -> None:
    root = Path("/usr/lib")
    try:
        real = inside(root, path)
    except ToolError:
        return
    assert real == root.resolve() or root.resolve() in real.parents


def test_a_workspace_that_has_disappeared_is_a_result(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    assert use(gone, "list_dir").code == "workspace_gone"
    assert use(gone, "run_command", argv=["ls"]).code == "workspace_gone"


def test_a_pattern_that_never_ends_is_given_up(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cadenza.tools.searching.SEARCH_SECONDS", 1.0)
    (work / "long.txt").write_text("a" * 40 + "b", encoding="utf-8")
    assert use(work, "grep", pattern="(a+)+$").code == "timeout"


def test_a_command_s_children_are_killed_with_it(work: Path) -> None:
    begun = time.monotonic()
    result = use(work, "shell", command="(sleep 30; touch late) & sleep 30", seconds=1)
    assert result.code == "timeout"
    assert time.monotonic() - begun < 5
    assert not (work / "late").exists()


def test_a_command_sees_no_secret_of_this_process(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_TOKEN", "swordfish-9876")
    assert "swordfish" not in use(work, "run_command", argv=["env"]).text


def test_in_a_sandbox_a_command_changes_nothing_outside_and_has_no_network(work: Path) -> None:
    if bubblewrap() is None:
        pytest.skip(sandbox_state())
    rights = Rights(permission="edit", commands=("sh",), seconds=10)
    told = use(
        work,
        "run_command",
        rights,
        argv=["sh", "-c", "touch /usr/x; touch .git/x; touch ok; ls /sys/class/net"],
    )
    assert (work / "ok").exists()
    assert not (work / ".git" / "x").exists()
    assert not Path("/usr/x").exists()
    assert told.data["sandbox"] is True


# -- pages ------------------------------------------------------------------------------------------------


class _Pages(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        moved = {"/moved": "/page", "/round": "/round"}.get(self.path)
        self.send_response(302 if moved else 404 if self.path == "/gone" else 200)
        if moved:
            self.send_header("location", moved)
        kind = "image/png" if self.path == "/image" else "text/html; charset=utf-8"
        self.send_header("content-type", kind)
        self.end_headers()
        self.wfile.write(b"<html><script>no()</script><h1>Title</h1><p>caf\xc3\xa9 &amp; more</p></html>")

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""


@pytest.fixture
def pages(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("CADENZA_FETCH_PRIVATE", "1")
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Pages)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()


@pytest.mark.parametrize(
    ("path", "code", "told"),
    [
        ("/page", None, "Title\n\ncafé & more"),
        ("/moved", None, "Title"),
        ("/round", "redirects", "more than"),
        ("/gone", "http_status", "HTTP 404"),
        ("/image", "binary", "not text"),
    ],
)
def test_pages_are_read_as_text(work: Path, pages: str, path: str, code: str | None, told: str) -> None:
    result = use(work, "fetch_url", url=pages + path)
    assert result.code == code
    assert told in result.text
    assert "no()" not in result.text


@given(st.text(max_size=200))
def test_no_page_breaks_the_reader(page: str) -> None:
    assert isinstance(page_text(page), str)


# -- limits, secrets, arguments ---------------------------------------------------------------------------


def test_a_long_result_keeps_its_beginning_and_its_end() -> None:
    short = cut("a" * 50_000_000 + "z", 1000)
    assert len(short) < 1200
    assert short.startswith("a")
    assert short.endswith("z")
    assert "characters left out" in short


def test_a_tool_that_hangs_is_given_up(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cadenza.tools.executor.GRACE", 0.1)

    async def hang(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        await asyncio.sleep(60)
        return ToolResult(text="late")

    tool = Tool(ToolSpec(name="hang", description="Hang.", parameters={"type": "object"}), hang)
    context = ToolContext(run="r", demand="d", workspace=work, rights=Rights(seconds=0.2))
    result = asyncio.run(WorkTools(Redactor({})).execute(tool, {}, context))
    assert (result.code, "did not come back" in result.text) == ("timeout", True)


@settings(max_examples=200, deadline=None)
@given(
    secret=st.text(alphabet=st.characters(min_codepoint=33, max_codepoint=126), min_size=8, max_size=40),
    before=st.text(max_size=20),
    after=st.text(max_size=20),
)
def test_a_secret_survives_in_no_form(secret: str, before: str, after: str) -> None:
    redactor = Redactor({"THE_TOKEN": secret, "PLAIN": "visible-value"})
    for form in (secret, quote(secret, safe="")):
        assert form not in redactor.text(f"{before}{form}{after}").replace("[secret THE_TOKEN]", "\0")
    coded = base64.b64encode(f"{before}{secret}{after}".encode()).decode()
    shown = redactor.text(coded)
    if len(secret) >= 16:
        assert "[secret THE_TOKEN]" in shown
    assert redactor.value({"a": [secret, 1]}) == {"a": ["[secret THE_TOKEN]", 1]}
    assert redactor.text("visible-value") == "visible-value"


@given(st.text(max_size=300))
def test_arguments_are_a_mapping_or_words(text: str) -> None:
    assert isinstance(parse_arguments(text), dict | str)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{a: 1}", "line 1, column 2"),
        ('{"a": NaN}', "NaN is no JSON"),
        ('{"a": 1, "a": 2}', "stands there twice"),
        ("[" * 100_000, "nested too deeply"),
        ('"x"', "this is a text"),
        ("null", "this is null"),
    ],
)
def test_what_is_wrong_with_arguments_is_said(text: str, told: str) -> None:
    assert told in str(parse_arguments(text))


def test_no_arguments_are_an_empty_mapping() -> None:
    assert parse_arguments(" ") == {}


# -- definitions ------------------------------------------------------------------------------------------


def test_every_definition_is_closed_static_and_in_one_order() -> None:
    names = [tool.spec.name for tool in registry.built_in()]
    assert names == [
        *("read_file", "write_file", "edit_file", "append_file", "delete_file", "list_dir", "make_dir"),
        *("file_info", "glob", "grep", "run_command", "shell", "fetch_url"),
    ]
    for tool in registry.built_in():
        assert tool.spec.parameters["additionalProperties"] is False
        assert not any(letter.isdigit() for letter in tool.spec.description)
        assert registry.problem_with(tool.spec) is None


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"name": "a b"}, "letters, digits"),
        ({"parameters": {"type": "array"}}, "no object"),
        ({"kind": "terminal"}, "does not say how"),
        ({"kind": "park"}, "does not say what"),
        ({"park": Park(sentinel="lower")}, "not in capitals"),
        ({"park": Park(sentinel="X", status="parked")}, "waiting_"),
        ({"park": Park(sentinel="ASK", status="waiting_x")}, "means waiting_human"),
    ],
)
def test_a_definition_that_cannot_be_used_is_refused(changes: dict[str, Any], told: str) -> None:
    made: dict[str, Any] = {"name": "x", "description": "X.", "parameters": {"type": "object"}, **changes}
    assert told in str(registry.problem_with(ToolSpec(**made)))
