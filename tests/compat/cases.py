"""Pieces and scenarios of our own for the comparison with the real TAKT."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

Entry = dict[str, Any]


class Case(NamedTuple):
    """A piece and what its agents say.

    ``differs`` is the row of ``docs/compatibility.md`` that says why the two engines do not agree, with what
    each does (:attr:`tests.compat.takt.Way.told`).
    """

    name: str
    piece: str
    says: list[Entry]
    differs: str | None = None
    ours: str = ""
    theirs: str = ""

    def write(self, room: Path) -> tuple[Path, Path]:
        """The piece's and the scenario's files, with a persona and a table beside them."""
        (room / "pieces").mkdir(parents=True)
        (room / "agents").mkdir()
        (room / "agents" / "coder.md").write_text("You write programs.\n", encoding="utf-8")
        (room / "pieces" / "rows.csv").write_text("name,age\nann,1\nbob,2\ncyd,3\n", encoding="utf-8")
        (room / "pieces" / "row.md").write_text("Say {col:1:name}.\n", encoding="utf-8")
        piece, scenario = room / "pieces" / f"{self.name}.yaml", room / "scenario.json"
        piece.write_text(self.piece.strip() + "\n", encoding="utf-8")
        scenario.write_text(json.dumps(self.says, ensure_ascii=False), encoding="utf-8")
        return piece, scenario


def say(content: str, persona: str | None = None, **more: Any) -> Entry:
    entry: Entry = {"content": content, **more}
    return entry if persona is None else {"persona": persona, **entry}


def judge(content: str, **more: Any) -> Entry:
    return say(content, "conductor", **more)


def step(number: int) -> Entry:
    return judge("-", structured_output={"step": number, "reason": "so"})


TWO_RULES = """
name: two-rules
max_movements: 4
movements:
  - name: plan
    persona: coder
    instruction: "plan {task}"
    rules:
      - {condition: it is planned, next: COMPLETE}
      - {condition: it cannot be, next: ABORT}
"""
AI_RULES = """
name: ai-rules
movements:
  - name: plan
    persona: coder
    instruction: plan
    rules:
      - {condition: 'ai("it is planned")', next: COMPLETE}
      - {condition: 'ai("it cannot be")', next: ABORT}
"""
HIDDEN = """
name: hidden
movements:
  - name: plan
    persona: coder
    instruction: plan
    rules:
      - {condition: it is planned, next: COMPLETE}
      - {condition: it cannot be, next: ABORT}
      - {condition: somebody must say, next: plan, interactive_only: true, requires_user_input: true}
"""
ASKING = """
name: asking
movements:
  - name: plan
    persona: coder
    instruction: plan
    rules:
      - {condition: it is planned, next: COMPLETE}
      - {condition: somebody must say, next: plan, requires_user_input: true}
"""
LOOP = """
name: loop
max_movements: 12
loop_monitors:
  - cycle: [review, fix]
    threshold: 2
    judge:
      persona: referee
      instruction: "cycle {cycle_count}"
      rules:
        - {condition: there is progress, next: review}
        - {condition: there is none, next: ABORT}
movements:
  - name: review
    persona: reviewer
    instruction: review
    rules:
      - {condition: bad, next: fix}
      - {condition: good, next: COMPLETE}
  - name: fix
    persona: coder
    instruction: fix
    rules:
      - {condition: fixed, next: review}
      - {condition: done with, next: COMPLETE}
"""
PARALLEL = """
name: parallel
max_movements: 6
movements:
  - name: review
    parallel:
      - name: a
        persona: reader-a
        instruction: look
        rules: [{condition: approved}, {condition: needs_fix}]
      - name: b
        persona: reader-b
        instruction: look
        rules: [{condition: approved}, {condition: needs_fix}]
    rules:
      - {condition: 'all("approved", "approved", "approved")', next: ABORT}
      - {condition: 'all("approved", "needs_fix")', next: fix}
      - {condition: 'all("approved")', next: COMPLETE}
      - {condition: 'any("approved")', next: fix}
  - name: fix
    persona: coder
    instruction: fix
    rules: [{condition: fixed, next: COMPLETE}]
"""
AGAIN = """
name: again
max_movements: 20
movements:
  - name: work
    instruction: work
    rules:
      - {condition: not yet, next: work}
      - {condition: done, next: COMPLETE}
"""
REPORTING = """
name: reporting
report_formats:
  plan: "# Plan"
movements:
  - name: plan
    instruction: plan
    output_contracts:
      report:
        - {name: plan.md, format: plan}
    rules:
      - {condition: it is planned, next: COMPLETE}
      - {condition: it cannot be, next: ABORT}
"""
TEAM = """
name: team
movements:
  - name: work
    persona: leader
    team_leader:
      max_parts: 2
      part_persona: coder
    instruction: "{task}"
    rules: [{condition: done, next: COMPLETE}]
"""
TIGHT = LOOP.replace("max_movements: 12", "max_movements: 4")
ONE_MORE = LOOP.replace("max_movements: 12", "max_movements: 5")
ONLY_HIDDEN = """
name: only-hidden
movements:
  - name: plan
    persona: coder
    instruction: plan
    rules: [{condition: somebody says so, next: COMPLETE, interactive_only: true}]
"""
JAPANESE = """
name: japanese
movements:
  - name: 計画
    persona: coder
    instruction: "計画: {task}"
    rules:
      - {condition: できた, next: ABORT}
      - {condition: できない, next: COMPLETE}
"""
NO_RULES = """
name: no-rules
movements:
  - name: plan
    persona: coder
    instruction: plan
"""
NO_NEXT = """
name: no-next
movements:
  - name: plan
    persona: coder
    instruction: plan
    rules: [{condition: planned}]
"""
ARPEGGIO = """
name: arpeggio
movements:
  - name: rows
    persona: coder
    arpeggio:
      source: csv
      source_path: ./rows.csv
      batch_size: 1
      concurrency: 2
      template: ./row.md
      max_retries: 0
      retry_delay_ms: 1
    instruction: rows
    rules: [{condition: 'ai("all is said")', next: COMPLETE}]
"""


def down(persona: str) -> Entry:
    return say("down", persona, status="error")


def either(content: str) -> list[Entry]:
    """An evaluation's answer: TAKT's mock knows this judge by no name, ours as the conductor."""
    return [judge(content), say(content, "default")]


def plan(*ids: str) -> Entry:
    """A team leader's plan, or its answer to whether there is more to do."""
    parts = [{"id": id, "title": id, "instruction": f"do {id}"} for id in ids]
    return say("-", "leader", structured_output={"done": not ids, "reasoning": "so", "parts": parts})


DONE = plan()
ROUND = [say("bad", "reviewer"), step(1), say("fixed", "coder"), step(1)]

CASES = [
    Case("structured-answer", TWO_RULES, [say("-"), step(2)]),
    Case("last-tag-wins", TWO_RULES, [say("-"), step(9), judge("[PLAN:1] no, [PLAN:2]")]),
    Case("tag-in-lower-case", TWO_RULES, [say("-"), judge("?"), judge("[plan:1]")]),
    Case("tag-of-zero", TWO_RULES, [say("-"), judge("?"), judge("[PLAN:0]"), judge("?")]),
    Case("tag-of-a-japanese-name", JAPANESE, [say("-"), judge("?"), judge("[計画:2]")]),
    Case("evaluation", TWO_RULES, [say("-"), judge("?"), judge("?"), *either("[JUDGE:2]")]),
    Case("the-works-own-tag", TWO_RULES, [say("[PLAN:2]"), judge("?"), judge("?"), judge("?")]),
    Case("failing-judge", TWO_RULES, [say("[PLAN:1]"), *[judge("down", status="error")] * 4]),
    Case("ai-rule-by-tag", AI_RULES, [say("[PLAN:2]")]),
    Case("ai-rule-by-judge", AI_RULES, [say("-"), *either("[JUDGE:2]")]),
    Case("ai-rules-unmatched", AI_RULES, [say("-")]),
    Case("no-rules", NO_RULES, [say("-")]),
    Case("hidden-rule", HIDDEN, [say("-"), step(3), judge("[PLAN:3]"), *either("[JUDGE:1]")]),
    Case("error", TWO_RULES, [say("it broke", status="error")]),
    Case("again-and-again", AGAIN, [x for n in range(12) for x in (say("-"), step(1 if n < 11 else 2))]),
    Case("named-before-unnamed", LOOP, [say("unnamed"), say("named", "reviewer"), step(2)]),
    Case("no-matching-entry", AGAIN, [say("-", "somebody else"), step(2)]),
    Case("loop-abort", LOOP, [*ROUND, *ROUND, say("-", "referee"), step(2)]),
    Case(
        "loop-goes-on",
        LOOP,
        [*ROUND, *ROUND, say("-", "referee"), step(1), say("good", "reviewer"), step(2)],
    ),
    Case("loop-limit-after-the-judge", ONE_MORE, [*ROUND, *ROUND, say("-", "referee"), step(1)]),
    Case("lanes-agree", PARALLEL, [say("-", "reader-a"), say("-", "reader-b"), step(1), step(1)]),
    Case("all-lanes-fail", PARALLEL, [down("reader-a"), down("reader-b")]),
    Case("report", REPORTING, [say("-"), say("# Plan\nall"), step(1)]),
    Case("report-empty-once", REPORTING, [say("-"), say(" "), say("# Plan\nall"), step(1)]),
    Case("team", TEAM, [plan("1", "2"), DONE, *[say("did", "coder")] * 2]),
    Case("team-refilled", TEAM, [plan("1", "2"), plan("3"), DONE, *[say("did", "coder")] * 3]),
    Case("team-part-fails", TEAM, [plan("1", "2"), DONE, say("did", "coder"), down("coder")]),
    Case("team-all-parts-fail", TEAM, [plan("1", "2"), DONE, *[down("coder")] * 2]),
    Case("team-id-twice", TEAM, [plan("1", "1"), plan("1", "1")]),
    Case("arpeggio", ARPEGGIO, [say("ann", "coder"), say("bob", "coder"), say("cyd [ROWS:1]", "coder")]),
    Case("arpeggio-batch-fails", ARPEGGIO, [say("ann", "coder"), down("coder"), say("cyd", "coder")]),
    # Where the two differ.
    Case(
        "asking",
        ASKING,
        [say("-"), step(2)],
        "person-asked",
        "plan:- > waiting_human",
        "plan:1 > aborted",
    ),
    Case(
        "blocked",
        TWO_RULES,
        [say("質問: which?", status="blocked")],
        "person-asked",
        "plan:- > waiting_human",
        "plan:- > aborted",
    ),
    Case(
        "report-blocked",
        REPORTING,
        [say("-"), say("質問: which?", status="blocked"), step(1)],
        "person-asked",
        "plan:- > waiting_human",
        "plan:- > aborted",
    ),
    Case(
        "lane-blocked",
        PARALLEL,
        [say("質問: which?", "reader-a", status="blocked"), say("-", "reader-b"), step(1), step(1)],
        "lane-status",
        "review:- > waiting_human",
        "review:2 > completed",
    ),
    Case(
        "lane-fails",
        PARALLEL,
        [down("reader-a"), say("-", "reader-b"), step(1), step(1), say("-", "coder")],
        "lane-status",
        "review:3 fix:0 > completed",
        "review:2 > completed",
    ),
    Case(
        "blank",
        TWO_RULES,
        [say("", "coder"), say("all is planned", "coder"), step(1)],
        "blank-answer",
        "plan:0 > completed",
        "plan:- > aborted",
    ),
    Case(
        "report-empty-twice",
        REPORTING,
        [say("-"), say(" "), say(""), step(1)],
        "report-missing",
        "plan:0 > completed",
        "plan:- > aborted",
    ),
    Case(
        "only-rule-hidden",
        ONLY_HIDDEN,
        [say("-")],
        "only-rule-hidden",
        "plan:- > aborted",
        "plan:0 > completed",
    ),
    Case(
        "rule-without-next",
        NO_NEXT,
        [say("-")],
        "found-before-the-run",
        " > refused",
        "plan:0 > aborted",
    ),
    Case(
        "loop-left",
        LOOP,
        [*ROUND, *ROUND[:3], step(2), say("-", "referee"), step(2)],
        "loop-left",
        "review:0 fix:0 review:0 fix:1 > completed",
        "review:0 fix:0 review:0 fix:- _loop_judge_review_fix:1 > aborted",
    ),
    Case(
        "loop-judge-fails",
        LOOP,
        [*ROUND, *ROUND, down("referee"), say("good", "reviewer"), step(2)],
        "loop-judge-fails",
        "review:0 fix:0 review:0 fix:0 _loop_judge_review_fix:- review:1 > completed",
        "review:0 fix:0 review:0 fix:0 _loop_judge_review_fix:- > aborted",
    ),
    Case(
        "loop-at-the-limit",
        TIGHT,
        [*ROUND, *ROUND, say("-", "referee"), step(2)],
        "loop-at-the-limit",
        "review:0 fix:0 review:0 fix:0 > aborted",
        "review:0 fix:0 review:0 fix:- _loop_judge_review_fix:1 > aborted",
    ),
    Case(
        "team-plan-mended",
        TEAM,
        [plan("1", "1"), plan("1", "2"), DONE, *[say("did", "coder")] * 2],
        "plan-sent-back",
        "work:0 > completed",
        "work:- > aborted",
    ),
]
