"""What a piece says about agents with tools, and what it cannot say (Maestro B.9)."""

from __future__ import annotations

from pathlib import Path

import pytest

from cadenza.errors import PieceError
from cadenza.piece.find import load_piece
from cadenza.piece.model import Budget, LoadedPiece

HEAD = "cadenza: 1\nname: p\ninitial_movement: a\n"
TWO = "movements:\n  - name: a\n{0}    instruction: Do it.\n  - {{name: b, instruction: Check it.}}\n"


@pytest.fixture(autouse=True)
def nobody_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


def load(folder: Path, text: str) -> LoadedPiece:
    (folder / "p.yaml").write_text(text, encoding="utf-8")
    return load_piece("./p.yaml", cwd=folder)


def movement(folder: Path, *lines: str) -> LoadedPiece:
    """A piece whose movement ``a`` has these lines; they begin at 6:5."""
    return load(folder, HEAD + TWO.format("".join(f"    {line}\n" for line in lines)))


def refused(folder: Path, text: str) -> list[str]:
    with pytest.raises(PieceError) as caught:
        load(folder, text)
    return [str(problem) for problem in caught.value.problems]


def test_tools_are_the_rule_and_tags_remain_where_only_they_are_played(tmp_path: Path) -> None:
    assert movement(tmp_path).piece.control == "tools"
    assert load(tmp_path, f"{HEAD}phases: three\n" + _tagged()).piece.control == "tags"
    assert load(tmp_path, f"{HEAD}control: tags\n" + _tagged()).piece.control == "tags"


def _tagged() -> str:
    return "movements:\n  - {name: a, instruction: Do it., rules: [{condition: x, next: COMPLETE}]}\n"


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("COMPLETE", "remove the rule: the agent ends the work with the tool complete"),
        ("ABORT", "remove the rule: the agent gives up with the tool complete, status aborted"),
        ("ASK", "remove the rule: the agent asks with the tool complete, status needs_user_input"),
        ("WAITING_HUMAN_TOOL_REQUEST", "remove the rule: a tool parks the run when it is needed"),
        ("bb", "no movement has this name (bb); did you mean b?"),
        ("", "no movement has this name"),
    ],
)
def test_a_rule_leads_to_a_movement_or_waits_for_sub_tasks(tmp_path: Path, target: str, words: str) -> None:
    (problem,) = refused(tmp_path, HEAD + TWO.format(f"    rules: [{{condition: x, next: '{target}'}}]\n"))
    assert words in problem
    assert "p.yaml:6:" in problem


@pytest.mark.parametrize("target", ["COMPLETE", "ABORT", "b"])
def test_default_next_is_a_movement_or_an_end(tmp_path: Path, target: str) -> None:
    assert movement(tmp_path, f"default_next: {target}").piece.movements[0].default_next == target


@pytest.mark.parametrize("target", ["ASK", "WAIT_SUBTASKS", "c"])
def test_default_next_is_no_park(tmp_path: Path, target: str) -> None:
    (problem,) = refused(tmp_path, HEAD + TWO.format(f"    default_next: {target}\n"))
    assert f"default_next leads to no movement ({target})" in problem


WARNED = [
    (
        ["rules: [{condition: x, next: WAIT_SUBTASKS}]"],
        "after the sub-tasks the run ends here: nobody reads their results",
    ),
    (["allowed_tools: [read_fil]"], "the package has no such tool (read_fil); did you mean read_file?"),
    (["allowed_tools: [weigh]"], "the package has no such tool (weigh); a plug-in must bring it"),
    (["allowed_tools: ['zz*']"], "no tool of the package begins so (zz*); a plug-in's may"),
    (
        ["edit: false", "allowed_tools: [write_file]"],
        "this movement can never use write_file: it may change nothing",
    ),
    (["edit: true", "allowed_commands: [make]"], "allowed_commands without run_command among allowed_tools"),
    (
        ["edit: true", "allowed_tools: [run_command]"],
        "run_command without allowed_commands runs nothing but in mode full",
    ),
]


@pytest.mark.parametrize(("lines", "words"), WARNED, ids=[words[:30] for _, words in WARNED])
def test_what_would_surprise_is_a_warning(tmp_path: Path, lines: list[str], words: str) -> None:
    assert [words in str(warning) for warning in movement(tmp_path, *lines).warnings] == [True]


@pytest.mark.parametrize(
    "lines",
    [
        ["rules: [{condition: x, next: WAIT_SUBTASKS}]", "default_next: b"],
        ["edit: true", "allowed_tools: [run_command]", "allowed_commands: [make]"],
        ["edit: true", "allowed_tools: ['read_*', shell, 'run_*']", "allowed_commands: [make]"],
    ],
)
def test_what_is_right_is_not_warned_of(tmp_path: Path, lines: list[str]) -> None:
    assert movement(tmp_path, *lines).warnings == ()


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("context: {warn: 90}", "the levels of context do not grow (warn 90, urge 85, force 95)"),
        ("context: {windo: 9}", "context has no such key (windo); did you mean window?"),
        ("text_only_limit: 0", "text_only_limit must be"),
        ("ask_limit: -1", "ask_limit must be"),
        ("requests: {deadline: soon}", "deadline must be a time above 0 (soon)"),
        ("requests: {deadline: 0}", "deadline must be a time above 0 (0)"),
        ("requests: {on_deadline: wait}", "on_deadline must be one of resume, abort (wait)"),
        ("budget: {cost: nan}", "cost must be a number above 0"),
        ("budget: {cost: .inf}", "cost must be a number above 0"),
        ("budget: {tokens: 0}", "tokens must be"),
        ("budget: {wall_time: -2h}", "wall_time must be a time above 0 (-2h)"),
        ("mcp_servers: {x: {}}", "a server has either a command or a url (x)"),
        ("mcp_servers: {x: {command: [a], url: 'http://b'}}", "a server has either a command or a url (x)"),
        ("mcp_servers: {'a b': {command: [a]}}", "a server cannot be called so (a b)"),
        ("mcp_servers: {x: {comand: [a], command: [a]}}", "has no such key (comand)"),
    ],
)
def test_mistakes_of_the_piece(tmp_path: Path, lines: str, words: str) -> None:
    problems = refused(tmp_path, f"{HEAD}{lines}\n{TWO.format('')}")
    assert [words in problem for problem in problems] == [True], problems
    assert "p.yaml:4:" in problems[0]


def test_tools_of_a_server_that_is_not_declared(tmp_path: Path) -> None:
    (problem,) = refused(tmp_path, HEAD + TWO.format("    allowed_tools: [mcp__gone__*]\n"))
    assert "the piece declares no such server (mcp__gone__*)" in problem
    assert "none is declared" in problem


def test_a_secret_in_a_header_is_a_warning(tmp_path: Path) -> None:
    servers = "mcp_servers: {x: {url: 'http://b', headers: {Authorization: Bearer abc}}}\n"
    (warning,) = load(tmp_path, HEAD + servers + TWO.format("")).warnings
    assert "a secret does not belong into a piece" in str(warning)
    assert "Bearer" not in str(warning)


@pytest.mark.parametrize(
    ("written", "seconds"),
    [("90", 90.0), ("90s", 90.0), ("1.5h", 5400.0), ("30 m", 1800.0), ("3d", 259200.0)],
)
def test_times(tmp_path: Path, written: str, seconds: float) -> None:
    loaded = load(tmp_path, f"{HEAD}budget: {{wall_time: {written}}}\n{TWO.format('')}")
    assert loaded.piece.budget == Budget(wall_time=seconds)


def test_takts_format_knows_tags_only(tmp_path: Path) -> None:
    text = "name: p\n{0}movements:\n  - {{name: a, rules: [{{condition: x, next: COMPLETE}}]}}\n"
    assert load(tmp_path, text.format("")).piece.control == "tags"
    (problem,) = refused(tmp_path, text.format("control: tools\n"))
    assert "control by tools belongs to Cadenza's own format (tools)" in problem
