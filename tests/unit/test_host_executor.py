"""Host demands: the value that comes back, the texts that are new, and the errors."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest

from cadenza.core.demands import HOST_OPS, Host
from cadenza.errors import HostError
from cadenza.host.executor import HostExecutor
from cadenza.host.named_files import write_file
from cadenza.host.trouble import explained
from cadenza.ids import text_hash

AT = 1_770_465_600.0
FOLDER = ".takt/runs/20260207-120000-fix"


class Stage:
    """A working directory and a book of texts."""

    def __init__(self, cwd: Path) -> None:
        self.cwd = cwd
        self.texts: dict[str, str] = {}

    def put(self, text: str) -> str:
        self.texts[text_hash(text)] = text
        return text_hash(text)

    def do(self, op: str, **args: object) -> tuple[dict[str, Any], dict[str, str]]:
        demand = Host(op=op, args=args)
        return HostExecutor()(demand, run="r1", cwd=str(self.cwd), text=self.texts.__getitem__)

    def open(self) -> tuple[dict[str, Any], dict[str, str]]:
        return self.do("open_folder", slug="fix", at=AT, task=self.put("Fix"), piece="p")


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def test_every_operation_of_the_core_is_there(stage):
    for op in HOST_OPS:
        with pytest.raises(HostError, match="the arguments of host operation"):
            stage.do(op)


def test_open_folder_gives_the_path(stage):
    assert stage.open() == ({"path": FOLDER}, {})
    assert stage.open() == ({"path": FOLDER}, {})
    args = {"slug": "fix", "at": int(AT), "task": stage.put("Fix"), "piece": "p"}
    assert stage.do("open_folder", **args, root="x") == ({"path": "x/20260207-120000-fix"}, {})


def test_prepare_gives_reports_by_hash_and_their_texts(stage):
    stage.open()
    (stage.cwd / FOLDER / "reports/plan.md").write_text("# Plan")
    value, texts = stage.do(
        "prepare",
        folder=FOLDER,
        movement="m",
        count=2,
        at=AT,
        knowledge=[stage.put("K")],
        policy=(stage.put("P"),),
        previous=stage.put("before"),
        reports=["plan.md", "none.md"],
    )
    assert value["reports"] == {"plan.md": text_hash("# Plan"), "none.md": None}
    assert all((stage.cwd / path).is_file() for path in value["snapshots"].values())
    assert texts == {text_hash("# Plan"): "# Plan"}
    latest = stage.cwd / FOLDER / "context/previous_responses/latest.md"
    assert latest.read_text() == "before"


def test_save_reports_gives_the_names_whether_or_not_it_was_done_before(stage):
    stage.open()
    for _ in range(2):
        reports = {"b.md": stage.put("B"), "a.md": stage.put("A")}
        assert stage.do("save_reports", folder=FOLDER, at=AT, reports=reports) == (
            {"saved": ["b.md", "a.md"]},
            {},
        )
    assert (stage.cwd / FOLDER / "reports/a.md").read_text() == "A"


def test_an_unknown_operation_names_those_that_there_are(stage):
    with pytest.raises(HostError, match=r"'rm_rf'; known here: open_folder, prepare, save_reports") as caught:
        stage.do("rm_rf")
    assert caught.value.code == "failed"


def test_arguments_that_cannot_be_read_are_named(stage):
    with pytest.raises(HostError, match=r"'prepare' cannot be read: .*count") as caught:
        stage.do("prepare", folder=FOLDER, movement="m", count="x", at=AT)
    assert caught.value.code == "failed"


@pytest.mark.parametrize(
    ("number", "code", "hint"),
    [
        (errno.ENOSPC, "disk_full", "free space, then cadenza resume r9"),
        (errno.EDQUOT, "disk_full", "free space, then cadenza resume r9"),
        (errno.EROFS, "read_only", "allow writing there, then cadenza resume r9"),
        (errno.EACCES, "read_only", "allow writing there, then cadenza resume r9"),
        (errno.EPERM, "read_only", "allow writing there, then cadenza resume r9"),
        (errno.ENOENT, "not_found", "put it back, then cadenza resume r9"),
        (errno.ENOTDIR, "failed", "move away what is in the way, then cadenza resume r9"),
        (errno.EIO, "failed", "put that right, then cadenza resume r9"),
        (None, "failed", "put that right, then cadenza resume r9"),
    ],
)
def test_what_the_file_system_refuses_is_explained(number, code, hint):
    error = OSError("odd") if number is None else OSError(number, "why", "/tmp/.part-1")
    with pytest.raises(HostError) as caught, explained("save the report", "/w/r.md", run="r9"):
        raise error
    assert (caught.value.code, caught.value.hint) == (code, hint)
    assert caught.value.message == f"cannot save the report /w/r.md: {'odd' if number is None else 'why'}"


def test_a_path_that_cannot_be_printed_stays_on_one_line():
    with pytest.raises(HostError) as caught, explained("write", "/w/a\nb\udcff"):
        raise OSError(errno.EIO, "why")
    assert caught.value.message == r"cannot write '/w/a\nb\udcff': why"


@pytest.mark.parametrize("path", ["../out.txt", "/etc/cadenza-out.txt", "link/out.txt"])
def test_a_file_that_a_piece_names_stays_in_the_working_directory(tmp_path: Path, path: str) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "link").symlink_to(tmp_path)
    with pytest.raises(HostError, match="outside the working directory") as caught:
        write_file(str(work), path, "text")
    assert caught.value.code == "escapes"
    write_file(str(work), "sub/out.txt", "text")
    assert (work / "sub" / "out.txt").read_text(encoding="utf-8") == "text"
