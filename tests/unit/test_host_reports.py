"""Reports in the run's folder: whole, inside, and with their history."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cadenza.errors import HostError
from cadenza.host import files
from cadenza.host.folder import open_folder
from cadenza.host.reports import save_reports

AT = 1_770_465_600.0
RUN_FOLDER = ".takt/runs/20260207-120000-s"


@pytest.fixture
def cwd(tmp_path: Path) -> Path:
    (tmp_path / "cwd").mkdir()
    open_folder(str(tmp_path / "cwd"), run="r1", slug="s", at=AT, task_text="t", piece="p")
    return tmp_path / "cwd"


@pytest.fixture
def folder(cwd: Path) -> Path:
    return cwd / RUN_FOLDER


def save(cwd: Path, reports: dict[str, str], at: float = AT) -> list[str]:
    return save_reports(str(cwd), RUN_FOLDER, reports, at, run="r1")


def tree(base: Path) -> dict[str, str]:
    return {
        str(path.relative_to(base)): path.read_bytes().decode()
        for path in base.rglob("*")
        if path.is_file() and not path.is_symlink()
    }


def history(folder: Path) -> dict[str, str]:
    return tree(folder / "logs/reports-history")


def test_reports_are_saved_under_their_names(cwd, folder):
    texts = {"00-plan.md": "# Plan\r\n", "sub/deep/r.md": "ü", "計画 (1).md": "", "a..b": "x", ".env": "y"}
    assert save(cwd, texts) == list(texts)
    assert tree(folder / "reports") == texts
    assert history(folder) == {}
    assert sorted(os.listdir(folder)) == ["context", "logs", "meta.json", "reports"]


def test_saving_the_same_again_does_nothing(cwd, folder):
    save(cwd, {"a.md": "1", "s/b.md": "2"})
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    assert save(cwd, {"a.md": "1", "s/b.md": "2"}, AT + 100) == ["a.md", "s/b.md"]
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


@pytest.mark.parametrize(
    ("name", "first", "second"),
    [
        ("r.md", "r.20260207T120000Z.md", "r.20260207T120000Z.1.md"),
        ("sub/r.md", "sub/r.20260207T120000Z.md", "sub/r.20260207T120000Z.1.md"),
        ("a.b.md", "a.b.20260207T120000Z.md", "a.b.20260207T120000Z.1.md"),
        ("plain", "plain.20260207T120000Z", "plain.20260207T120000Z.1"),
        (".hidden", ".hidden.20260207T120000Z", ".hidden.20260207T120000Z.1"),
    ],
)
def test_a_report_written_three_times_in_a_second_keeps_both_old_texts(cwd, folder, name, first, second):
    for text in ("one", "two", "three"):
        save(cwd, {name: text})
    assert tree(folder / "reports") == {name: "three"}
    assert history(folder) == {first: "one", second: "two"}


def test_a_later_second_has_its_own_history_name(cwd, folder):
    save(cwd, {"r.md": "one"})
    save(cwd, {"r.md": "two"}, AT + 1)
    save(cwd, {"r.md": "three"}, AT + 2)
    assert history(folder) == {"r.20260207T120001Z.md": "one", "r.20260207T120002Z.md": "two"}


def test_killed_between_history_and_report_it_keeps_the_old_text_once(cwd, folder):
    save(cwd, {"r.md": "one"})
    files.write_new(folder / "logs/reports-history/r.20260207T120000Z.md", b"one", scratch=folder)
    save(cwd, {"r.md": "two"})
    assert tree(folder / "reports") == {"r.md": "two"}
    assert history(folder) == {"r.20260207T120000Z.md": "one"}


def test_lanes_that_save_one_report_at_the_same_time_lose_no_text(cwd, folder):
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda n: save(cwd, {"r.md": f"text {n}"}), range(32)))
    kept = [*tree(folder / "reports").values(), *history(folder).values()]
    assert sorted(kept) == sorted(f"text {n}" for n in range(32))


KILLED = """
import os, signal, sys
from cadenza.host.reports import save_reports
left = int(sys.argv[3])
def hook(event, args):
    global left
    if event in ("open", "os.mkdir", "os.rename", "os.remove", "os.link"):
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(hook)
save_reports(sys.argv[1], sys.argv[2], {"r.md": "new" * 1000}, 1770465600.0)
"""


@pytest.mark.slow
def test_killed_before_any_of_its_steps_the_report_is_the_old_or_the_new_one(tmp_path):
    steps = 0
    while True:
        steps += 1
        cwd = tmp_path / str(steps)
        cwd.mkdir()
        open_folder(str(cwd), run="r1", slug="s", at=AT, task_text="t", piece="p")
        save(cwd, {"r.md": "old"})
        args = [sys.executable, "-c", KILLED, str(cwd), RUN_FOLDER, str(steps)]
        done = subprocess.run(args, capture_output=True, check=False)
        now = tree(cwd / RUN_FOLDER / "reports")
        assert now in ({"r.md": "old"}, {"r.md": "new" * 1000})
        assert set(history(cwd / RUN_FOLDER).values()) <= {"old"}
        assert now == {"r.md": "old"} or history(cwd / RUN_FOLDER)
        save(cwd, {"r.md": "new" * 1000})
        assert tree(cwd / RUN_FOLDER / "reports") == {"r.md": "new" * 1000}
        assert history(cwd / RUN_FOLDER) == {"r.20260207T120000Z.md": "old"}
        if done.returncode == 0:
            break
        assert done.returncode == -9, done.stderr
    assert steps > 6


# --- refused -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "../x",
        "a/../../x",
        "..",
        "/etc/x",
        "//x",
        "a\0b",
        "..\\x",
        "\\x",
        "C:x",
        "C:\\x",
        "c:/x",
        "sub/..",
        "\ud800",
    ],
)
def test_a_name_that_leaves_the_folder_is_refused_before_anything_is_written(cwd, folder, name):
    before = tree(cwd)
    with pytest.raises(HostError) as caught:
        save(cwd, {"fine.md": "x", name: "x"})
    assert caught.value.code == "escapes"
    assert caught.value.hint
    assert tree(cwd) == before


@pytest.mark.parametrize("name", ["", " ", "sub/", ".", "a\nb", "x" * 201])
def test_a_name_that_is_no_file_is_refused(cwd, name):
    before = tree(cwd)
    with pytest.raises(HostError, match="rename the report in the piece") as caught:
        save(cwd, {"fine.md": "x", name: "x"})
    assert caught.value.code == "failed"
    assert tree(cwd) == before


@pytest.mark.parametrize(
    "link", ["reports", "reports/sub", "reports/sub/r.md", "logs", "logs/reports-history"]
)
def test_nothing_is_written_or_read_through_a_link_that_leads_out(cwd, folder, tmp_path, link):
    out = tmp_path / "out"
    (out / "sub").mkdir(parents=True)
    (out / "sub/r.md").write_text("secret")
    save(cwd, {"sub/r.md": "one"})
    save(cwd, {"sub/r.md": "two"})
    place = folder / link
    place.rename(tmp_path / "aside")
    place.symlink_to(out / "sub/r.md" if link.endswith(".md") else out)
    with pytest.raises(HostError) as caught:
        save(cwd, {"sub/r.md": "three"}, AT + 1)
    assert caught.value.code == "escapes"
    assert "leads out" in caught.value.message
    assert tree(out) == {"sub/r.md": "secret"}
    assert "secret" not in tree(folder).values()


def test_a_link_to_another_report_is_replaced_not_followed(cwd, folder):
    save(cwd, {"a.md": "a"})
    (folder / "reports/b.md").symlink_to("a.md")
    save(cwd, {"b.md": "b"})
    assert tree(folder / "reports") == {"a.md": "a", "b.md": "b"}
    assert not (folder / "reports/b.md").is_symlink()


def test_a_loop_of_links_is_an_error_and_no_traceback(cwd, folder):
    (folder / "reports/a").symlink_to("b")
    (folder / "reports/b").symlink_to("a")
    with pytest.raises(HostError):
        save(cwd, {"a/r.md": "x"})


@pytest.mark.parametrize(("taken", "name"), [("r.md/x", "r.md"), ("a", "a/r.md")])
def test_a_file_or_folder_in_the_way_is_named(cwd, folder, taken, name):
    save(cwd, {taken: "old"})
    with pytest.raises(HostError, match="move away what is in the way, then cadenza resume r1") as caught:
        save(cwd, {name: "new"})
    assert caught.value.code == "failed"
    assert str(folder / "reports" / name) in caught.value.message
    assert tree(folder / "reports") == {taken: "old"}
    assert sorted(os.listdir(folder)) == ["context", "logs", "meta.json", "reports"]


def test_a_removed_folder_is_said_to_be_missing(cwd, folder):
    folder.rename(cwd / "aside")
    with pytest.raises(HostError) as caught:
        save(cwd, {"r.md": "x"})
    assert caught.value.code == "not_found"
    assert not folder.exists()
