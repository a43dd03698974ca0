"""``phases: three`` on a bare conductor: sessions, reports, status stages, blocked agents, loop monitors.

Cases bear the numbers that the specification gives them.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cadenza.core import events as ev
from cadenza.core.demands import CallModel
from cadenza.core.outcomes import AnyOutcome, Failed, Replied, Usage
from cadenza.ids import text_hash
from tests.core.play import Play, Reply, scripted, write_piece

Said = tuple[str, str] | tuple[str, str, str]

PLAN = """
name: three
phases: three
max_movements: {max}
movements:
  - name: plan
    instruction_template: "plan {{task}}"
    rules:
{rules}
"""


def plan(rules: str, *, max: int = 5) -> str:
    lines = "\n".join(f"      - {{{rule}}}" for rule in rules.split("; "))
    return PLAN.format(max=max, rules=lines)


AB = "condition: a, next: COMPLETE; condition: b, next: ABORT"


def step(number: int) -> str:
    return json.dumps({"step": number, "reason": "r"})


def evaluation(number: int) -> str:
    return json.dumps({"matched_index": number, "reason": "r"})


def rules_of(*answers: str) -> list[Said]:
    return [("plan", "rules", answer) for answer in answers]


def test_case_1_a_structured_answer_chooses_the_rule(tmp_path: Path) -> None:
    play = Play(write_piece(tmp_path, plan(AB)), scripted(("plan", "x"), *rules_of(step(2))), tmp_path).run()
    assert play.signals[0].method == "structured_output"
    assert play.state.ended is not None
    assert (play.state.ended.status, play.state.ended.reason) == ("aborted", "rule")
    assert 'aborted by movement "plan"' in play.state.ended.message


def test_case_2_out_of_range_goes_to_the_tag_call_and_the_last_tag_wins(tmp_path: Path) -> None:
    replies = scripted(("plan", "x"), *rules_of(step(9), "[PLAN:1] or rather [PLAN:2]"))
    play = Play(write_piece(tmp_path, plan(AB)), replies, tmp_path).run()
    assert (play.signals[0].rule, play.signals[0].method) == (1, "phase3_tag")


@pytest.mark.parametrize(("tag", "rule"), [("[plan:1]", 0), ("[PLAN:2]", 1)])
def test_case_3_a_tag_is_read_whatever_its_case(tmp_path: Path, tag: str, rule: int) -> None:
    play = Play(
        write_piece(tmp_path, plan(AB)), scripted(("plan", "x"), *rules_of("no", tag)), tmp_path
    ).run()
    assert play.signals[0].rule == rule


def test_case_3_a_tag_of_zero_is_no_match(tmp_path: Path) -> None:
    replies = scripted(("plan", "x"), *rules_of("no", "[PLAN:0]", "no"))
    play = Play(write_piece(tmp_path, plan(AB)), replies, tmp_path).run()
    assert play.signals[0].kind == "no_match"


def test_case_4_one_rule_needs_no_status_call(tmp_path: Path) -> None:
    one = plan("condition: a, next: COMPLETE")
    play = Play(write_piece(tmp_path, one), scripted(("plan", "x")), tmp_path).run()
    assert play.signals[0].method == "auto_select"
    assert len(play.calls) == 1


AI = "condition: 'ai(\"p\")', next: COMPLETE; condition: 'ai(\"q\")', next: ABORT"


def test_case_5_only_ai_rules_and_a_tag_in_the_work(tmp_path: Path) -> None:
    play = Play(write_piece(tmp_path, plan(AI)), scripted(("plan", "done [PLAN:2]")), tmp_path).run()
    assert (play.signals[0].rule, play.signals[0].method) == (1, "phase1_tag")
    assert len(play.calls) == 1


def test_case_6_only_ai_rules_and_no_tag(tmp_path: Path) -> None:
    replies = scripted(("plan", "done"), *rules_of(evaluation(2)))
    play = Play(write_piece(tmp_path, plan(AI)), replies, tmp_path).run()
    assert (play.signals[0].rule, play.signals[0].method) == (1, "ai_judge")


def test_case_7_everything_fails(tmp_path: Path) -> None:
    replies = scripted(("plan", "x"), *rules_of("?", "?", "?"))
    play = Play(write_piece(tmp_path, plan(AB)), replies, tmp_path).run()
    assert play.state.ended is not None
    assert play.state.ended.reason == "rule_no_match"
    assert 'Status not found for movement "plan"' in play.state.ended.message


def test_a_failing_judge_is_one_stage_failing_and_the_work_s_own_tag_still_counts(tmp_path: Path) -> None:
    def reply(call: CallModel, prompt: str) -> str | AnyOutcome:
        return Failed(code="auth", message="no") if call.purpose == "rules" else "done [PLAN:1]"

    play = Play(write_piece(tmp_path, plan(AB)), reply, tmp_path).run()
    assert (play.signals[0].rule, play.signals[0].method) == (0, "phase1_tag")
    assert play.state.status == "completed"


INTERACTIVE = "condition: a, next: COMPLETE; condition: somebody asks, next: ABORT, interactive_only: true"


def test_case_8_an_interactive_rule_counts_only_where_somebody_is_there(tmp_path: Path) -> None:
    replies: list[Said] = [("plan", "x"), *rules_of(step(2), "[PLAN:2]", evaluation(1))]
    alone = Play(write_piece(tmp_path, plan(INTERACTIVE)), scripted(*replies), tmp_path).run()
    assert (alone.signals[0].rule, alone.signals[0].method) == (0, "ai_judge")
    assert not any("somebody asks" in prompt for prompt in alone.prompts("plan", "rules"))
    there = Play(write_piece(tmp_path, plan(INTERACTIVE)), scripted(*replies), tmp_path, interactive=True)
    assert there.run().signals[0].rule == 1


PARALLEL = """
name: par
phases: three
max_movements: 8
initial_movement: plan
movements:
  - name: plan
    instruction_template: plan
    rules: [{condition: planned, next: review}]
  - name: review
    parallel:
      - {name: a, instruction_template: see, rules: [{condition: approved}, {condition: needs_fix}]}
      - {name: b, instruction_template: see, rules: [{condition: approved}, {condition: needs_fix}]}
    rules:
      - {condition: 'all("approved")', next: COMPLETE}
      - {condition: 'any("needs_fix")', next: fix}
  - name: fix
    instruction_template: fix
    rules: [{condition: fixed, next: review}]
"""


def test_cases_9_and_10_aggregates_over_lanes(tmp_path: Path) -> None:
    replies = scripted(
        ("plan", "p"),
        ("a", "x"),
        ("b", "y"),
        ("a", "rules", step(1)),
        ("b", "rules", step(2)),
        ("fix", "f"),
        ("a", "x"),
        ("b", "y"),
        ("a", "rules", step(1)),
        ("b", "rules", step(1)),
    )
    play = Play(write_piece(tmp_path, PARALLEL), replies, tmp_path).run()
    assert play.path == ["plan", "review", "fix", "review"]
    assert [s.method for s in play.signals] == ["auto_select", "aggregate", "auto_select", "aggregate"]
    assert (play.state.status, play.state.iteration) == ("completed", 4)


def test_case_11_a_positional_all_of_the_wrong_length_is_never_true(tmp_path: Path) -> None:
    text = PARALLEL.replace('all("approved")', 'all("approved", "approved", "approved")').replace(
        'any("needs_fix")', 'any("approved")'
    )
    text = text.replace("next: fix}", "next: ABORT}")
    replies = scripted(
        ("plan", "p"), ("a", "x"), ("b", "y"), ("a", "rules", step(1)), ("b", "rules", step(1))
    )
    play = Play(write_piece(tmp_path, text), replies, tmp_path).run()
    assert play.signals[-1].rule == 1


def failing(*lanes: str) -> Reply:
    def reply(call: CallModel, prompt: str) -> str | AnyOutcome:
        if call.movement in lanes:
            return Failed(code="x", message=f"{call.movement} is down")
        return step(1) if call.purpose == "rules" else "ok"

    return reply


def test_case_12_one_lane_throws(tmp_path: Path) -> None:
    text = PARALLEL.replace('any("needs_fix")\', next: fix', 'any("approved")\', next: ABORT')
    play = Play(write_piece(tmp_path, text), failing("a"), tmp_path).run()
    assert [lane.error for lane in play.signals[-1].lanes] == ["a is down", None]
    assert play.signals[-1].label == 'any("approved")'


def test_case_13_every_lane_throws(tmp_path: Path) -> None:
    play = Play(write_piece(tmp_path, PARALLEL), failing("a", "b"), tmp_path).run()
    assert play.state.ended is not None
    assert "a: a is down; b: b is down" in play.state.ended.message


LOOP = """
name: loop
phases: three
max_movements: 20
loop_monitors:
  - cycle: [review, fix]
    threshold: 2
    judge:
      instruction_template: "cycle {cycle_count}"
      rules:
        - {condition: continue, next: review}
        - {condition: stop, next: ABORT}
movements:
  - name: review
    instruction_template: review
    rules: [{condition: bad, next: fix}, {condition: good, next: COMPLETE}]
  - name: fix
    instruction_template: fix
    rules: [{condition: fixed, next: review}, {condition: enough, next: COMPLETE}]
"""
JUDGE = "_loop_judge_review_fix"
ROUND: list[Said] = [("review", "x"), ("review", "rules", step(1)), ("fix", "y"), ("fix", "rules", step(1))]
LEAVE: list[Said] = [("review", "x"), ("review", "rules", step(1)), ("fix", "y"), ("fix", "rules", step(2))]


def test_case_15_the_judge_is_called_once_and_may_abort(tmp_path: Path) -> None:
    replies = scripted(*ROUND, *ROUND, (JUDGE, "loop-judge", "z"), (JUDGE, "rules", step(2)))
    play = Play(write_piece(tmp_path, LOOP), replies, tmp_path).run()
    assert play.state.ended is not None
    assert play.state.ended.status == "aborted"
    judged = play.signals[-1].judged
    assert (judged.name, judged.count, judged.label) == (JUDGE, 2, "stop")
    assert "cycle 2" in play.prompts(JUDGE, "loop-judge")[0]


def test_case_16_the_history_is_cleared(tmp_path: Path) -> None:
    judge: list[Said] = [(JUDGE, "loop-judge", "z"), (JUDGE, "rules", step(1))]
    replies = scripted(*ROUND, *ROUND, *judge, *ROUND, *LEAVE)
    play = Play(write_piece(tmp_path, LOOP), replies, tmp_path).run()
    assert [i for i, s in enumerate(play.signals) if s.judged] == [3]
    assert play.state.status == "completed"


def test_case_17_no_judge_when_the_cycle_is_left(tmp_path: Path) -> None:
    play = Play(write_piece(tmp_path, LOOP), scripted(*ROUND, *LEAVE), tmp_path).run()
    assert not [s for s in play.signals if s.judged]
    assert play.state.status == "completed"


def test_a_failing_loop_judge_leaves_the_natural_next(tmp_path: Path) -> None:
    left = scripted(*ROUND, *ROUND, ("review", "x"), ("review", "rules", step(2)))

    def reply(call: CallModel, prompt: str) -> str | AnyOutcome:
        return Failed(code="x", message="down") if call.movement == JUDGE else left(call, prompt)

    play = Play(write_piece(tmp_path, LOOP), reply, tmp_path).run()
    assert play.path[-1] == "review"
    assert play.signals[3].judged is not None
    assert play.signals[3].judged.label is None
    assert play.state.status == "completed"


def blocked_once(first: str) -> Reply:
    seen: list[str] = []

    def reply(call: CallModel, prompt: str) -> str | AnyOutcome:
        if call.purpose == "rules":
            return step(1)
        seen.append(prompt)
        if len(seen) > 1:
            return "done"
        return Replied(text=text_hash(first), usage=Usage(), blocked=True)

    return reply


def test_case_19_a_blocked_agent_asks_and_the_answer_performs_the_movement_anew(tmp_path: Path) -> None:
    said = "I stop.\n質問: どれ?"
    play = Play(write_piece(tmp_path, plan(AB)), blocked_once(said), tmp_path)
    play.texts[text_hash(said)] = said
    play.run()
    assert (play.state.status, play.state.wait_reason) == ("waiting_human", "blocked")
    (request,) = play.state.requests.values()
    assert play.texts[request.question] == "どれ?"
    play.answer("B")
    play.run()
    assert play.path == ["plan", "plan"]
    assert "B" in play.prompts("plan")[1].split("Additional User Inputs")[1]
    assert play.state.status == "completed"


def test_case_19_an_empty_answer_aborts(tmp_path: Path) -> None:
    play = Play(write_piece(tmp_path, plan(AB)), blocked_once("why?"), tmp_path)
    play.texts[text_hash("why?")] = "why?"
    play.run()
    play.answer(" ")
    assert play.state.ended is not None
    assert play.state.ended.reason == "blocked"
    assert "Piece blocked and no user input provided" in play.state.ended.message


def test_cases_20_and_21_the_task_arrives_as_it_is(tmp_path: Path) -> None:
    one = plan("condition: a, next: COMPLETE")
    play = Play(write_piece(tmp_path, one), scripted(("plan", "x")), tmp_path, task="{report_dir} {x} $& \\1")
    prompt = play.run().prompts("plan")[0]
    assert "plan {report_dir} {x} $& \\1" in prompt
    assert "## User Request" not in prompt
    other = write_piece(tmp_path, one.replace("plan {task}", "plan it"))
    assert "## User Request" in Play(other, scripted(("plan", "x")), tmp_path).run().prompts("plan")[0]


REPORTING = """
name: reporting
phases: three
movements:
  - name: plan
    instruction_template: plan
    output_contracts:
      report:
        - {name: plan.md, format: "# Plan {x}"}
        - {name: notes.md, format: "# Notes", use_judge: false}
    rules: [{condition: a, next: COMPLETE}, {condition: b, next: ABORT}]
"""


def test_reports_are_calls_of_the_same_session_and_the_judge_sees_text_and_reports(tmp_path: Path) -> None:
    replies = scripted(
        ("plan", "THE WORK"),
        ("plan", "report", "THE PLAN"),
        ("plan", "report", "THE NOTES"),
        ("plan", "rules", step(1)),
    )
    play = Play(write_piece(tmp_path, REPORTING), replies, tmp_path).run()
    work, first, second, status = [call for call, _ in play.calls]
    assert work.conversation == first.conversation == second.conversation != status.conversation
    assert [m.role for m in work.append] == ["system", "user"]
    assert [m.role for m in first.append] == ["user"]
    assert "# Plan {x}" in play.calls[1][1]
    judged = play.calls[3][1]
    assert "THE WORK" in judged
    assert "THE PLAN" in judged
    assert "THE NOTES" not in judged  # use_judge: false
    assert play.state.reports.keys() == {"plan.md", "notes.md"}
    (folder,) = (tmp_path / ".takt" / "runs").glob("*-the-task")
    assert (folder / "reports" / "plan.md").read_text(encoding="utf-8") == "THE PLAN"


def test_case_23_an_empty_report_is_asked_for_once_more_in_a_new_session(tmp_path: Path) -> None:
    replies = scripted(
        ("plan", "THE WORK"),
        ("plan", "report", "  "),
        ("plan", "report", "THE PLAN"),
        ("plan", "report", ""),
        ("plan", "report", ""),
        ("plan", "rules", step(1)),
    )
    play = Play(write_piece(tmp_path, REPORTING), replies, tmp_path).run()
    retry, prompt = play.calls[2]
    assert retry.conversation != play.calls[1][0].conversation
    assert "THE WORK" in prompt
    warned = [e for e in play.events if isinstance(e, ev.Warned)]
    assert [w.code for w in warned] == ["report_missing"]  # twice empty: missing, and the run goes on
    assert "notes.md" in warned[0].message
    assert play.state.reports.keys() == {"plan.md"}
    assert play.state.status == "completed"


def test_case_24_knowledge_is_cut_and_the_snapshot_has_all_of_it(tmp_path: Path) -> None:
    (tmp_path / "long.md").write_text("k" * 2001, encoding="utf-8")
    text = plan("condition: a, next: COMPLETE").replace("    rules:", "    knowledge: long\n    rules:", 1)
    text = text.replace("movements:\n", "knowledge:\n  long: ../long.md\nmovements:\n", 1)
    play = Play(write_piece(tmp_path, text), scripted(("plan", "x")), tmp_path).run()
    prompt = play.prompts("plan")[0]
    assert "k" * 2000 + "\n...TRUNCATED..." in prompt
    assert "k" * 2001 not in prompt
    (snapshot,) = tmp_path.glob(".takt/runs/*/context/knowledge/plan.1.*.md")
    assert snapshot.read_text(encoding="utf-8") == "k" * 2001
    assert str(snapshot.relative_to(tmp_path)) in prompt


def test_a_blank_answer_is_asked_again_and_then_fails(tmp_path: Path) -> None:
    replies = scripted(("plan", " "), ("plan", ""), ("plan", "x"))
    one = plan("condition: a, next: COMPLETE")
    play = Play(write_piece(tmp_path, one), replies, tmp_path).run()
    assert len(play.calls) == 3
    assert play.state.status == "completed"
    blank = Play(write_piece(tmp_path, one), scripted(*[("plan", "")] * 3), tmp_path).run()
    assert blank.state.ended is not None
    assert blank.state.ended.reason == "blank_output"


SESSIONS = """
name: sessions
phases: three
max_movements: 6
personas: {coder: ../coder.md}
movements:
  - {name: one, persona: coder, instruction_template: one, rules: [{condition: d, next: two}]}
  - {name: two, persona: coder, instruction_template: two, rules: [{condition: d, next: three}]}
  - name: three
    persona: coder
    session: refresh
    instruction_template: three
    rules: [{condition: d, next: four}]
  - name: four
    parallel:
      - {name: a, persona: coder, instruction_template: a, rules: [{condition: d}]}
      - {name: b, persona: coder, instruction_template: b, rules: [{condition: d}]}
    rules: [{condition: 'all("d")', next: COMPLETE}]
"""


def test_a_session_goes_on_or_is_refreshed_and_no_two_lanes_share_one(tmp_path: Path) -> None:
    (tmp_path / "coder.md").write_text("You code.", encoding="utf-8")
    replies = scripted(*[(name, "x") for name in ("one", "two", "three", "a", "b")])
    play = Play(write_piece(tmp_path, SESSIONS), replies, tmp_path).run()
    one, two, three, a, b = [call for call, _ in play.calls]
    assert one.conversation == two.conversation != three.conversation
    assert len({three.conversation, a.conversation, b.conversation}) == 3
    assert [m.role for m in two.append] == ["user"]
    systems = {call.append[0].text for call in (one, three, a, b)}
    assert len(systems) == 1  # byte-stable over the whole run
    assert play.texts[systems.pop()].endswith("You code.")


def folders(tmp_path: Path) -> str:
    """Two personas of one file name, in two folders."""
    for side in ("front", "back"):
        (tmp_path / side).mkdir()
        (tmp_path / side / "reviewer.md").write_text(f"You review the {side} end.", encoding="utf-8")
    return """
name: two
phases: three
max_movements: 4
personas: {fe: ../front/reviewer.md, be: ../back/reviewer.md}
movements:
  - {name: one, persona: fe, instruction_template: one, rules: [{condition: d, next: two}]}
  - {name: two, persona: be, instruction_template: two, rules: [{condition: d, next: COMPLETE}]}
"""


def test_two_personas_of_one_name_never_share_a_session(tmp_path: Path) -> None:
    piece = write_piece(tmp_path, folders(tmp_path))
    play = Play(piece, scripted(("one", "x"), ("two", "y")), tmp_path).run()
    one, two = [call for call, _ in play.calls]
    assert one.conversation != two.conversation
    assert play.texts[two.append[0].text].endswith("You review the back end.")


def test_a_conversation_is_left_where_a_message_was_not_answered(tmp_path: Path) -> None:
    said = iter(["THE WORK", Failed(code="x", message="down"), Failed(code="x", message="down"), "NOTES"])

    def reply(call: CallModel, prompt: str) -> str | AnyOutcome:
        if call.purpose == "rules":
            return step(1)
        said_now: str | AnyOutcome = next(said)  # type: ignore[assignment]
        return said_now

    play = Play(write_piece(tmp_path, REPORTING), reply, tmp_path).run()
    calls = [call for call, _ in play.calls if call.purpose != "rules"]
    assert len({call.conversation for call in calls[1:]}) == 3  # the failed ask, its retry, the next report
    assert "THE WORK" in play.prompts("plan", "report")[2]
    assert play.state.reports.keys() == {"notes.md"}


def test_reports_that_were_written_are_kept_when_a_later_one_is_blocked(tmp_path: Path) -> None:
    asks = "質問: which?"

    def reply(call: CallModel, prompt: str) -> str | AnyOutcome:
        if call.purpose == "report" and "notes.md" in prompt:
            return Replied(text=text_hash(asks), blocked=True)
        return "words"

    play = Play(write_piece(tmp_path, REPORTING), reply, tmp_path)
    play.texts[text_hash(asks)] = asks
    play.run()
    assert play.state.wait_reason == "blocked"
    assert play.state.reports.keys() == {"plan.md"}


def test_the_loop_judge_reads_what_the_cycle_came_to_in_a_session_of_its_own(tmp_path: Path) -> None:
    judge: list[Said] = [(JUDGE, "loop-judge", "z"), (JUDGE, "rules", step(1))]
    end: list[Said] = [("review", "x"), ("review", "rules", step(2))]
    replies = scripted(*ROUND, *ROUND, *judge, *ROUND, *ROUND, *judge, *end)
    play = Play(write_piece(tmp_path, LOOP), replies, tmp_path).run()
    judges = [(call, prompt) for call, prompt in play.calls if call.purpose == "loop-judge"]
    assert len({call.conversation for call, _ in judges}) == 2
    assert not any(call.continues for call, _ in judges)
    assert "y" in judges[0][1].split("## Previous Response")[1].split("##")[0]


def test_a_lane_that_asked_goes_on_in_its_conversation_and_its_answer_is_kept(tmp_path: Path) -> None:
    asked: list[str] = []

    def reply(call: CallModel, prompt: str) -> str | AnyOutcome:
        if call.purpose == "rules":
            return step(1)
        if call.movement == "a" and not asked:
            asked.append(prompt)
            return Replied(text=text_hash("質問: colour?"), blocked=True)
        return "ok"

    play = Play(write_piece(tmp_path, PARALLEL), reply, tmp_path)
    play.texts[text_hash("質問: colour?")] = "質問: colour?"
    play.run()
    play.answer("blue")
    play.run()
    first, second = [call for call, _ in play.calls if call.movement == "a" and call.purpose == "perform"]
    assert second.continues
    assert first.conversation == second.conversation
    assert [play.texts[text] for text in play.state.user_inputs] == ["blue"]
    assert play.state.status == "completed"
