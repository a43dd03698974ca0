"""Snapshots of what a prompt is made of, and the reports that it quotes."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

from cadenza.errors import HostError
from cadenza.host import snapshots
from cadenza.host.files import SWEPT_AFTER
from cadenza.host.folder import open_folder
from cadenza.host.snapshots import prepare

AT = 1_770_465_600.0
TEXTS = {"k1": "Know A", "k2": "Know B\n", "p1": "Policy ü", "one": "first answer", "two": "second {x}"}


@pytest.fixture
def cwd(tmp_path: Path) -> Path:
    open_folder(str(tmp_path), run="r1", slug="s", at=AT, task_text="t", piece="p")
    return tmp_path


@pytest.fixture
def folder(cwd: Path) -> Path:
    return cwd / ".takt/runs/20260207-120000-s"


def ready(cwd: Path, **changed: object) -> dict[str, str | None]:
    args = {"folder": ".takt/runs/20260207-120000-s", "movement": "plan", "count": 1, "at": AT} | changed
    return prepare(str(cwd), args, TEXTS.__getitem__, run="r1").reports


def written(folder: Path) -> dict[str, str]:
    context = folder / "context"
    return {
        str(path.relative_to(context)): path.read_bytes().decode()
        for path in sorted(context.rglob("*"))
        if path.is_file()
    }


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, {}),
        ({"knowledge": [], "policy": [], "previous": None}, {}),
        ({"knowledge": ["k1"]}, {"knowledge/plan.1.20260207T120000Z.md": "Know A"}),
        ({"knowledge": ["k1", "k2"]}, {"knowledge/plan.1.20260207T120000Z.md": "Know A\n\n---\n\nKnow B\n"}),
        ({"policy": ("p1",), "count": 12}, {"policy/plan.12.20260207T120000Z.md": "Policy ü"}),
        (
            {"previous": "one", "at": AT + 61.9},
            {
                "previous_responses/latest.md": "first answer",
                "previous_responses/plan.1.20260207T120101Z.md": "first answer",
            },
        ),
    ],
)
def test_a_visit_leaves_snapshots_of_what_it_was_given(cwd, folder, given, expected):
    assert ready(cwd, **given) == {}
    assert written(folder) == expected


def test_latest_is_always_the_newest_previous_response(cwd, folder):
    latest = folder / "context/previous_responses/latest.md"
    ready(cwd, previous="one")
    ready(cwd, movement="implement", previous="two", at=AT + 5)
    assert latest.read_text() == "second {x}"
    ready(cwd, movement="review", previous=None, at=AT + 9)
    assert latest.read_text() == "second {x}"
    ready(cwd, movement="fix", previous="one", at=AT - 3600)
    assert latest.read_text() == "first answer"


def test_doing_it_again_changes_nothing(cwd, folder):
    ready(cwd, knowledge=["k1"], policy=["p1"], previous="one")
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    ready(cwd, knowledge=["k1"], policy=["p1"], previous="one")
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


def test_a_snapshot_that_was_cut_or_removed_is_made_whole(cwd, folder):
    ready(cwd, knowledge=["k1"])
    path = folder / "context/knowledge/plan.1.20260207T120000Z.md"
    path.write_text("Know")
    ready(cwd, knowledge=["k1"])
    assert path.read_text() == "Know A"
    path.unlink()
    path.parent.rmdir()
    ready(cwd, knowledge=["k1"])
    assert path.read_text() == "Know A"


@pytest.mark.parametrize("movement", ["a/b", "../../../x", "two words", "..", "レビュー", "a\0b", "x" * 400])
def test_a_movement_may_be_called_anything(cwd, folder, movement):
    ready(cwd, movement=movement, knowledge=["k1"])
    [name] = os.listdir(folder / "context/knowledge")
    assert name.endswith(".1.20260207T120000Z.md")
    assert len(written(folder)) == 1


def test_lanes_that_prepare_at_the_same_time_do_not_disturb_each_other(cwd, folder):
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda n: ready(cwd, movement=f"m{n}", knowledge=["k1"], previous="one"), range(64)))
    found = written(folder)
    assert len(found) == 64 * 2 + 1
    assert set(found.values()) == {"Know A", "first answer"}
    assert sorted(os.listdir(folder)) == ["context", "logs", "meta.json", "reports"]


# --- {report:file} -----------------------------------------------------------------------------------


def test_reports_are_read_by_name_and_a_missing_one_is_none(cwd, folder):
    (folder / "reports/sub").mkdir()
    (folder / "reports/plan.md").write_bytes("# Plan\r\nü {task}".encode())
    (folder / "reports/sub/x.md").write_text("inner")
    (folder / "reports/empty.md").write_text("")
    (folder / "reports/bytes.md").write_bytes(b"a\xff\0b")
    assert ready(
        cwd,
        reports=["plan.md", "sub/x.md", "empty.md", "bytes.md", "none.md", "sub", "plan.md/x", "no/such.md"],
    ) == {
        "plan.md": "# Plan\r\nü {task}",
        "sub/x.md": "inner",
        "empty.md": "",
        "bytes.md": "a\ufffd\ufffdb",
        "none.md": None,
        "sub": None,
        "plan.md/x": None,
        "no/such.md": None,
    }


def test_a_pipe_in_place_of_a_report_is_not_waited_for(cwd, folder):
    os.mkfifo(folder / "reports/plan.md")
    assert ready(cwd, reports=["plan.md"]) == {"plan.md": None}


@pytest.mark.parametrize(
    "name", ["../meta.json", "/etc/passwd", "a/../../meta.json", "a\0b", "..\\x", "C:\\x"]
)
def test_a_report_outside_its_folder_is_not_read(cwd, name):
    with pytest.raises(HostError) as caught:
        ready(cwd, reports=[name])
    assert caught.value.code == "escapes"


def test_a_link_out_of_the_reports_is_not_followed(cwd, folder):
    (folder / "reports/plan.md").symlink_to("/etc/passwd")
    with pytest.raises(HostError, match="leads out") as caught:
        ready(cwd, reports=["plan.md"])
    assert caught.value.code == "escapes"
    assert caught.value.hint == "remove the link, then cadenza resume r1"


def test_a_report_too_large_for_a_prompt_is_refused(cwd, folder, monkeypatch):
    monkeypatch.setattr(snapshots, "REPORT_LIMIT", 10)
    (folder / "reports/plan.md").write_text("x" * 11)
    with pytest.raises(HostError, match="11 bytes, 10 at most"):
        ready(cwd, reports=["plan.md"])


# --- refused -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["context", "context/knowledge"])
def test_a_snapshot_is_not_written_through_a_link_that_leads_out(cwd, folder, where, tmp_path_factory):
    out = tmp_path_factory.mktemp("out")
    (folder / where).rename(folder / "aside")
    (folder / where).symlink_to(out)
    with pytest.raises(HostError) as caught:
        ready(cwd, knowledge=["k1"])
    assert caught.value.code == "escapes"
    assert os.listdir(out) == []


def test_a_removed_folder_is_said_to_be_missing(cwd, folder):
    folder.rename(cwd / "aside")
    with pytest.raises(HostError, match="makes it again from the journal; then cadenza resume r1") as caught:
        ready(cwd, knowledge=["k1"])
    assert caught.value.code == "not_found"
    assert str(folder) in caught.value.message


@pytest.mark.parametrize("name", ["../x", "/tmp", "a\0b"])
def test_a_folder_outside_the_working_directory_is_refused(cwd, name):
    with pytest.raises(HostError) as caught:
        ready(cwd, folder=name)
    assert caught.value.code == "escapes"


def test_arguments_of_the_wrong_shape(cwd):
    with pytest.raises(msgspec.ValidationError):
        ready(cwd, count="many")


def test_unfinished_files_of_a_killed_process_go_after_a_while(cwd, folder):
    old, new = folder / ".part-old", folder / ".part-new"
    for path in (old, new):
        path.write_text("half")
    past = new.stat().st_mtime - SWEPT_AFTER - 1
    os.utime(old, (past, past))
    ready(cwd)
    assert (old.exists(), new.exists()) == (False, True)
