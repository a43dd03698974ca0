"""Ejecting: a piece and its texts, copied to where they can be changed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from cadenza.cli.eject import eject as command
from cadenza.errors import Conflict, HostError, NotFound, PieceError
from cadenza.piece.eject import eject
from cadenza.piece.find import find_piece, load_piece
from cadenza.piece.model import LoadedPiece
from cadenza.piece.vocabulary import Language


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path / "project"


def put(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def origins(loaded: LoadedPiece) -> set[str]:
    movements = [m for top in loaded.piece.movements for m in (top, *top.lanes)]
    facets = [f for m in movements for f in (m.persona, *m.policies, *m.knowledge) if f]
    return {facet.origin for facet in facets}


def personas(loaded: LoadedPiece) -> list[str]:
    movements = [m for top in loaded.piece.movements for m in (top, *top.lanes)]
    return [m.persona.text for m in movements if m.persona]


@pytest.mark.parametrize("language", ["en", "ja"])
@pytest.mark.parametrize("name", ["hello", "plan-build-review", "research"])
def test_our_own_pieces_can_be_changed(project: Path, name: str, language: Language) -> None:
    before = load_piece(name, cwd=project, language=language)
    done = eject(name, cwd=project, language=language)
    assert {one.what for one in done} == {"made"}
    assert done[-1].path == project / ".cadenza" / "pieces" / f"{name}.yaml"
    after = load_piece(name, cwd=project)
    assert find_piece(name, cwd=project).origin == "project"
    assert (after.texts, after.warnings, after.piece.language) == (before.texts, (), language)
    assert all(origin.startswith("../facets/") for origin in origins(after))
    for one in done[:-1]:
        one.path.write_text("changed\n", encoding="utf-8")
    changed = load_piece(name, cwd=project)
    assert personas(changed)
    assert all(changed.texts[hash] == "changed\n" for hash in personas(changed))


def test_to_the_persons_own_folder(project: Path, tmp_path: Path) -> None:
    done = eject("hello", cwd=project, user=True)
    assert all(one.path.is_relative_to(tmp_path / "home" / ".cadenza") for one in done)
    assert find_piece("hello", cwd=project).origin == "user"


TAKT = """name: p
personas: {boss: ../agents/boss.md}
policies: {fair: Be fair.}
movements:
  - name: lead
    persona: boss
    policy: fair
    knowledge: shared
    team_leader: {part_persona: hand}
    rules: [{condition: x, next: rows}]
  - name: rows
    arpeggio: {source: csv, source_path: ../data/rows.csv, template: prompts/row.md}
    rules: [{condition: x, next: COMPLETE}]
"""


def test_a_takt_piece_goes_to_takts_folder_with_every_file_it_names(project: Path, tmp_path: Path) -> None:
    away = tmp_path / "away"
    put(away / "pieces/p.yaml", TAKT)
    put(away / "agents/boss.md", "You lead.")
    put(away / "facets/personas/hand.md", "You do.")
    put(project / ".cadenza/facets/knowledge/shared.md", "Known.")
    put(away / "pieces/prompts/row.md", "Do {line:1}")
    put(away / "data/rows.csv", "a\n1\n")
    before = load_piece(str(away / "pieces/p.yaml"), cwd=project)
    done = eject(str(away / "pieces/p.yaml"), cwd=project)
    assert sorted(str(one.path.relative_to(project / ".takt")) for one in done) == [
        "agents/boss.md",
        "data/rows.csv",
        "facets/knowledge/shared.md",
        "facets/personas/hand.md",
        "pieces/p.yaml",
        "pieces/prompts/row.md",
    ]
    after = load_piece("p", cwd=project)
    assert (after.texts, after.warnings) == (before.texts, ())
    rows = after.piece.by_name["rows"].arpeggio
    assert rows is not None
    assert rows.source == str(project / ".takt/data/rows.csv")


def test_nothing_is_written_over(project: Path) -> None:
    mine = put(project / ".cadenza/facets/personas/helper.md", "Mine.")
    done = {one.path.name: one.what for one in eject("hello", cwd=project)}
    assert (done["helper.md"], mine.read_text(encoding="utf-8")) == ("differs", "Mine.")
    assert done["hello.yaml"] == "made"
    with pytest.raises(Conflict, match="is there already"):
        eject("hello", cwd=project)
    (project / ".cadenza/pieces/hello.yaml").unlink()
    again = eject("hello", cwd=project)
    assert [one.what for one in again[:-1]] == [
        "differs" if p == mine else "kept" for p in _paths(again[:-1])
    ]


def _paths(done: list) -> list[Path]:  # type: ignore[type-arg]
    return [one.path for one in done]


def test_a_piece_that_is_the_projects_own_is_left_alone(project: Path) -> None:
    put(
        project / ".takt/pieces/mine.yml",
        "name: p\nmovements: [{name: a, rules: [{condition: x, next: ABORT}]}]\n",
    )
    with pytest.raises(Conflict):
        eject("mine", cwd=project)
    assert sorted(path.name for path in project.rglob("*") if path.is_file()) == ["mine.yml"]


@pytest.mark.parametrize("reference", ["../../far/x.md", "../../../x.md"])
def test_a_path_that_a_copy_would_follow_elsewhere_is_refused(
    project: Path, tmp_path: Path, reference: str
) -> None:
    away = tmp_path / "one/two/pieces"
    put(Path(os.path.normpath(away / reference)), "words")
    put(
        away / "p.yaml",
        f"name: p\nmovements:\n- {{name: a, policy: {reference}, rules: [{{condition: x, next: ABORT}}]}}\n",
    )
    with pytest.raises(PieceError) as caught:
        eject(str(away / "p.yaml"), cwd=project)
    assert f"p.yaml:3:21: this path cannot be kept beside a copy ({reference})" in str(caught.value)
    assert not (project / ".takt").exists()


def test_an_absolute_path_stays_what_it_is(project: Path, tmp_path: Path) -> None:
    words = put(tmp_path / "words.md", "words")
    rules = "rules: [{condition: x, next: ABORT}]"
    put(tmp_path / "p.yaml", f"name: p\nmovements: [{{name: a, policy: {words}, {rules}}}]\n")
    assert [one.path.name for one in eject(str(tmp_path / "p.yaml"), cwd=project)] == ["p.yaml"]
    assert load_piece("p", cwd=project).warnings == ()


@pytest.mark.parametrize(("name", "error"), [("gone", NotFound), ("./bad.yaml", PieceError)])
def test_what_cannot_be_read_is_not_copied(project: Path, name: str, error: type[Exception]) -> None:
    put(project / "bad.yaml", "name: p\n")
    with pytest.raises(error):
        eject(name, cwd=project)
    assert sorted(path.name for path in project.iterdir()) == ["bad.yaml"]


def test_a_folder_that_cannot_be_made(project: Path) -> None:
    put(project / ".cadenza", "in the way")
    with pytest.raises(HostError, match="cannot be copied"):
        eject("hello", cwd=project)


Run = Callable[..., str]


@pytest.fixture
def run() -> Run:
    app = typer.Typer()
    app.command()(command)

    def ran(*words: str) -> str:
        result = CliRunner().invoke(app, words, catch_exceptions=False)
        assert result.exit_code == 0
        return result.output

    return ran


def test_the_command_says_what_it_wrote(project: Path, run: Run) -> None:
    put(project / ".cadenza/facets/personas/helper.md", "Mine.")
    assert run("hello").splitlines() == [
        "kept  .cadenza/facets/personas/helper.md (another was there already; it is used as it is)",
        "made  .cadenza/pieces/hello.yaml",
        "",
        "change them; cadenza run hello plays the copy from now on",
    ]


def test_the_command_as_json(project: Path, run: Run) -> None:
    import json

    done = json.loads(run("hello", "--json"))
    assert [(Path(one["path"]).name, one["what"]) for one in done] == [
        ("helper.md", "made"),
        ("hello.yaml", "made"),
    ]
