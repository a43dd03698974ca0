"""What ``cadenza init`` makes."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from cadenza.errors import HostError

HOUSE = ".cadenza"


def make_example(cwd: Path) -> list[str]:
    """Make ``.cadenza/`` under ``cwd`` with an example piece and its personas; what to tell the person.

    A file that is there already stays as it is.

    Raises:
        HostError: one cannot be written.
    """
    source = Path(str(files("cadenza.cli") / "example"))
    paths = sorted(path.relative_to(source) for path in source.rglob("*") if path.is_file())
    return [*(_make(source / path, cwd / HOUSE / path, f"{HOUSE}/{path}") for path in paths), *_next()]


def _make(source: Path, target: Path, shown: str) -> str:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("xb") as file:
            file.write(source.read_bytes())
    except FileExistsError:
        if target.is_file():
            return f"kept  {shown} (it was there already)"
        raise HostError(f"{target} cannot be made: something is in the way", hint="move it away") from None
    except OSError as error:
        raise HostError(
            f"{target} cannot be written: {error.strerror}", hint="check the folder's permissions"
        ) from None
    return f"made  {shown}"


def _next() -> list[str]:
    return [
        "",
        "next:",
        "  cadenza lint first                 checks the piece",
        "  cadenza prompt first write         shows what the agent would be told",
        "  cadenza run first 'Explain TCP' --provider openai --model NAME",
        "                                     plays it; OPENAI_BASE_URL may name any compatible server",
        "  cadenza demo                       plays a larger piece from a script, without any key",
    ]
