"""The run's folder: its layout, found again by its run, shared with nobody, whole or not there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cadenza.errors import HostError
from cadenza.host.folder import SUBFOLDERS, open_folder, read_meta, write_log, write_meta
from cadenza.host.paths import file_part

AT = 1_770_465_600.0  # 2026-02-07T12:00:00Z
BASE = ".takt/runs/20260207-120000-fix-it"


def open_one(cwd: Path, run: str = "r1", **changed: object) -> str:
    args = {"slug": "fix-it", "at": AT, "task_text": "Fix it", "piece": "default"} | changed
    return open_folder(str(cwd), run=run, **args)  # type: ignore[arg-type]


def visible(cwd: Path, root: str = ".takt/runs") -> list[str]:
    home = cwd / root
    return sorted(name for name in os.listdir(home) if name != ".gitignore") if home.exists() else []


def is_whole(folder: Path) -> bool:
    return all((folder / sub).is_dir() for sub in SUBFOLDERS) and "run" in json.loads(
        (folder / "meta.json").read_bytes()
    )


# --- layout: "ピース実行開始時に実行ディレクトリを作成する" ------------------------------------------


def test_the_folder_has_the_layout_of_the_takt_engine(tmp_path):
    folder = open_one(tmp_path)
    assert folder == BASE
    found = sorted(str(path.relative_to(tmp_path / folder)) for path in (tmp_path / folder).rglob("*"))
    assert found == sorted(
        [
            "context",
            "context/knowledge",
            "context/policy",
            "context/previous_responses",
            "logs",
            "meta.json",
            "reports",
        ]
    )


def test_meta_json_says_what_is_played_and_where(tmp_path):
    folder = open_one(tmp_path, task_text="直して {x}\n2")
    text = (tmp_path / folder / "meta.json").read_text(encoding="utf-8")
    assert json.loads(text) == {
        "run": "r1",
        "task": "直して {x}\n2",
        "piece": "default",
        "runSlug": "20260207-120000-fix-it",
        "runRoot": BASE,
        "reportDirectory": f"{BASE}/reports",
        "contextDirectory": f"{BASE}/context",
        "logsDirectory": f"{BASE}/logs",
        "status": "running",
        "startTime": "2026-02-07T12:00:00.000Z",
    }
    assert "直して" in text


@pytest.mark.parametrize(
    ("root", "folder"),
    [
        (".takt/runs", ".takt/runs/20260207-120000-fix-it"),
        (".cadenza/runs", ".cadenza/runs/20260207-120000-fix-it"),
        ("./out/", "out/20260207-120000-fix-it"),
    ],
)
def test_the_root_may_be_elsewhere_in_the_working_directory(tmp_path, root, folder):
    assert open_one(tmp_path, root=root) == folder
    assert is_whole(tmp_path / folder)


def test_a_slug_of_another_script_is_kept(tmp_path):
    assert open_one(tmp_path, slug="認証を直す") == ".takt/runs/20260207-120000-認証を直す"


@pytest.mark.parametrize("slug", ["../../x", "/etc", "a/b", ".", "..", "a\0b", "a\nb", "", "x" * 300])
def test_a_slug_can_lead_nowhere_else(tmp_path, slug):
    folder = open_one(tmp_path, slug=slug)
    assert is_whole(tmp_path / folder)
    assert (tmp_path / folder).resolve().parent == (tmp_path / ".takt/runs").resolve()


# --- again, and taken --------------------------------------------------------------------------------


def test_the_same_run_finds_its_folder_again(tmp_path):
    folder = open_one(tmp_path)
    (tmp_path / folder / "reports/plan.md").write_text("kept")
    write_meta(str(tmp_path), folder, iterations=3)
    assert open_one(tmp_path) == folder
    assert visible(tmp_path) == ["20260207-120000-fix-it"]
    assert (tmp_path / folder / "reports/plan.md").read_text() == "kept"
    assert read_meta(str(tmp_path), folder)["iterations"] == 3


def test_another_run_of_the_same_second_and_slug_gets_a_suffix(tmp_path):
    assert [open_one(tmp_path, run) for run in ("r1", "r2", "r3")] == [BASE, f"{BASE}-2", f"{BASE}-3"]
    assert [open_one(tmp_path, run) for run in ("r3", "r2", "r1")] == [f"{BASE}-3", f"{BASE}-2", BASE]
    assert read_meta(str(tmp_path), f"{BASE}-2")["runRoot"] == f"{BASE}-2"
    assert read_meta(str(tmp_path), f"{BASE}-2")["runSlug"] == "20260207-120000-fix-it-2"


def test_a_run_finds_its_folder_when_the_one_before_it_was_removed(tmp_path):
    open_one(tmp_path, "r1")
    second = open_one(tmp_path, "r2")
    (tmp_path / BASE).rename(tmp_path / "gone")
    assert open_one(tmp_path, "r2") == second


def with_a_pipe(path: Path) -> None:
    path.mkdir()
    os.mkfifo(path / "meta.json")


@pytest.mark.parametrize(
    "occupy",
    [
        lambda path: path.mkdir(),
        lambda path: path.write_text("a file"),
        lambda path: path.symlink_to("nowhere"),
        lambda path: path.symlink_to(path.parent),
        lambda path: (path.mkdir(), (path / "meta.json").write_text("{broken")),
        lambda path: (path.mkdir(), (path / "meta.json").write_text("[]")),
        lambda path: (path.mkdir(), (path / "meta.json").write_text("[" * 100_000)),
        with_a_pipe,
        lambda path: (path.mkdir(), (path / "meta.json").mkdir()),
    ],
)
def test_whatever_has_the_name_already_is_left_alone(tmp_path, occupy):
    (tmp_path / BASE).parent.mkdir(parents=True)
    occupy(tmp_path / BASE)
    assert open_one(tmp_path) == f"{BASE}-2"
    assert os.path.lexists(tmp_path / BASE)
    assert not is_whole_or_missing(tmp_path / BASE)


def is_whole_or_missing(path: Path) -> bool:
    return not os.path.lexists(path) or (path / "reports").exists()


def test_what_an_earlier_try_of_the_run_left_is_removed_and_nothing_else(tmp_path):
    home = tmp_path / ".takt/runs"
    ours = [home / f".r1.{'0' * 16}.tmp", home / f".r1.{'1' * 16}.dead"]
    others = [home / f".r2.{'0' * 16}.tmp", home / f".r1.x.{'0' * 16}.tmp", home / ".r1", home / "r1"]
    for folder in (*ours, *others):
        (folder / "reports").mkdir(parents=True)
    open_one(tmp_path, "r1")
    assert not any(path.exists() for path in ours)
    assert all(path.exists() for path in others)


# --- at the same time --------------------------------------------------------------------------------

RACER = """
import sys
from cadenza.host.folder import open_folder
print("ready", flush=True)
sys.stdin.readline()
for second in range(5):
    print(open_folder(sys.argv[1], run=sys.argv[2], slug="s", at=float(second), task_text="t", piece="p"))
"""


def test_twenty_processes_never_share_a_folder(tmp_path):
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACER, str(tmp_path), f"r{number}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(20)
    ]
    for racer in racers:
        assert racer.stdout
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        assert racer.stdin
        racer.stdin.write("\n")
        racer.stdin.flush()
    opened = {f"r{number}": racer.communicate()[0].split() for number, racer in enumerate(racers)}
    for second in range(5):
        base = f".takt/runs/19700101-00000{second}-s"
        names = {folders[second] for folders in opened.values()}
        assert names == {base, *(f"{base}-{n}" for n in range(2, 21))}
    assert len(visible(tmp_path)) == 100
    for run, folders in opened.items():
        for folder in folders:
            assert is_whole(tmp_path / folder)
            assert read_meta(str(tmp_path), folder)["run"] == run


def test_twenty_threads_of_one_run_share_one_folder(tmp_path):
    with ThreadPoolExecutor(20) as pool:
        for second in range(10):
            opened = list(pool.map(lambda _, at=second: open_one(tmp_path, at=float(at)), range(20)))
            assert set(opened) == {f".takt/runs/19700101-00000{second}-fix-it"}
    assert len(visible(tmp_path)) == 10
    assert all(is_whole(tmp_path / ".takt/runs" / name) for name in visible(tmp_path))


# --- killed ------------------------------------------------------------------------------------------

KILLED = """
import os, signal, sys
from cadenza.host.folder import open_folder
left = int(sys.argv[2])
def hook(event, args):
    global left
    if event in ("open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.listdir", "os.link"):
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(hook)
print(open_folder(sys.argv[1], run="r1", slug="fix-it", at=1770465600.0, task_text="t", piece="p"))
"""


@pytest.mark.slow
def test_killed_before_any_of_its_steps_it_leaves_nothing_or_the_whole(tmp_path):
    steps = 0
    while True:
        steps += 1
        cwd = tmp_path / str(steps)
        cwd.mkdir()
        done = subprocess.run(
            [sys.executable, "-c", KILLED, str(cwd), str(steps)], capture_output=True, check=False
        )
        shown = [name for name in visible(cwd) if not name.startswith(".")]
        assert shown in ([], ["20260207-120000-fix-it"])
        assert all(is_whole(cwd / ".takt/runs" / name) for name in shown)
        assert open_one(cwd) == BASE
        assert [name for name in visible(cwd) if not name.startswith(".part-")] == ["20260207-120000-fix-it"]
        if done.returncode == 0:
            break
        assert done.returncode == -9, done.stderr
    assert steps > 15


MANY = """
import sys
from cadenza.host.folder import open_folder
print("ready", flush=True)
for n in range(100000):
    open_folder(sys.argv[1], run=f"r{n}", slug="s", at=float(n), task_text="t" * 10000, piece="p")
"""


@pytest.mark.slow
def test_killed_at_any_time_it_leaves_nothing_half_made(tmp_path):
    for attempt in range(15):
        cwd = tmp_path / str(attempt)
        cwd.mkdir()
        child = subprocess.Popen([sys.executable, "-c", MANY, str(cwd)], stdout=subprocess.PIPE)
        assert child.stdout
        child.stdout.readline()
        with pytest.raises(subprocess.TimeoutExpired):
            child.wait(0.02 + 0.007 * attempt)
        child.kill()
        child.communicate()
        shown = [name for name in visible(cwd) if not name.startswith(".")]
        assert all(is_whole(cwd / ".takt/runs" / name) for name in shown)
        hidden = [name for name in visible(cwd) if name.startswith(".r")]
        assert len(hidden) <= 1


# --- git ---------------------------------------------------------------------------------------------


def test_what_runs_leave_is_not_committed_and_the_rest_of_takt_is(tmp_path):
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    (tmp_path / ".takt/pieces").mkdir(parents=True)
    (tmp_path / ".takt/pieces/mine.yaml").write_text("name: mine")
    open_one(tmp_path)
    subprocess.run(["git", "add", "-A"], cwd=tmp_path, check=True)
    added = subprocess.run(["git", "ls-files"], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert added.stdout.split() == [".takt/pieces/mine.yaml"]


def test_a_gitignore_that_a_person_removed_or_wrote_stays_so(tmp_path):
    open_one(tmp_path, "r1")
    ignore = tmp_path / ".takt/runs/.gitignore"
    ignore.unlink()
    open_one(tmp_path, "r2")
    assert not ignore.exists()
    other = tmp_path / "other/.takt/runs/.gitignore"
    other.parent.mkdir(parents=True)
    other.write_text("# mine\n")
    open_one(tmp_path / "other")
    assert other.read_text() == "# mine\n"


# --- meta.json and the log ---------------------------------------------------------------------------


def test_write_meta_changes_what_is_named_and_keeps_the_rest(tmp_path):
    folder = open_one(tmp_path)
    before = read_meta(str(tmp_path), folder)
    write_meta(str(tmp_path), folder, status="aborted", endTime=AT + 1.5, iterations=4)
    ended = read_meta(str(tmp_path), folder)
    assert ended == before | {"status": "aborted", "endTime": "2026-02-07T12:00:01.500Z", "iterations": 4}
    write_meta(str(tmp_path), folder, status="running", endTime=None)
    again = read_meta(str(tmp_path), folder)
    assert "endTime" not in again
    assert (again["status"], again["iterations"]) == ("running", 4)


@pytest.mark.parametrize("damage", ["", "{", "[]", "null"])
def test_write_meta_makes_a_damaged_file_whole_again(tmp_path, damage):
    folder = open_one(tmp_path)
    (tmp_path / folder / "meta.json").write_text(damage)
    write_meta(str(tmp_path), folder, run="r1", status="completed", startTime="2026-02-07T12:00:00.000Z")
    meta = read_meta(str(tmp_path), folder)
    assert (meta["run"], meta["runRoot"], meta["status"]) == ("r1", BASE, "completed")
    assert meta["startTime"] == "2026-02-07T12:00:00.000Z"


def test_the_log_is_written_anew_each_time(tmp_path):
    folder = open_one(tmp_path)
    write_log(str(tmp_path), folder, "r1", ['{"a":1}'])
    write_log(str(tmp_path), folder, "r1", ['{"a":1}', '{"b":"日"}'])
    log = tmp_path / folder / "logs/r1.jsonl"
    assert log.read_text(encoding="utf-8") == '{"a":1}\n{"b":"日"}\n'
    write_log(str(tmp_path), folder, "r1", [])
    assert log.read_bytes() == b""
    assert sorted(os.listdir(tmp_path / folder)) == ["context", "logs", "meta.json", "reports"]


# --- refused -----------------------------------------------------------------------------------------


def test_a_working_directory_that_is_not_there_is_not_made(tmp_path):
    with pytest.raises(HostError) as caught:
        open_one(tmp_path / "gone", "r7")
    assert caught.value.code == "not_found"
    assert str(tmp_path / "gone") in caught.value.message
    assert caught.value.hint == "put it back, then cadenza resume r7"
    assert not (tmp_path / "gone").exists()


@pytest.mark.parametrize("cwd", ["/tmp/a\0b", "/tmp/\ud800"])
def test_a_working_directory_that_no_system_takes(cwd):
    with pytest.raises(HostError, match="this is not a folder") as caught:
        open_folder(cwd, run="r1", slug="s", at=AT, task_text="t", piece="p")
    assert caught.value.message.isprintable()


def test_a_working_directory_that_is_a_file(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(HostError, match="this is not a folder") as caught:
        open_one(tmp_path / "file")
    assert caught.value.code == "not_found"


@pytest.mark.parametrize("root", ["../out", "/tmp/out", "a/../../out", "a\0b", "C:/x", "\ud800"])
def test_a_root_that_leaves_the_working_directory_is_refused(tmp_path, root):
    (tmp_path / "in").mkdir()
    with pytest.raises(HostError) as caught:
        open_one(tmp_path / "in", root=root)
    assert caught.value.code == "escapes"
    assert os.listdir(tmp_path) == ["in"]


@pytest.mark.parametrize("link", [".takt", ".takt/runs"])
def test_a_link_that_leads_out_is_refused(tmp_path, link):
    (tmp_path / "in/.takt").mkdir(parents=True)
    (tmp_path / "out").mkdir()
    if link == ".takt":
        (tmp_path / "in/.takt").rmdir()
    (tmp_path / "in" / link).symlink_to(tmp_path / "out")
    with pytest.raises(HostError, match="leads out") as caught:
        open_one(tmp_path / "in")
    assert caught.value.code == "escapes"
    assert os.listdir(tmp_path / "out") == []


def test_a_link_within_the_working_directory_is_followed(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / ".takt").symlink_to("real")
    assert open_one(tmp_path) == BASE
    assert is_whole(tmp_path / "real/runs/20260207-120000-fix-it")


def test_a_file_in_the_way_of_the_root(tmp_path):
    (tmp_path / ".takt").write_text("")
    with pytest.raises(HostError, match="move away what is in the way, then cadenza resume r1") as caught:
        open_one(tmp_path)
    assert caught.value.code == "failed"
    assert str(tmp_path / ".takt/runs") in caught.value.message


@pytest.mark.parametrize(
    "write",
    [
        lambda cwd: write_meta(cwd, BASE, status="completed"),
        lambda cwd: write_log(cwd, BASE, "r1", []),
    ],
)
def test_a_folder_that_was_removed_is_said_to_be_missing(tmp_path, write):
    with pytest.raises(HostError) as caught:
        write(str(tmp_path))
    assert caught.value.code == "not_found"
    assert BASE in caught.value.message
    assert not (tmp_path / ".takt").exists()


# --- names -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["plan", "ai_review", "v1.2", "実装", "_loop_judge_review_fix", "Ünï"])
def test_a_plain_name_is_its_own_file_name(name):
    assert file_part(name) == name


@pytest.mark.parametrize(
    "name",
    ["a/b", "a b", "..", ".", ".hidden", "", " ", "a\\b", "a:b", "a\nb", "a\0b", "\ud800", "x" * 500, "😀"],
)
def test_any_other_name_becomes_a_safe_one(name):
    part = file_part(name)
    assert part not in ("", ".", "..")
    assert not part.startswith((".", "-"))
    assert not set(part) & set('/\\:\n\0 *?"<>|')
    assert len(part.encode()) <= 120
    assert part == file_part(name)


def test_different_names_do_not_share_a_file():
    names = ["a/b", "a b", "a:b", "a-b", "a\\b", "", " ", "..", ".", "x" * 200, "x" * 201, "é" * 80]
    assert len({file_part(name) for name in names}) == len(names)
