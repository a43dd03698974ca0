"""The run's folder follows the journal, and nothing that is wrong with it harms the run."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from cadenza.core import events as ev
from cadenza.host.folder import append_log
from cadenza.journal.memory import MemoryJournal
from cadenza.journal.store import LEASE_SECONDS, Journal
from cadenza.testing import FrozenClock
from cadenza.worker.folders import log_line, project_folder
from tests.worker.helpers import TAKT, Behaving, engine_on, of, piece_in, saying

REPORTING = """
name: takt
initial_movement: plan
max_movements: 9
movements:
  - name: plan
    instruction_template: "plan in {report_dir}"
    report: {name: 00-plan.md}
    rules: [{condition: done, next: COMPLETE}]
"""


def folder_in(cwd: Path) -> Path:
    (found,) = [path for path in (cwd / ".takt" / "runs").iterdir() if path.is_dir()]
    return found


def meta(cwd: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder_in(cwd) / "meta.json").read_text())
    return found


def log_in(cwd: Path) -> Path:
    (found,) = (folder_in(cwd) / "logs").iterdir()
    return found


def lines_of(journal: Journal, run: str) -> str:
    return "".join(f"{log_line(item)}\n" for item in journal.events(run))


async def test_a_run_that_was_cancelled_before_it_had_a_folder_gets_one_when_it_is_retried(
    tmp_path: Path,
) -> None:
    journal = MemoryJournal()
    model = saying("```markdown\n# The plan\n```\n[STEP:0]")
    async with engine_on(journal, model) as engine:
        run = await engine.start(piece_in(tmp_path, REPORTING), "x", cwd=tmp_path, play=False)
        engine.service.cancel(run.id)
        await engine.worker.play(run.id)
        assert run.row.status == "cancelled"
        assert not (tmp_path / ".takt").exists()
        assert (await (await engine.retry(run.id)).result()).status == "completed"
        assert list(engine.service.reports(run.id)) == ["00-plan.md"]
    folder = folder_in(tmp_path)
    assert (folder / "reports" / "00-plan.md").read_text().strip() == "# The plan"
    assert f"plan in .takt/runs/{folder.name}/reports" in model.requests[0].messages[0].content


async def test_a_worker_that_lost_its_lease_does_not_touch_the_folder(tmp_path: Path) -> None:
    clock = FrozenClock()
    journal = MemoryJournal(clock=clock)
    gate = asyncio.Event()

    async def slow(request: Any) -> str:
        await gate.wait()
        return "mine [STEP:0]"

    model = Behaving(slow)
    async with engine_on(journal, model) as one, engine_on(journal, saying("theirs [STEP:0]")) as two:
        run = await one.start(piece_in(tmp_path, TAKT), "x", cwd=tmp_path)
        await model.asked.wait()
        clock.advance(LEASE_SECONDS + 1)
        assert (await two.play(run.id).result()).status == "completed"
        before = meta(tmp_path), log_in(tmp_path).read_bytes()
        assert (before[0]["status"], "endTime" in before[0]) == ("completed", True)
        gate.set()
        await run.result()
    assert (meta(tmp_path), log_in(tmp_path).read_bytes()) == before


async def test_the_log_is_added_to_and_not_written_anew(tmp_path: Path) -> None:
    journal = MemoryJournal()
    async with engine_on(journal, saying("q? [STEP:1]", "q? [STEP:1]", "ok [STEP:0]")) as engine:
        run = await engine.start(piece_in(tmp_path, TAKT), "x", cwd=tmp_path)
        inode, size = None, 0
        for _ in range(2):
            (request,) = (await run.result()).requests
            status = log_in(tmp_path).stat()
            assert status.st_size > size
            assert inode in (None, status.st_ino)
            inode, size = status.st_ino, status.st_size
            assert log_in(tmp_path).read_text() == lines_of(journal, run.id)
            await engine.answer(request.id, "this one")
        assert (await run.result()).status == "completed"
    assert log_in(tmp_path).stat().st_ino == inode
    assert log_in(tmp_path).read_text() == lines_of(journal, run.id)


@pytest.mark.parametrize("torn", [b'{"seq":7', b"\n\n", b"\xff\xfe"])
async def test_a_log_that_a_crash_cut_short_is_mended(torn: bytes, tmp_path: Path) -> None:
    journal = MemoryJournal()
    async with engine_on(journal, saying("q? [STEP:1]", "ok [STEP:0]")) as engine:
        run = await engine.start(piece_in(tmp_path, TAKT), "x", cwd=tmp_path)
        (request,) = (await run.result()).requests
        log = log_in(tmp_path)
        log.write_bytes(log.read_bytes()[:-9] + torn)
        await engine.answer(request.id, "this one")
        assert (await run.result()).status == "completed"
    assert log_in(tmp_path).read_text() == lines_of(journal, run.id)


async def test_only_new_events_are_read_for_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = MemoryJournal()
    async with engine_on(journal, saying("q? [STEP:1]", "ok [STEP:0]")) as engine:
        run = await engine.start(piece_in(tmp_path, TAKT), "x", cwd=tmp_path)
        (request,) = (await run.result()).requests
        logged = run.row.seq
        written: list[int] = []

        def counted(cwd: str, folder: str, name: str, lines: list[str]) -> None:
            written.append(len(lines))
            append_log(cwd, folder, name, lines)

        monkeypatch.setattr("cadenza.worker.folders.append_log", counted)
        await engine.answer(request.id, "this one")
        await run.result()
        assert written == [run.row.seq - logged]


async def test_a_folder_that_may_not_be_looked_at_harms_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = MemoryJournal()
    async with engine_on(journal, saying("q? [STEP:1]", "q? [STEP:1]", "ok [STEP:0]")) as engine:
        run = await engine.start(piece_in(tmp_path, TAKT), "x", cwd=tmp_path)
        (request,) = (await run.result()).requests
        is_dir = Path.is_dir

        def denied(path: Path, **options: Any) -> bool:
            if ".takt" in path.parts:
                raise PermissionError(13, "Permission denied", str(path))
            return is_dir(path, **options)

        with monkeypatch.context() as patched:
            patched.setattr(Path, "is_dir", denied)
            await engine.answer(request.id, "this one")
            result = await run.result()
            assert result.status in ("held", "waiting_human")
            assert journal.leases() == {}
            assert project_folder(journal, run.id, engine.service.state(run.id)) is False
        if result.status == "held":
            result = await (await engine.resume(run.id)).result()
        await engine.answer(result.requests[0].id, "that one")
        assert (await run.result()).status == "completed"
    assert log_in(tmp_path).read_text() == lines_of(journal, run.id)
    assert len(of(ev.RunEnded, journal, run.id)) == 1
