"""What ``cadenza doctor`` finds."""

from __future__ import annotations

import os
import platform
from collections import Counter
from importlib.util import find_spec
from typing import Any

from cadenza import __version__
from cadenza.cli.context import Context, as_data
from cadenza.cli.words import plural, size
from cadenza.errors import CadenzaError
from cadenza.journal.migrations import versions
from cadenza.providers.registry import provider_names
from cadenza.worker.folders import project_folder, remake_if_gone

_NEEDS = {"openai": "openai"}


def facts(context: Context) -> tuple[dict[str, Any], CadenzaError | None]:
    """Versions, the journal, its runs by status, the providers; and why the journal cannot be used."""
    settings = context.settings()
    path = settings.journal
    journal: dict[str, Any] = {"path": os.path.abspath(path), "exists": path.exists()}
    wrong: CadenzaError | None = None
    if path.exists():
        try:
            journal.update(_held(context))
        except CadenzaError as error:
            journal["error"], wrong = error.message, error
    found = {
        "cadenza": __version__,
        "python": platform.python_version(),
        "sqlite": versions()["sqlite"],
        "journal": journal,
        "providers": {name: _provider(name) for name in provider_names()},
        "provider": settings.provider,
        "model": settings.model,
        "language": settings.language,
        "actor": settings.actor,
    }
    return found, wrong


def _held(context: Context) -> dict[str, Any]:
    """What is in the journal."""
    with context.service() as service:
        return {
            "bytes": service.journal.size(),
            "schema": versions()["schema"],
            "runs": dict(Counter(row.status for row in service.runs())),
            "questions": len(service.inbox()),
        }


def _provider(name: str) -> str:
    package = _NEEDS.get(name)
    if package is not None and find_spec(package) is None:
        return f"not installed: pip install 'cadenza[{package}]'"
    return "available"


def told(found: dict[str, Any]) -> list[str]:
    """The facts for a person."""
    journal = found["journal"]
    lines = [f"cadenza    {found['cadenza']}, Python {found['python']}, SQLite {found['sqlite']}"]
    if not journal["exists"]:
        lines.append(f"journal    {journal['path']} (not there yet: the first run makes it)")
    elif "error" in journal:
        lines.append(f"journal    {journal['path']} (cannot be used: see below)")
    else:
        lines.append(f"journal    {journal['path']}, {size(journal['bytes'])}, schema {journal['schema']}")
        by_status = ", ".join(f"{count} {status}" for status, count in sorted(journal["runs"].items()))
        lines.append(f"runs       {by_status or 'none'}")
        lines.append(f"questions  {journal['questions']} open")
    lines += [f"provider   {name}: {state}" for name, state in found["providers"].items()]
    chosen = found["provider"] or "none (give --provider, or set CADENZA_PROVIDER)"
    lines.append(f"default    provider {chosen}, model {found['model'] or 'none'}")
    lines.append(f"you        {found['actor']}, engine texts in {found['language']}")
    return lines


def verify(context: Context) -> list[dict[str, Any]]:
    """Where the journal's rows are not what its events say."""
    with context.service() as service:
        found: list[dict[str, Any]] = as_data(service.journal.verify())
        return found


def verified(context: Context, problems: list[dict[str, Any]]) -> list[str]:
    """The same for a person."""
    if not problems:
        return ["every row is what the events say"]
    lines = [f"{problem['run'] or 'journal'}: {problem['what']}" for problem in problems]
    mend = context.command("doctor", "--rebuild")
    return [*lines, f"{plural(len(problems), 'problem')}; {mend} writes the rows anew from the events"]


def rebuild(context: Context) -> dict[str, int]:
    """Write the rows anew, and the run folders; one that is gone is made again. How many of each."""
    with context.service() as service:
        runs = service.journal.rebuild()
        ids = [row.id for row in service.runs()]
        states = {id: service.state(id) for id in ids}
        for id, state in states.items():
            remake_if_gone(service.journal, id, state)
        folders = sum(project_folder(service.journal, id, state) for id, state in states.items())
    return {"runs": runs, "folders": folders}


def rebuilt(found: dict[str, int]) -> list[str]:
    """The same for a person."""
    runs, folders = plural(found["runs"], "run"), plural(found["folders"], "run folder")
    return [f"written anew from the events: {runs}, {folders}"]
