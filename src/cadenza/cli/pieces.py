"""``lint``, ``pieces``, ``prompt`` and ``init``: what can be done with pieces before they are played."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from cadenza.cli.context import Context, as_data
from cadenza.cli.output import out
from cadenza.errors import CadenzaError, NotFound, UsageError
from cadenza.piece.vocabulary import Dialect, Language, Phases

if TYPE_CHECKING:
    from cadenza.piece.find import PieceInfo
    from cadenza.piece.model import Piece
    from cadenza.piece.problems import Problem
    from cadenza.preview import Prompt

AsJson = Annotated[bool, typer.Option("--json", help="As JSON.")]
Lang = Annotated[Language | None, typer.Option(help="Language of the package's pieces and texts.")]


def lint(
    paths: Annotated[
        list[str] | None, typer.Argument(metavar="PATH...", help="Files, or names of pieces.")
    ] = None,
    json: AsJson = False,
    schema: Annotated[
        Dialect | None, typer.Option(help="Print the JSON Schema of this format, for editors.")
    ] = None,
) -> None:
    """Check pieces: every problem as file:line:column, with the fix."""
    if schema is not None:
        from cadenza.piece.schema import piece_schema

        out.json(piece_schema(schema))
        return
    if not paths:
        raise UsageError("lint was given no piece", hint="name files or pieces, or ask for --schema native")
    checked = [_checked(path, alone=len(paths) == 1) for path in paths]
    errors = any(entry["errors"] for entry in checked)
    if json:
        out.json([{key: entry[key] for key in ("path", "dialect", "problems")} for entry in checked])
    else:
        for entry in checked:
            _tell(entry)
    if errors:
        raise typer.Exit(1)


def _checked(path: str, *, alone: bool) -> dict[str, Any]:
    """What lint says of one piece. One of several that is not there is a problem; the others are checked."""
    from cadenza.cli.task import suggesting
    from cadenza.piece.find import find_piece
    from cadenza.piece.lint import dialect_of, not_there
    from cadenza.piece.lint import lint as lint_one

    try:
        with suggesting(path):
            found = find_piece(path, cwd=Path.cwd())
    except NotFound as error:
        if alone:
            raise
        return _entry(path, None, [not_there(path, error)])
    if found.origin != "path":
        path = _nearby(found.path)
    problems = lint_one(path)
    try:
        dialect: str | None = str(dialect_of(found.path))
    except CadenzaError:  # it cannot even be parsed; lint has said so
        dialect = None
    return _entry(path, dialect, problems)


def _entry(path: str, dialect: str | None, problems: "list[Problem]") -> dict[str, Any]:
    from dataclasses import asdict

    from cadenza.piece.lint import has_errors

    return {
        "path": path,
        "dialect": dialect,
        "found": problems,
        "problems": [asdict(problem) for problem in problems],
        "errors": has_errors(problems),
    }


def _nearby(path: Path) -> str:
    """A path as a person here would write it."""
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


def _tell(entry: dict[str, Any]) -> None:
    from cadenza.cli.words import clean, plural

    problems: list[Problem] = entry["found"]
    for problem in problems:
        warning = "warning: " if problem.severity == "warning" else ""
        place = f"{problem.file}:{problem.line}:{problem.column}: "
        out.line(clean(place + warning + str(problem).removeprefix(place)))
    errors = sum(problem.severity == "error" for problem in problems)
    dialect = f"{entry['dialect']} dialect" if entry["dialect"] else "dialect unknown"
    warnings = len(problems) - errors
    verdict = f"{plural(errors, 'error')}, {plural(warnings, 'warning')}" if problems else "no problems"
    out.line(f"{entry['path']}: {dialect}, {verdict}")


def list_all(ctx: typer.Context, json: AsJson = False) -> None:
    """List the pieces that can be played by name from here."""
    from dataclasses import asdict

    from cadenza.cli.words import table
    from cadenza.piece.find import list_pieces

    found = list_pieces(Path.cwd(), Context.of(ctx).settings().language)
    if json:
        out.json([asdict(piece) for piece in found])
        return
    cells = [(piece.name, piece.dialect or "?", piece.origin, _described(piece)) for piece in found]
    heads, drop = ("PIECE", "DIALECT", "ORIGIN", "DESCRIPTION"), ("DIALECT", "ORIGIN")
    for line in table(heads, cells, drop=drop, shrink={"DESCRIPTION": 30}):
        out.line(line)


def _described(piece: "PieceInfo") -> str:
    """What a piece is for, or why it cannot be played."""
    if piece.problem is None:
        return piece.description or ""
    first, *more = piece.problem.splitlines()
    where = f"{piece.path}: " if not first.startswith(piece.path) else ""
    return f"BROKEN: {where}{first}" + (f" (and {len(more)} more)" if more else "")


def prompt(
    ctx: typer.Context,
    piece: Annotated[str, typer.Argument(help="A piece's name, or the path of its file.")],
    movement: Annotated[str, typer.Argument(help="A movement, a lane of one, or a loop judge.")],
    *,
    task: Annotated[str | None, typer.Option(help="The task; a placeholder without it.")] = None,
    phase: Annotated[
        int | None,
        typer.Option(min=1, max=3, help="Of phases three: 1 the work, 2 its reports, 3 the status."),
    ] = None,
    phases: Annotated[
        Phases | None, typer.Option(help="How each movement is asked; else as the piece says.")
    ] = None,
    lang: Lang = None,
    json: AsJson = False,
) -> None:
    """Print what an agent would be told, without playing anything."""
    from cadenza.cli.task import suggesting
    from cadenza.piece.find import load_piece
    from cadenza.preview import TASK, Phase, preview
    from cadenza.service import check_text

    if task is not None:
        check_text(task, "the task")
    with suggesting(piece):
        loaded = load_piece(piece, cwd=Path.cwd(), language=lang or Context.of(ctx).settings().language)
    loaded = loaded.changed(piece=_as_played(loaded.piece, phases))
    asked = cast("Phase | None", phase)
    prompts = preview(loaded, movement, task=TASK if task is None else task, language=lang, phase=asked)
    if json:
        out.json(as_data(prompts))
    elif prompts:
        _print(prompts)
    else:
        out.note(f"{movement} is asked nothing in phase {phase}")


def _as_played(piece: "Piece", phases: Phases | None) -> "Piece":
    """The piece with what the option and the configuration change of it."""
    from cadenza.config import Configuration, apply

    try:
        piece = apply(piece, Configuration.load(Path.cwd()), any_provider=True)
    except UsageError as error:
        out.note(f"note: it would not be played: {error.message}")
    return piece if phases is None else piece.changed(phases=phases)


def _print(prompts: "list[Prompt]") -> None:
    """Each with a heading, unless there is one only that is a single message."""
    bare = len(prompts) == 1 and prompts[0].system is None
    for at, one in enumerate(prompts):
        if not bare:
            what = "" if one.key == "perform" else f": {one.key}"
            out.line(f"{'' if at == 0 else chr(10)}===== {one.movement} ({one.performer}){what} =====\n")
        if one.system is not None:
            tools = f"----- tools -----\n\n{', '.join(one.tools)}\n\n" if one.tools else ""
            out.line(f"----- system text -----\n\n{one.system}\n\n{tools}----- message -----\n")
        out.line(one.text)


def init() -> None:
    """Make .cadenza/ with an example piece to change. What is there already stays as it is."""
    from cadenza.cli.starting import make_example

    for line in make_example(Path.cwd()):
        out.line(line)
