"""The 25 numbered cases of TAKT's behaviour and the ones without a number, each with its tests.

``CASES`` says where each is shown; the ones that no other file shows are here. Where ours is meant to differ
from TAKT, the words beside the number say so.
"""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from cadenza import Engine
from cadenza.core import events as ev
from cadenza.core.demands import CallModel
from cadenza.errors import CadenzaError
from cadenza.providers.models.script import Script
from cadenza.providers.models.scripted import ScriptedProvider
from tests.cli.conftest import DONE, SLOW, TWO_STEPS, Cli
from tests.core.play import Play, scripted, write_piece
from tests.nodes import exists

THREE = "tests/core/test_three_phases.py::"
TEAMS = "tests/core/test_teams_and_arpeggios.py::"
HERE = "tests/test_cases.py::"

CASES: dict[str, tuple[str, ...]] = {
    "1 a structured answer chooses": (f"{THREE}test_case_1_a_structured_answer_chooses_the_rule",),
    "2 out of range; the last tag wins": (
        f"{THREE}test_case_2_out_of_range_goes_to_the_tag_call_and_the_last_tag_wins",
    ),
    "3 a tag in lower case; a tag of 0": (
        f"{THREE}test_case_3_a_tag_is_read_whatever_its_case",
        f"{THREE}test_case_3_a_tag_of_zero_is_no_match",
    ),
    "4 one rule: no call": (f"{THREE}test_case_4_one_rule_needs_no_status_call",),
    "5 ai() rules and a tag": (f"{THREE}test_case_5_only_ai_rules_and_a_tag_in_the_work",),
    "6 ai() rules and a judge": (f"{THREE}test_case_6_only_ai_rules_and_no_tag",),
    "7 everything fails": (f"{THREE}test_case_7_everything_fails",),
    "8 interactive_only where nobody is": (
        f"{THREE}test_case_8_an_interactive_rule_counts_only_where_somebody_is_there",
    ),
    "9 all() of two lanes": (f"{THREE}test_cases_9_and_10_aggregates_over_lanes",),
    "10 any(), fix, review again: 4 iterations": (f"{THREE}test_cases_9_and_10_aggregates_over_lanes",),
    "11 a positional all() of another length": (
        f"{THREE}test_case_11_a_positional_all_of_the_wrong_length_is_never_true",
        f"{HERE}test_case_11_two_arguments_over_three_lanes_never_hold",
    ),
    "12 one lane throws": (f"{THREE}test_case_12_one_lane_throws",),
    "13 every lane throws": (f"{THREE}test_case_13_every_lane_throws",),
    "14 max_movements, without its queue half": (
        f"{HERE}test_case_14_an_endless_pair_ends_after_two_and_a_retry_counts_on_from_there",
    ),
    "15 the loop judge aborts": (f"{THREE}test_case_15_the_judge_is_called_once_and_may_abort",),
    "16 the history is cleared": (f"{THREE}test_case_16_the_history_is_cleared",),
    "17 the cycle is left, or interrupted": (
        f"{THREE}test_case_17_no_judge_when_the_cycle_is_left",
        f"{HERE}test_case_17_a_cycle_that_another_movement_interrupts_does_not_trigger",
    ),
    "18 the warning, at 3 instead of 11": (
        f"{HERE}test_case_18_eleven_in_a_row_warn_from_the_third_and_go_on",
    ),
    "19 blocked: nobody there parks, an empty answer aborts": (
        f"{THREE}test_case_19_a_blocked_agent_asks_and_the_answer_performs_the_movement_anew",
        f"{THREE}test_case_19_an_empty_answer_aborts",
    ),
    "20 braces of a task stay": (f"{THREE}test_cases_20_and_21_the_task_arrives_as_it_is",),
    "21 the User Request, unless {task}": (f"{THREE}test_cases_20_and_21_the_task_arrives_as_it_is",),
    "22 a report written again in the same second; ../x": (
        "tests/unit/test_host_reports.py::test_a_report_written_three_times_in_a_second_keeps_both_old_texts",
        "tests/unit/test_host_reports.py::test_a_name_that_leaves_the_folder_is_refused_before_anything_is_written",
        f"{HERE}test_case_22_a_run_that_writes_a_report_three_times_keeps_all_three",
    ),
    "23 an empty report; twice empty is missing and the run goes on": (
        f"{THREE}test_case_23_an_empty_report_is_asked_for_once_more_in_a_new_session",
    ),
    "24 knowledge is cut, its snapshot is not": (
        f"{THREE}test_case_24_knowledge_is_cut_and_the_snapshot_has_all_of_it",
    ),
    "25 the arpeggio": (
        f"{TEAMS}test_case_25_batches_are_merged_in_order_though_they_end_in_reverse",
        f"{TEAMS}test_case_25_a_batch_that_fails_three_times_fails_the_movement",
    ),
    "Extra: SIGINT once holds (130), twice is 130 at once": (
        "tests/cli/test_signals.py::test_the_first_signal_saves_and_holds",
        "tests/cli/test_signals.py::test_the_second_signal_stops_at_once",
    ),
    "Extra: kill -9 of run, then the next run": (f"{HERE}test_extra_a_killed_run_is_in_nobody_s_way",),
    "Extra: a persona's entry beats an earlier unnamed one": (
        "tests/unit/test_scripted.py::test_a_persona_entry_beats_an_earlier_unnamed_one",
    ),
    "Extra: team leader, an id twice is an error; only known ids stop": (
        f"{TEAMS}test_a_plan_that_cannot_be_used_is_sent_back_once",
        f"{TEAMS}test_only_known_ids_stop_the_planning",
    ),
    "Extra: a persona without a file is the system text": (
        f"{HERE}test_extra_a_persona_without_a_file_is_its_own_text",
    ),
    "Extra: no task is exit code 2, an unknown piece too (TAKT: 3)": (
        "tests/cli/test_exit_codes.py::test_usage_and_not_found_are_2_with_one_clear_message",
        f"{HERE}test_extra_a_wrong_call_begins_nothing",
    ),
}


def test_every_number_is_there() -> None:
    numbers = [key.partition(" ")[0] for key in CASES]
    assert numbers[:25] == [str(n) for n in range(1, 26)]
    assert set(numbers[25:]) == {"Extra:"}


@pytest.mark.parametrize("node", sorted({node for nodes in CASES.values() for node in nodes}))
def test_a_case_is_shown(node: str) -> None:
    assert exists(node)


def step(number: int) -> str:
    return json.dumps({"step": number, "reason": "r"})


def test_case_11_two_arguments_over_three_lanes_never_hold(tmp_path: Path) -> None:
    lanes = "\n".join(
        f"      - {{name: {n}, instruction: see, rules: [{{condition: ok}}, {{condition: tests pass}}]}}"
        for n in "abc"
    )
    text = (
        "name: three lanes\nphases: three\nmovements:\n  - name: review\n    parallel:\n"
        f"{lanes}\n    rules:\n"
        '      - {condition: \'all("ok", "tests pass")\', next: ABORT}\n'
        "      - {condition: 'any(\"ok\")', next: COMPLETE}\n"
    )
    says = [
        x for lane, rule in (("a", 1), ("b", 2), ("c", 1)) for x in ((lane, "x"), (lane, "rules", step(rule)))
    ]
    play = Play(write_piece(tmp_path, text), scripted(*says), tmp_path).run()
    assert (play.signals[0].rule, play.state.status) == (1, "completed")


ENDLESS = """
name: endless
phases: three
max_movements: 2
movements:
  - {name: a, instruction: go, rules: [{condition: done, next: b}]}
  - {name: b, instruction: go, rules: [{condition: done, next: a}]}
"""


def test_case_14_an_endless_pair_ends_after_two_and_a_retry_counts_on_from_there(tmp_path: Path) -> None:
    play = Play(write_piece(tmp_path, ENDLESS), lambda call, prompt: "x", tmp_path).run()
    ended = play.state.ended
    assert ended is not None
    assert (ended.status, ended.reason, ended.movement) == ("aborted", "max_movements", "a")
    assert "Max movements reached" in ended.message
    assert play.path == ["a", "b"]
    play.send(ev.RetryRequested())
    play.run()
    assert play.path == ["a", "b", "a", "b"]
    assert (play.state.limit, play.state.iteration) == (4, 4)


LOOP = """
name: loop
phases: three
max_movements: 20
loop_monitors:
  - {cycle: [review, fix], threshold: 2, judge: {rules: [{condition: stop, next: ABORT}]}}
movements:
  - name: review
    instruction: r
    rules: [{condition: bad, next: fix}, {condition: odd, next: look}, {condition: good, next: COMPLETE}]
  - {name: fix, instruction: f, rules: [{condition: fixed, next: review}]}
  - {name: look, instruction: l, rules: [{condition: seen, next: review}]}
"""


def test_case_17_a_cycle_that_another_movement_interrupts_does_not_trigger(tmp_path: Path) -> None:
    verdicts = iter([1, 2, 1, 3])

    def reply(call: CallModel, prompt: str) -> str:
        return step(next(verdicts)) if call.purpose == "rules" else "x"

    play = Play(write_piece(tmp_path, LOOP), reply, tmp_path).run()
    assert play.path == ["review", "fix", "review", "look", "review", "fix", "review"]
    assert not [s for s in play.signals if s.judged]
    assert play.state.status == "completed"


AGAIN = """
name: again
phases: {phases}
max_movements: 20
movements:
  - name: work
    instruction: work
    rules: [{{condition: not yet, next: work}}, {{condition: done, next: COMPLETE}}]
"""


@pytest.mark.parametrize("phases", ["single", "three"])
def test_case_18_eleven_in_a_row_warn_from_the_third_and_go_on(tmp_path: Path, phases: str) -> None:
    left = iter([0] * 10 + [1])

    def reply(call: CallModel, prompt: str) -> str:
        if phases == "single":
            return f"[STEP:{next(left)}]"
        return step(next(left) + 1) if call.purpose == "rules" else "x"

    play = Play(write_piece(tmp_path, AGAIN.format(phases=phases)), reply, tmp_path).run()
    warned = [e for e in play.events if isinstance(e, ev.Warned)]
    assert [w.code for w in warned] == ["repeated"] * 9
    assert [str(count) in w.message for count, w in enumerate(warned, 3)] == [True] * 9
    assert (len(play.path), play.state.status) == (11, "completed")


WRITING = """
name: writing
phases: single
max_movements: 5
movements:
  - name: work
    instruction: work
    report: {name: r.md}
    rules: [{condition: not yet, next: work}, {condition: done, next: COMPLETE}]
"""


def test_case_22_a_run_that_writes_a_report_three_times_keeps_all_three(tmp_path: Path) -> None:
    says = [("work", f"```markdown\ntext {n}\n```\n[STEP:{int(n == 3)}]") for n in (1, 2, 3)]
    play = Play(write_piece(tmp_path, WRITING), scripted(*says), tmp_path)
    play.now = 1_767_225_600.0
    while play.state.ended is None:
        play.run()
    (folder,) = tmp_path.glob(".takt/runs/*-the-task")
    assert (folder / "reports" / "r.md").read_text(encoding="utf-8").strip() == "text 3"
    kept = {p.read_text(encoding="utf-8").strip() for p in (folder / "logs" / "reports-history").iterdir()}
    assert kept == {"text 1", "text 2"}
    assert len({h for e in play.events if isinstance(e, ev.ReportSaved) for h in (e.text,)}) == 3


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    cli = Cli(tmp_path)
    for name, text in (("two", TWO_STEPS), ("done", DONE), ("slow", SLOW)):
        cli.write(f"{name}.yaml", text)
    return cli


@pytest.mark.slow
def test_extra_a_killed_run_is_in_nobody_s_way(cli: Cli) -> None:
    killed = cli.start("run", "two.yaml", "the first", "--script", "slow.yaml")
    cli.wait_for(lambda: any(row["movement"] == "second" for row in cli.rows()))
    os.kill(killed.pid, signal.SIGKILL)
    killed.communicate(timeout=20)
    assert cli("run", "two.yaml", "the next", "--script", "done.yaml").returncode == 0
    first = cli.rows()[-1]
    assert first["status"] in ("queued", "running")  # never silently failed, and never begun anew
    cli.write("slow.yaml", DONE)
    done = cli("resume", first["id"])
    assert done.returncode == 0, done.stderr
    visits = [
        row["type"] for row in map(json.loads, cli("events", first["id"], "--json").stdout.splitlines())
    ]
    assert visits.count("visit.started") == 2  # what was finished is not played again


INLINE = """
name: inline
phases: {phases}
movements:
  - name: a
    persona: You are a careful gardener.
    instruction: Water them.
    rules: [{{condition: done, next: COMPLETE}}]
"""


def test_extra_a_persona_without_a_file_is_its_own_text(tmp_path: Path) -> None:
    three = Play(write_piece(tmp_path, INLINE.format(phases="three")), scripted(("a", "x")), tmp_path).run()
    system, user = three.calls[0][0].append
    assert (system.role, user.role) == ("system", "user")
    assert three.texts[system.text].endswith("You are a careful gardener.")
    single = write_piece(tmp_path, INLINE.format(phases="single"))
    played = Play(single, scripted(("a", "x [STEP:0]")), tmp_path).run()
    assert played.prompts("a")[0].startswith("You are a careful gardener.")


@pytest.mark.parametrize(("piece", "task"), [("no-such-piece", "a task"), ("hello", "")])
async def test_extra_a_wrong_call_begins_nothing(piece: str, task: str, tmp_path: Path) -> None:
    async with Engine(":memory:", provider=ScriptedProvider(Script(()))) as engine:
        with pytest.raises(CadenzaError):
            await engine.start(piece, task, cwd=tmp_path)
        assert list(engine.journal.runs()) == []
