"""The prompts that are shown without playing: of each phase, of each kind of movement."""

from __future__ import annotations

from pathlib import Path

import pytest

from cadenza.core.movements import KINDS
from cadenza.errors import NotFound, UsageError
from cadenza.piece.find import load_piece
from cadenza.piece.model import LoadedPiece
from cadenza.preview import PREVIOUS, TASK, WORK, Phase, Prompt, preview

PIECE = """\
cadenza: 1
control: tags
name: sampler
phases: PHASES
max_movements: 30
movements:
  - name: plan
    persona: You plan.
    persona_name: planner
    knowledge: The sky is blue.
    instruction: Make a plan.
    quality_gates: [Every step has a product]
    report:
      - {name: plan.md, format: "# Plan", order: Save it as plan.md.}
      - {name: risks.md, use_judge: false}
    rules:
      - {condition: ready, next: review}
      - {condition: hopeless, next: ABORT, appendix: "Say why."}
  - name: review
    parallel:
      - name: facts
        instruction: "Check the facts of {report:plan.md}"
        rules: [{condition: fine}, {condition: wrong}]
      - name: style
        instruction: Check the style.
        rules: [{condition: fine}, {condition: wrong}]
    rules:
      - {condition: all("fine"), next: team}
      - {condition: ai("it can stay so"), next: team}
      - {condition: any("wrong"), next: plan}
  - name: team
    team_leader: {max_parts: 2, part_persona: You do one part.}
    instruction: Build it.
    rules: [{condition: built, next: rows}, {condition: broken, next: plan}]
  - name: rows
    arpeggio: {source: csv, source_path: ./table.csv, template: ./row.md, batch_size: 2}
    rules: [{condition: done, next: COMPLETE}, {condition: not done, next: plan}]
loop_monitors:
  - cycle: [plan, review]
    threshold: 2
    judge:
      persona: You judge.
      instruction: "{cycle_count} rounds."
      rules: [{condition: go on, next: plan}, {condition: stop, next: ABORT}]
"""


def sampler(folder: Path, phases: str = "three") -> LoadedPiece:
    (folder / "sampler.yaml").write_text(PIECE.replace("PHASES", phases), encoding="utf-8")
    (folder / "row.md").write_text("Batch {batch_index}: {col:1:name} and {line:2}", encoding="utf-8")
    (folder / "table.csv").write_text("name,age\nAda,36\nAlan,41\nGrace,85\nAlonzo,92\n", encoding="utf-8")
    return load_piece(str(folder / "sampler.yaml"), cwd=folder)


def shown(folder: Path, movement: str, phase: Phase | None = None, phases: str = "three") -> list[Prompt]:
    return preview(sampler(folder, phases), movement, cwd=folder, phase=phase)


def test_phase_1_is_the_system_text_and_the_message_of_the_work(tmp_path: Path) -> None:
    (one,) = shown(tmp_path, "plan", 1)
    assert [one] == shown(tmp_path, "plan")
    assert (one.movement, one.performer, one.phase, one.key) == ("plan", "planner", 1, "perform")
    assert one.system is not None
    assert one.system.endswith("You plan.")
    assert f"## User Request\n{TASK}" in one.text
    assert "- Every step has a product" in one.text
    assert "Report Directory: .cadenza/runs/<time>-the-task/reports/" in one.text
    assert "Knowledge Source: .cadenza/runs/<time>-the-task/context/knowledge/plan.1.<time>.md" in one.text


def test_phase_2_is_a_message_for_each_report(tmp_path: Path) -> None:
    first, second = shown(tmp_path, "plan", 2)
    assert [first.key, second.key] == ["report:plan.md", "report:risks.md"]
    assert first.system is None, "it goes on in the conversation of the work"
    assert "Save it as plan.md." in first.text
    assert "# Plan" in first.text
    assert "risks.md" in second.text


def test_phase_3_is_every_stage_with_a_placeholder_for_the_work(tmp_path: Path) -> None:
    prompts = shown(tmp_path, "plan", 3)
    assert [one.key for one in prompts] == ["status:step", "status:tag", "status:evaluation"]
    assert {one.performer for one in prompts} == {"conductor"}
    for one in prompts:
        assert WORK in one.text
        assert "<the report plan.md>" in one.text
        assert "risks.md" not in one.text
        assert one.system
    step, tag, evaluation = prompts
    assert step.schema is not None
    assert step.schema["properties"]["step"]["enum"] == [0, 1, 2]
    assert "[PLAN:2] = hopeless" in tag.text
    assert "Say why." in tag.text
    assert tag.schema is None
    assert "2. hopeless" in evaluation.text


def test_a_parallel_movement_shows_its_lanes_and_in_phase_3_its_own_rules(tmp_path: Path) -> None:
    work = shown(tmp_path, "review")
    assert [one.movement for one in work] == ["facts", "style"]
    assert "<the report plan.md, as the run has it then>" in work[0].text
    assert PREVIOUS in work[0].text
    status = [(one.movement, one.key) for one in shown(tmp_path, "review", 3)]
    stages = ["status:step", "status:tag", "status:evaluation"]
    lanes = [(lane, stage) for lane in ("facts", "style") for stage in stages]
    assert status == [*lanes, ("review", "rules:ai")]


def test_one_lane_can_be_named(tmp_path: Path) -> None:
    (one,) = shown(tmp_path, "style")
    assert one.movement == "style"
    assert {one.movement for one in shown(tmp_path, "style", 3)} == {"style"}
    assert shown(tmp_path, "style", 2) == []


@pytest.mark.parametrize("phases", ["single", "three"])
def test_a_team_leader_shows_plan_part_and_refill(tmp_path: Path, phases: str) -> None:
    plan, refill, part = shown(tmp_path, "team", phases=phases)
    assert (plan.key, refill.key, part.key) == ("plan", "refill:1", "perform")
    assert "Build it." in plan.text
    assert plan.schema is not None
    assert plan.schema["properties"]["parts"]["maxItems"] == 2
    assert refill.schema is not None
    assert "done" in refill.schema["properties"]
    assert part.movement == "team.part"
    assert "<what is to be done>" in part.text
    assert part.system is not None
    assert part.system.endswith("You do one part.")


@pytest.mark.parametrize("phases", ["single", "three"])
def test_an_arpeggio_shows_the_first_batch_of_its_table(tmp_path: Path, phases: str) -> None:
    (one,) = shown(tmp_path, "rows", phases=phases)
    assert one.text == "Batch 0: Ada and name: Alan\nage: 41"


def test_an_arpeggio_without_a_table_yet_shows_its_template(tmp_path: Path) -> None:
    loaded = sampler(tmp_path)
    (tmp_path / "table.csv").unlink()
    (one,) = preview(loaded, "rows", cwd=tmp_path)
    assert one.text == "Batch {batch_index}: {col:1:name} and {line:2}"


def test_a_table_that_does_not_fit_is_an_error(tmp_path: Path) -> None:
    loaded = sampler(tmp_path)
    (tmp_path / "table.csv").write_text("title\nx\n", encoding="utf-8")
    with pytest.raises(UsageError, match="there is no such column; there are title"):
        preview(loaded, "rows", cwd=tmp_path)


@pytest.mark.parametrize("phases", ["single", "three"])
def test_a_loop_judge_is_shown_when_its_cycle_has_come(tmp_path: Path, phases: str) -> None:
    (one,) = shown(tmp_path, "_loop_judge_plan_review", phases=phases)
    assert "2 rounds." in one.text
    assert (one.system is None) == (phases == "single")


def test_a_loop_judge_says_its_status_like_a_movement(tmp_path: Path) -> None:
    keys = [one.key for one in shown(tmp_path, "_loop_judge_plan_review", 3)]
    assert keys == ["status:step", "status:tag", "status:evaluation"]


def test_single_has_one_message_and_no_phases(tmp_path: Path) -> None:
    (one,) = shown(tmp_path, "plan", phases="single")
    assert one.system is None
    assert "[STEP:1] = hopeless" in one.text
    assert [one] == shown(tmp_path, "plan", 1, phases="single")
    for phase in (2, 3):
        with pytest.raises(UsageError, match="phases: single"):
            shown(tmp_path, "plan", phase, phases="single")


def test_a_movement_that_is_not_there_is_named_with_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(NotFound) as raised:
        shown(tmp_path, "nope")
    assert raised.value.hint == "it has plan, review, facts, style, team, rows, _loop_judge_plan_review"


def test_every_kind_of_movement_is_tried_here(tmp_path: Path) -> None:
    assert {movement.kind for movement in sampler(tmp_path).piece.movements} == set(KINDS)
