"""``import cadenza`` is light: what is heavy is loaded when it is first used."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("pydantic", "asyncio", "typer", "rich", "yaml", "openai", "httpx", "sqlite3")


def loaded_after(code: str) -> set[str]:
    """The top-level modules of a fresh interpreter that has run ``code``."""
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys\nprint(*sorted(sys.modules))"],
        capture_output=True,
        text=True,
        check=True,
    )
    return {name.partition(".")[0] for name in done.stdout.split()}


@pytest.mark.parametrize("module", HEAVY)
def test_import_cadenza_does_not_load(module: str) -> None:
    assert module not in loaded_after("import cadenza")


def test_every_public_name_can_be_had() -> None:
    loaded_after("import cadenza\nfor name in cadenza.__all__: getattr(cadenza, name)")


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    import cadenza

    with pytest.raises(AttributeError, match="no_such_name"):
        _ = cadenza.no_such_name


@pytest.mark.parametrize("module", ["cadenza.core.conductor", "cadenza.journal.sqlite"])
def test_core_and_journal_need_no_event_loop(module: str) -> None:
    assert not {"typer", "rich", "openai", "httpx"} & loaded_after(f"import {module}")
