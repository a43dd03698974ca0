"""The run's folder on a disk that is full, out of inodes or read-only: real mounts, a clear error each."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cadenza.core.demands import Host
from cadenza.errors import HostError
from cadenza.host.executor import HostExecutor
from cadenza.host.folder import SUBFOLDERS, open_folder, read_meta, write_log, write_meta
from cadenza.ids import text_hash

AT = 1_770_465_600.0
FOLDER = ".takt/runs/20260207-120000-s"
LONG = {text_hash(text): text for text in ("t", "a" * 60_000, "b" * 60_000, "small")}
A, B, SMALL = text_hash("a" * 60_000), text_hash("b" * 60_000), text_hash("small")

Mount = Callable[[str], Path]


@pytest.fixture
def mount(tmp_path: Path) -> Iterator[Mount]:
    """Mounts a small disk in memory with the given options; skips where that is not permitted."""
    mounted: list[Path] = []

    def make(options: str) -> Path:
        place = tmp_path / f"disk{len(mounted)}"
        place.mkdir()
        _mount(["-t", "tmpfs", "-o", options, "tmpfs", str(place)])
        mounted.append(place)
        return place

    yield make
    for place in mounted:
        subprocess.run(["umount", str(place)], check=True)


def _mount(args: list[str]) -> None:
    try:
        done = subprocess.run(["mount", *args], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("there is no mount command here")
    if done.returncode:
        pytest.skip(f"a small disk cannot be mounted here: {done.stderr.strip()}")


def fill(disk: Path) -> Path:
    """Leave no free byte on the disk."""
    with open(disk / "fill", "wb", buffering=0) as file:
        for size in (4096, 1):
            try:
                while file.write(b"x" * size):
                    pass
            except OSError:
                continue
    return disk / "fill"


def open_one(cwd: Path) -> str:
    return open_folder(str(cwd), run="r1", slug="s", at=AT, task_text="t", piece="p")


def do(cwd: Path, op: str, **args: object) -> dict[str, Any]:
    demand = Host(op=op, args={"folder": FOLDER, "at": AT} | args)
    return HostExecutor()(demand, run="r1", cwd=str(cwd), text=LONG.__getitem__)[0]


def tree(base: Path) -> dict[str, str]:
    return {str(path.relative_to(base)): path.read_text() for path in base.rglob("*") if path.is_file()}


def assert_full(error: HostError, path: Path) -> None:
    assert error.code == "disk_full"
    assert str(path) in error.message
    assert error.hint == "free space, then cadenza resume r1"


def test_a_full_disk_makes_no_folder_and_one_with_space_again_the_whole(mount):
    disk = mount("size=128k")
    filling = fill(disk)
    with pytest.raises(HostError) as caught:
        open_one(disk)
    assert_full(caught.value, disk / ".takt/runs")
    assert [path for path in disk.rglob("*") if path.is_file()] == [filling]
    filling.unlink()
    assert open_one(disk) == FOLDER
    assert all((disk / FOLDER / sub).is_dir() for sub in SUBFOLDERS)
    assert read_meta(str(disk), FOLDER)["run"] == "r1"


@pytest.mark.parametrize("free", range(1, 12))
def test_out_of_inodes_at_any_step_leaves_nothing_half_made(mount, free):
    disk = mount(f"size=1m,nr_inodes={free + 1}")
    try:
        assert open_one(disk) == FOLDER
        assert free >= 11
    except HostError as error:
        assert_full(error, disk / ".takt/runs")
        left = {str(path.relative_to(disk)) for path in disk.rglob("*")}
        assert left <= {".takt", ".takt/runs", ".takt/runs/.gitignore"}
    subprocess.run(["mount", "-o", "remount,size=1m,nr_inodes=100", str(disk)], check=True)
    assert open_one(disk) == FOLDER
    assert all((disk / FOLDER / sub).is_dir() for sub in SUBFOLDERS)


def test_a_full_disk_keeps_the_old_report_and_leaves_nothing_over(mount):
    disk = mount("size=400k")
    open_one(disk)
    do(disk, "save_reports", reports={"r.md": A})
    filling = fill(disk)
    with pytest.raises(HostError) as caught:
        do(disk, "save_reports", reports={"r.md": B})
    assert_full(caught.value, disk / FOLDER / "reports/r.md")
    assert tree(disk / FOLDER / "reports") == {"r.md": LONG[A]}
    assert sorted(os.listdir(disk / FOLDER)) == ["context", "logs", "meta.json", "reports"]
    assert tree(disk / FOLDER / "logs") == {}
    filling.unlink()
    assert do(disk, "save_reports", reports={"r.md": B}) == {"saved": ["r.md"]}
    assert tree(disk / FOLDER / "reports") == {"r.md": LONG[B]}
    assert tree(disk / FOLDER / "logs") == {"reports-history/r.20260207T120000Z.md": LONG[A]}


def test_a_full_disk_keeps_the_old_snapshot_meta_and_log(mount):
    disk = mount("size=400k")
    open_one(disk)
    do(disk, "prepare", movement="m", count=1, previous=SMALL)
    write_log(str(disk), FOLDER, "r1", ["{}"])
    filling = fill(disk)
    before = tree(disk / FOLDER)
    with pytest.raises(HostError) as caught:
        do(disk, "prepare", movement="m", count=2, previous=A)
    assert_full(caught.value, disk / FOLDER / "context/previous_responses")
    with pytest.raises(HostError) as caught:
        write_meta(str(disk), FOLDER, status="completed")
    assert_full(caught.value, disk / FOLDER / "meta.json")
    with pytest.raises(HostError) as caught:
        write_log(str(disk), FOLDER, "r1", ["{}"] * 1000)
    assert_full(caught.value, disk / FOLDER / "logs/r1.jsonl")
    assert tree(disk / FOLDER) == before
    filling.unlink()
    do(disk, "prepare", movement="m", count=2, previous=A)
    write_meta(str(disk), FOLDER, status="completed")
    assert read_meta(str(disk), FOLDER)["status"] == "completed"
    assert (disk / FOLDER / "context/previous_responses/latest.md").read_text() == LONG[A]


def test_a_read_only_disk_is_named_and_reading_goes_on(mount):
    disk = mount("size=400k")
    open_one(disk)
    do(disk, "save_reports", reports={"r.md": SMALL})
    do(disk, "prepare", movement="m", count=1, previous=SMALL)
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    changes = (
        lambda: open_folder(str(disk), run="r2", slug="s", at=AT, task_text="t", piece="p"),
        lambda: do(disk, "save_reports", reports={"r.md": A}),
        lambda: do(disk, "prepare", movement="m", count=1, previous=A),
        lambda: write_meta(str(disk), FOLDER, status="completed"),
        lambda: write_log(str(disk), FOLDER, "r1", ["{}"]),
    )
    for change in changes:
        with pytest.raises(HostError, match="allow writing there, then cadenza resume r") as caught:
            change()
        assert caught.value.code == "read_only"
        assert str(disk) in caught.value.message
    assert open_one(disk) == FOLDER
    assert do(disk, "save_reports", reports={"r.md": SMALL}) == {"saved": ["r.md"]}
    repeated = do(disk, "prepare", movement="m", count=1, previous=SMALL, reports=["r.md"])
    assert repeated["reports"] == {"r.md": SMALL}


def test_a_folder_without_permission(tmp_path):
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere; the read-only disk shows the same")
    tmp_path.chmod(0o500)
    with pytest.raises(HostError) as caught:
        open_one(tmp_path)
    assert caught.value.code == "read_only"
