"""The two pieces of our own whose agents have tools, in both languages, played to the end and to an abort."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from cadenza.engine import RunResult
from cadenza.piece.find import load_piece
from cadenza.piece.lint import lint
from cadenza.preview import preview
from tests.agents.stage import Stage, ask, call, complete, go


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    (tmp_path / "CHANGELOG.md").write_text("* A --version flag.\n", encoding="utf-8")
    for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "Add a --version flag"]):
        who = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", *who, *command], cwd=tmp_path, check=True)
    return Stage(tmp_path, tmp_path / "journal.sqlite")


async def play(stage: Stage, name: str, script: list[Any], answers: list[Any], **options: Any) -> RunResult:
    """Play one of our pieces; every question gets the next answer, each time in another engine."""
    language = options.pop("language")
    piece = load_piece(name, cwd=stage.folder, language=language)
    async with stage.engine(script) as engine:
        run = await engine.start(piece, "Version 2", cwd=stage.folder, language=language, **options)
        result = await run.result()
    for answer in answers:
        async with stage.engine(script) as engine:
            await engine.answer(result.requests[0].id, answer)
            result = await engine.run(result.run).result()
    return result


@pytest.mark.parametrize("language", ["en", "ja"])
async def test_chat_reads_asks_and_answers(stage: Stage, language: str) -> None:
    script = [
        call("read_file", path="CHANGELOG.md"),
        ask("Which version?"),
        complete("It has a --version flag."),
    ]
    result = await play(stage, "chat", script, ["the last one"], language=language)
    assert (result.status, result.output) == ("completed", "It has a --version flag.")
    assert "transition" not in [tool["name"] for tool in stage.requests[0].tools]


NOTES = [
    {"movement": "collect", **call("run_command", argv=["git", "log", "--oneline"])},
    {"movement": "collect", **ask("For whom?")},
    {"movement": "collect", **complete("done already")},
    {"movement": "collect", **call("write_report", name="changes.md", content="- a flag")},
    {"movement": "collect", **go("draft")},
    {"movement": "draft", **call("write_report", name="draft.md", content="# 2\\n\\nA flag.")},
    {"movement": "draft", **go("publish")},
    {"movement": "draft", **go("review")},
    {"movement": "review", **go("draft", "say which flag")},
    {"movement": "draft", **call("write_report", name="draft.md", content="# 2\\n\\nA --version flag.")},
    {"movement": "draft", **go("review")},
    {"movement": "review", **go("publish")},
    {"movement": "publish", **ask("Approve?", choices=["approve", "change"])},
    {
        "movement": "publish",
        **call("write_file", path="RELEASE_NOTES.md", content="# 2\n\nA --version flag.\n"),
    },
    {"movement": "publish", **complete("The notes are in RELEASE_NOTES.md.")},
]


@pytest.mark.parametrize("language", ["en", "ja"])
async def test_release_notes_park_twice_and_are_written_after_a_review_that_nobody_skips(
    stage: Stage, language: str
) -> None:
    answers = ["users", "approve"]
    result = await play(stage, "release-notes", NOTES, answers, language=language, permission="acceptEdits")
    assert (result.status, result.output) == ("completed", "The notes are in RELEASE_NOTES.md.")
    assert "A --version flag." in (stage.folder / "RELEASE_NOTES.md").read_text(encoding="utf-8")
    told = [message.content for message in stage.requests[-1].messages if message.role == "tool"]
    assert any("Add a --version flag" in text for text in told)
    refused = "others have to look" if language == "en" else "ここで作業を終えることはできません"
    assert any(refused in text for text in told)
    assert [request.movement for request in stage.requests].count("review") == 2
    assert len({repr(request.tools) for request in stage.requests}) == 1


async def test_release_notes_of_nothing_are_given_up(stage: Stage) -> None:
    script = [{"movement": "collect", **complete("Nothing changed.", "aborted")}]
    result = await play(stage, "release-notes", script, [], language="en")
    assert (result.status, result.output) == ("aborted", "Nothing changed.")


@pytest.mark.parametrize("language", ["en", "ja"])
@pytest.mark.parametrize("name", ["chat", "release-notes"])
def test_they_are_clean_and_their_prompts_can_be_shown(stage: Stage, name: str, language: Any) -> None:
    assert lint(name, language=language) == []
    piece = load_piece(name, cwd=stage.folder, language=language)
    for movement in piece.piece.movements:
        (prompt,) = preview(piece, movement.name, cwd=stage.folder)
        assert prompt.system
        assert "complete" in prompt.tools
        assert f"# Movement {movement.name}" in prompt.text
