"""Every running behaviour of the seed document, each under the sentence (or heading) that asks for it.

What the prompt looks like has its own table (``tests/unit/test_seed_prompt_table.py``).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from cadenza.core import events as ev
from cadenza.core.conductor import Conductor
from cadenza.core.demands import CallModel
from cadenza.core.outcomes import Failed
from cadenza.core.state import RunState
from tests.core.play import Play, scripted, write_piece

Case = Callable[[Path], None]
TABLE: dict[str, Case] = {}


def sentence(text: str) -> Callable[[Case], Case]:
    """Register a case under the sentence of the seed that it shows."""

    def register(case: Case) -> Case:
        assert text not in TABLE, f"two cases for {text!r}"
        TABLE[text] = case
        return case

    return register


TWO = """
name: two
max_movements: 5
initial_movement: plan
movements:
  - name: plan
    instruction_template: "plan {task}"
    rules:
      - condition: done
        next: build
      - condition: stuck
        next: ABORT
  - name: build
    instruction_template: "build, after: {previous_response}"
    rules:
      - condition: built
        next: COMPLETE
      - condition: again
        next: build
      - condition: replan
        next: plan
"""


def verdict(rule: int | None) -> str:
    return json.dumps({"rule": rule, "reason": "because"})


@sentence("`[STEP:N]` タグがあれば … そのインデックスに対応する rule を選択する")
def _tag_chooses(tmp: Path) -> None:
    play = Play(write_piece(tmp, TWO), scripted(("plan", "ok [STEP:0]"), ("build", "[STEP:0]")), tmp).run()
    assert play.path == ["plan", "build"]
    assert [s.method for s in play.signals] == ["tag", "tag"]
    assert play.state.status == "completed"


@sentence("複数のタグがある場合は **最後のタグ** を採用する")
def _last_tag_wins(tmp: Path) -> None:
    play = Play(write_piece(tmp, TWO), scripted(("plan", "[STEP:0] no, [STEP:1]")), tmp).run()
    assert play.state.status == "aborted"
    assert play.signals[0].rule == 1


@sentence("タグが出力に含まれない場合、… 最もマッチするものを選択する")
def _judge_without_tag(tmp: Path) -> None:
    replies = scripted(("plan", "no tag"), ("plan", "rules", verdict(0)), ("build", "[STEP:0]"))
    play = Play(write_piece(tmp, TWO), replies, tmp).run()
    assert play.signals[0].method == "judge"
    assert "no tag" in play.prompts("plan", "rules")[0]
    assert play.path == ["plan", "build"]


@sentence("範囲外のタグは AI 判定へ (issue: a last tag out of range goes to the judge)")
def _tag_out_of_range(tmp: Path) -> None:
    replies = scripted(("plan", "[STEP:0] then [STEP:7]"), ("plan", "rules", verdict(1)))
    play = Play(write_piece(tmp, TWO), replies, tmp).run()
    assert (play.signals[0].method, play.signals[0].rule) == ("judge", 1)


@sentence("全ての rule を評価してもマッチしない場合は ABORT する")
def _no_match(tmp: Path) -> None:
    output = "A" * 700 + "MIDDLE" + "Z" * 700
    play = Play(
        write_piece(tmp, TWO), scripted(("plan", output), ("plan", "rules", verdict(None))), tmp
    ).run()
    ended = play.state.ended
    assert ended is not None
    assert (ended.status, ended.reason, ended.movement) == ("aborted", "rule_no_match", "plan")
    assert '"plan"' in ended.message
    assert "done" in ended.message
    assert "stuck" in ended.message
    assert "A" * 500 in ended.message
    assert "A" * 501 not in ended.message
    assert "Z" * 500 in ended.message
    assert "Z" * 501 not in ended.message
    assert "MIDDLE" not in ended.message


@pytest.mark.parametrize("answer", ["no json", verdict(9), '{"rule": true}', "", "[MOCK:DONE]"])
def test_an_invalid_verdict_is_no_match(tmp_path: Path, answer: str) -> None:
    play = Play(
        write_piece(tmp_path, TWO), scripted(("plan", "x"), ("plan", "rules", answer)), tmp_path
    ).run()
    assert play.state.ended is not None
    assert play.state.ended.reason == "rule_no_match"


def test_a_failed_judge_is_no_match(tmp_path: Path) -> None:
    def reply(call: CallModel, prompt: str) -> str | Failed:
        return Failed(code="auth", message="no key") if call.purpose == "rules" else "x"

    play = Play(write_piece(tmp_path, TWO), reply, tmp_path).run()
    assert play.state.ended is not None
    assert play.state.ended.reason == "rule_no_match"


def test_a_one_rule_movement_is_judged_too(tmp_path: Path) -> None:
    piece = write_piece(
        tmp_path,
        "name: one\nmovements:\n- name: a\n  instruction_template: go\n  rules:\n"
        "  - condition: Done\n    next: COMPLETE\n",
    )
    play = Play(piece, scripted(("a", "said"), ("a", "rules", verdict(0))), tmp_path).run()
    assert [call.purpose for call, _ in play.calls] == ["perform", "rules"]
    assert play.state.status == "completed"


@sentence("前の movement のチームメイト出力 ({previous_response})")
def _previous_response(tmp: Path) -> None:
    play = Play(
        write_piece(tmp, TWO), scripted(("plan", "THE PLAN [STEP:0]"), ("build", "[STEP:0]")), tmp
    ).run()
    assert "after: THE PLAN [STEP:0]" in play.prompts("build")[0]
    assert play.prompts("build")[0].count("THE PLAN") == 1  # part 9 is left out


@sentence("イテレーション: {iteration} / {max_movements}; Movement イテレーション: {movement_iteration} 回目")
def _counters(tmp: Path) -> None:
    replies = scripted(
        ("plan", "[STEP:0]"), ("build", "[STEP:2]"), ("plan", "[STEP:0]"), ("build", "[STEP:0]")
    )
    play = Play(write_piece(tmp, TWO), replies, tmp, language="ja").run()
    assert "- イテレーション: 3 / 5" in play.prompts("plan")[1]
    assert "- Movement イテレーション: 2 回目" in play.prompts("plan")[1]
    assert play.state.counts == {"plan": 2, "build": 2}


@sentence("同じ movement が連続3回以上実行されたら警告を表示する")
def _warning_at_three(tmp: Path) -> None:
    replies = scripted(("plan", "[STEP:0]"), *[("build", "[STEP:1]")] * 3, ("build", "[STEP:0]"))
    play = Play(write_piece(tmp, TWO), replies, tmp).run()
    warnings = [e for e in play.events if isinstance(e, ev.Warned)]
    assert [w.code for w in warnings] == ["repeated", "repeated"]  # at the third and the fourth
    assert "3 times" in warnings[0].message
    assert play.state.status == "completed"


@sentence("`consecutive_count[name]` … 別の movement に遷移したとき (リセット)")
def _consecutive_resets(tmp: Path) -> None:
    replies = scripted(
        ("plan", "[STEP:0]"),
        ("build", "[STEP:1]"),
        ("build", "[STEP:2]"),
        ("plan", "[STEP:0]"),
        ("build", "[STEP:0]"),
    )
    play = Play(write_piece(tmp, TWO), replies, tmp).run()
    counts = [e.consecutive for e in play.events if isinstance(e, ev.VisitStarted)]
    assert counts == [1, 1, 2, 1, 1]
    assert not [e for e in play.events if isinstance(e, ev.Warned)]


@sentence("`max_movements` に到達したら強制終了（ABORT）する")
def _max_movements(tmp: Path) -> None:
    replies = scripted(("plan", "[STEP:0]"), *[("build", "[STEP:1]")] * 4)
    play = Play(write_piece(tmp, TWO), replies, tmp).run()
    ended = play.state.ended
    assert len(play.path) == 5
    assert ended is not None
    assert (ended.status, ended.reason, ended.movement) == ("aborted", "max_movements", "build")
    assert "Max movements reached" in ended.message


PARALLEL = """
name: par
max_movements: 6
movements:
  - name: review
    parallel:
      - name: arch
        instruction_template: look at arch
        rules: [{condition: approved}, {condition: needs_fix}]
      - name: sec
        instruction_template: look at sec
        rules: [{condition: approved}, {condition: needs_fix}]
    rules:
      - condition: all("approved")
        next: COMPLETE
      - condition: any("needs_fix")
        next: fix
      - condition: nothing could be said
        next: ABORT
  - name: fix
    instruction_template: "fix: {previous_response}"
    rules:
      - condition: fixed
        next: review
"""


@sentence('引数が1つ: 全サブステップのマッチ条件が "approved" であれば true')
def _all_one(tmp: Path) -> None:
    play = Play(write_piece(tmp, PARALLEL), scripted(("arch", "[STEP:0]"), ("sec", "[STEP:0]")), tmp).run()
    signal = play.signals[0]
    assert (signal.method, signal.label) == ("aggregate", 'all("approved")')
    assert [(lane.name, lane.label) for lane in signal.lanes] == [("arch", "approved"), ("sec", "approved")]
    assert play.state.status == "completed"


@sentence('いずれかのサブステップのマッチ条件が "needs_fix" であれば true')
def _any(tmp: Path) -> None:
    replies = scripted(
        ("arch", "fine [STEP:0]"),
        ("sec", "bad [STEP:1]"),
        ("fix", "[STEP:0]"),
        ("arch", "[STEP:0]"),
        ("sec", "[STEP:0]"),
    )
    play = Play(write_piece(tmp, PARALLEL), replies, tmp).run()
    assert play.path == ["review", "fix", "review"]
    assert play.state.iteration == 3  # the whole block costs one
    assert "## arch\nfine [STEP:0]\n\n---\n\n## sec\nbad [STEP:1]" in play.prompts("fix")[0]
    assert play.state.counts == {"review": 2, "arch": 2, "sec": 2, "fix": 1}


@sentence("親 rules を上から順に評価し、最初にマッチした rule を採用する")
def _first_holding_rule(tmp: Path) -> None:
    text = PARALLEL.replace('condition: all("approved")', 'condition: any("approved")')
    play = Play(write_piece(tmp, text), scripted(("arch", "[STEP:1]"), ("sec", "[STEP:0]")), tmp).run()
    assert play.signals[0].rule == 0


@sentence("引数が複数（位置対応）")
def _all_positional(tmp: Path) -> None:
    text = PARALLEL.replace('all("approved")', 'all("approved", "needs_fix")')
    play = Play(write_piece(tmp, text), scripted(("arch", "[STEP:0]"), ("sec", "[STEP:1]")), tmp).run()
    assert play.signals[0].rule == 0
    second = tmp / "second"
    second.mkdir()
    swapped = Play(
        write_piece(second, text),
        scripted(("arch", "[STEP:1]"), ("sec", "[STEP:0]"), ("fix", "?"), ("fix", "rules", "none")),
        second,
    ).run()
    assert swapped.signals[0].rule == 1


@sentence("各サブステップの出力に対して、そのサブステップの `rules` で条件マッチを判定")
def _tags_in_own_output_only(tmp: Path) -> None:
    replies = scripted(
        ("arch", "no tag"),
        ("sec", "[STEP:0]"),
        ("arch", "rules", verdict(1)),
        ("fix", "?"),
        ("fix", "rules", "none"),
    )
    play = Play(write_piece(tmp, PARALLEL), replies, tmp).run()
    assert [lane.method for lane in play.signals[0].lanes] == ["judge", "tag"]
    assert play.signals[0].label == 'any("needs_fix")'


def test_the_parent_never_reads_tags_in_the_joined_text(tmp_path: Path) -> None:
    replies = scripted(
        ("arch", "text"),
        ("arch", "rules", "none"),
        ("sec", "[STEP:9]"),
        ("sec", "rules", "none"),
        ("review", "rules", verdict(0)),
    )
    play = Play(write_piece(tmp_path, PARALLEL), replies, tmp_path).run()
    signal = play.signals[0]
    assert (signal.method, signal.rule) == ("judge", 2)  # the only plain rule; never [STEP:9] or an aggregate
    judged = play.prompts("review", "rules")[0]
    assert "nothing could be said" in judged
    assert "needs_fix" not in judged.split("nothing could be said")[0].split("## sec")[-1]


def test_one_failed_lane_has_no_label_and_all_failed_lanes_fail_the_movement(tmp_path: Path) -> None:
    def one(call: CallModel, prompt: str) -> str | Failed:
        return Failed(code="auth", message="no key") if call.movement == "arch" else "[STEP:1]"

    play = Play(write_piece(tmp_path, PARALLEL), one, tmp_path, task="x")
    while play.state.ended is None and play.path[-1] == "review":
        opened = play.state.met_by_worker[0]
        play.take(
            play.conductor.resolve(play.state, opened.id, play.meet(opened.demand), play.now, play.texts)
        )
    assert [lane.label for lane in play.signals[0].lanes] == [None, "needs_fix"]
    assert play.signals[0].label == 'any("needs_fix")'
    everything = Play(
        write_piece(tmp_path, PARALLEL),
        lambda c, p: Failed(code="auth", message=f"no {c.movement}"),
        tmp_path,
    ).run()
    assert everything.state.ended is not None
    assert everything.state.ended.reason == "movement_failed"
    assert "arch: no arch; sec: no sec" in everything.state.ended.message


LOOP = """
name: loop
max_movements: 20
loop_monitors:
  - cycle: [ai_review, ai_fix]
    threshold: 2
    judge:
      persona: You are the referee.
      instruction_template: "cycle {cycle_count}; report {report:r.md}"
      rules:
        - condition: healthy
          next: ai_review
        - condition: unproductive
          next: end
movements:
  - name: ai_review
    instruction_template: review
    report: [{R: r.md}]
    rules:
      - condition: bad
        next: ai_fix
      - condition: good
        next: COMPLETE
  - name: ai_fix
    instruction_template: fix
    rules:
      - condition: fixed
        next: ai_review
  - name: end
    instruction_template: end
    rules: [{condition: over, next: COMPLETE}]
"""
JUDGE = "_loop_judge_ai_review_ai_fix"
ROUND = (("ai_review", "[STEP:0]"), ("ai_fix", "[STEP:0]"))


@sentence(
    "`cycle` パターンが履歴の末尾に `threshold` 回以上連続で出現するか … マッチした rule の `next` に遷移する"
)
def _monitor_overrides(tmp: Path) -> None:
    replies = scripted(*ROUND, *ROUND, (JUDGE, "loop-judge", "[STEP:1]"), ("end", "[STEP:0]"))
    play = Play(write_piece(tmp, LOOP), replies, tmp).run()
    assert play.path == ["ai_review", "ai_fix", "ai_review", "ai_fix", "end"]
    fix = play.signals[3]
    assert (fix.method, fix.next, fix.label) == ("monitor", "end", "unproductive")
    assert fix.judged is not None
    assert (fix.judged.count, fix.judged.label) == (2, "unproductive")
    assert play.state.iteration == 6  # five visits and the judge


@sentence("judge の `persona` … `instruction_template` の `{cycle_count}` を実際のサイクル回数に置換する")
def _judge_prompt(tmp: Path) -> None:
    replies = scripted(
        ("ai_review", "```markdown\nFINDINGS\n```\n[STEP:0]"),
        ROUND[1],
        *ROUND,
        (JUDGE, "loop-judge", "[STEP:1]"),
        ("end", "[STEP:0]"),
    )
    play = Play(write_piece(tmp, LOOP), replies, tmp).run()
    prompt = play.prompts(JUDGE, "loop-judge")[0]
    assert prompt.startswith("You are the referee.")
    assert "cycle 2; report " in prompt
    assert "[STEP:0] = healthy" in prompt
    assert "5 / 20" in prompt  # the judge's own iteration


def test_the_history_is_cleared_after_each_judge(tmp_path: Path) -> None:
    replies = scripted(
        *ROUND,
        *ROUND,
        (JUDGE, "loop-judge", "[STEP:0]"),
        *ROUND,
        *ROUND,
        (JUDGE, "loop-judge", "[STEP:1]"),
        ("end", "[STEP:0]"),
    )
    play = Play(write_piece(tmp_path, LOOP), replies, tmp_path).run()
    assert [i for i, s in enumerate(play.signals) if s.judged] == [3, 7]
    assert play.state.counts[JUDGE] == 2


@pytest.mark.parametrize("said", ["nothing", Failed(code="auth", message="no key")])
def test_a_judge_that_fails_or_matches_nothing_leaves_the_choice_to_the_rules(
    tmp_path: Path, said: str | Failed
) -> None:
    plain = scripted(*ROUND, *ROUND, ("ai_review", "[STEP:1]"))

    def reply(call: CallModel, prompt: str) -> str | Failed:
        if call.purpose == "loop-judge":
            return said
        return "none" if call.purpose == "rules" else plain(call, prompt)  # type: ignore[return-value]

    play = Play(write_piece(tmp_path, LOOP), reply, tmp_path).run()
    assert play.path[-1] == "ai_review"
    judged = play.signals[3].judged
    assert judged is not None
    assert judged.label is None
    assert play.state.status == "completed"
    assert play.state.iteration == 6  # the judge cost one all the same


def test_a_cycle_that_another_movement_interrupts_does_not_trigger(tmp_path: Path) -> None:
    text = LOOP.replace("next: COMPLETE\n  - name: ai_fix", "next: end\n  - name: ai_fix").replace(
        "rules: [{condition: over, next: COMPLETE}]",
        "rules: [{condition: over, next: ai_review}, {condition: out, next: COMPLETE}]",
    )
    replies = scripted(
        *ROUND,
        ("ai_review", "[STEP:1]"),
        ("end", "[STEP:0]"),
        *ROUND,
        ("ai_review", "[STEP:1]"),
        ("end", "[STEP:1]"),
    )
    play = Play(write_piece(tmp_path, text), replies, tmp_path).run()
    assert not [s for s in play.signals if s.judged]
    assert play.state.status == "completed"


ASKING = """
name: asking
max_movements: 6
movements:
  - name: plan
    instruction_template: plan it
    rules:
      - condition: clear
        next: COMPLETE
      - condition: a question
        next: plan
        requires_user_input: true
"""


def test_requires_user_input_parks_and_the_answer_opens_a_new_visit(tmp_path: Path) -> None:
    play = Play(
        write_piece(tmp_path, ASKING), scripted(("plan", "Which? [STEP:1]"), ("plan", "[STEP:0]")), tmp_path
    )
    play.run()
    assert (play.state.status, play.state.wait_reason) == ("waiting_human", "user_input")
    (request,) = play.state.requests.values()
    assert play.texts[request.question] == "Which? [STEP:1]"
    play.answer("the blue one")
    play.run()
    first, second = [e for e in play.events if isinstance(e, ev.VisitStarted)]
    assert (second.iteration, second.movement_iteration) == (2, 2)
    assert (first.consecutive, second.consecutive) == (1, 1)
    assert second.cause == "answer"
    assert play.state.history == ()  # no monitors: nothing is kept
    prompt = play.prompts("plan")[1]
    assert "the blue one" in prompt
    assert prompt.index("Which?") < prompt.index("the blue one") < prompt.index("[STEP:0] = clear")
    assert play.state.status == "completed"


def test_the_asking_visit_leaves_the_cycle_history_as_it_was(tmp_path: Path) -> None:
    text = LOOP.replace(
        "      - condition: bad\n        next: ai_fix",
        "      - condition: bad\n        next: ai_fix\n      - condition: ask\n        next: ai_review\n"
        "        requires_user_input: true",
    )
    replies = scripted(
        ROUND[0],
        ROUND[1],
        ("ai_review", "[STEP:1]"),
        ("ai_review", "[STEP:0]"),
        ROUND[1],
        (JUDGE, "loop-judge", "[STEP:1]"),
        ("end", "[STEP:0]"),
    )
    play = Play(write_piece(tmp_path, text), replies, tmp_path).run()
    before = play.state.history
    play.answer("yes")
    assert play.state.history == before == ("ai_review", "ai_fix")
    play.run()
    assert play.path == ["ai_review", "ai_fix", "ai_review", "ai_review", "ai_fix", "end"]


@pytest.mark.parametrize("text", list(TABLE), ids=list(TABLE))
def test_the_seed_says(text: str, tmp_path: Path) -> None:
    TABLE[text](tmp_path)


def test_a_state_that_was_stored_keeps_the_order_of_its_outcomes(tmp_path: Path) -> None:
    play = Play(
        write_piece(tmp_path, PARALLEL), scripted(("sec", "[STEP:0]"), ("arch", "[STEP:0]")), tmp_path
    )
    while len(play.state.open) != 2:  # both lanes are being played
        opened = play.state.met_by_worker[0]
        play.take(
            play.conductor.resolve(play.state, opened.id, play.meet(opened.demand), play.now, play.texts)
        )
    second = play.state.met_by_worker[1]
    play.take(play.conductor.resolve(play.state, second.id, play.meet(second.demand), play.now, play.texts))
    assert play.state.visit is not None
    stored = msgspec.json.decode(msgspec.json.encode(play.state), type=RunState)
    assert stored.visit is not None
    assert list(stored.visit.outcomes) == list(play.state.visit.outcomes)
    Conductor(play.piece).check(stored, play.texts)  # another process can go on from it
