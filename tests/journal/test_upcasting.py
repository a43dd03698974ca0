"""Events of older spellings are read by this version; those of newer ones are named."""

from __future__ import annotations

from typing import Any

import pytest

from cadenza.core import events as ev
from cadenza.core import upcasting
from cadenza.errors import JournalCorrupt, JournalNewer
from cadenza.journal.sqlite import SqliteJournal
from tests.journal.by_hand import ByHand


@pytest.fixture(autouse=True)
def registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Upcasters that are gone after the test."""
    monkeypatch.setattr(upcasting, "UPCASTERS", {})


def test_an_old_field_name_is_read() -> None:
    @upcasting.upcaster("report.saved")
    def file_to_name(raw: dict[str, Any]) -> None:
        upcasting.rename(raw, "file", "name")

    saved = ev.ReportSaved(name="plan.md", text="t")
    for spelling in ("file", "name"):
        payload = f'{{"type":"report.saved","{spelling}":"plan.md","text":"t"}}'
        assert upcasting.read(payload, run="r", seq=1) == saved
    assert upcasting.read(ev.encode(saved), run="r", seq=1) == saved


def test_a_renamed_type_is_read_and_upcasters_apply_in_order() -> None:
    @upcasting.upcaster("note.kept")
    def retype(raw: dict[str, Any]) -> None:
        raw["type"] = "report.saved"

    @upcasting.upcaster("note.kept")
    def fill(raw: dict[str, Any]) -> None:
        assert raw["type"] == "report.saved"
        raw.setdefault("text", "t")

    old = '{"type":"note.kept","name":"n"}'
    assert upcasting.read(old, run="r", seq=1) == ev.ReportSaved(name="n", text="t")


def test_an_old_journal_loads_folds_and_verifies_through_its_upcasters(sqlite: SqliteJournal) -> None:
    run = ByHand(sqlite).begin().claim()
    run.park()
    with sqlite._database.write() as connection:
        connection.execute(
            "UPDATE events SET payload = replace(replace(payload, '\"movement\":', '\"step\":'),"
            " 'visit.started', 'step.started') WHERE type = 'visit.started'"
        )
    with pytest.raises(JournalNewer, match=r"run r1, event 2 is of type 'step\.started'"):
        sqlite.events("r1")

    @upcasting.upcaster("step.started")
    def step_to_visit(raw: dict[str, Any]) -> None:
        raw["type"] = "visit.started"
        upcasting.rename(raw, "step", "movement")

    event = sqlite.events("r1")[1].event
    assert isinstance(event, ev.VisitStarted)
    assert event.movement == "plan"
    assert sqlite.verify() == []


@pytest.mark.parametrize("registered", [False, True])
def test_what_cannot_be_read_names_run_event_and_type(registered: bool) -> None:
    if registered:
        upcasting.UPCASTERS["x"] = [lambda raw: None]
    with pytest.raises(JournalNewer, match=r"run r7, event 3 is of type 'y'.*\n.*later one"):
        upcasting.read('{"type":"y"}', run="r7", seq=3)
    with pytest.raises(JournalCorrupt, match=r"run r7, event 3 \(run.warned\).*code"):
        upcasting.read('{"type":"run.warned"}', run="r7", seq=3)
    with pytest.raises(JournalCorrupt, match=r"run r7, event 3 \(no type\)"):
        upcasting.read("garbage", run="r7", seq=3)


def test_every_event_is_known_by_its_type() -> None:
    assert "run.started" in upcasting.KNOWN
    assert len(upcasting.KNOWN) == len(ev.AnyEvent.__args__)
