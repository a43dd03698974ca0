"""The scenarios of the crash matrix, as text: any process can make them again."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cadenza.piece.find import load_piece
from cadenza.piece.model import LoadedPiece, Piece
from cadenza.testing import Answer, Scenario, Script, with_probes

PLAN_REPORT = "Here is the plan.\n\n```markdown\n# Plan\n\n1. Do it.\n```\n\n[STEP:0]"


def piece_of(text: str, *probes: str) -> LoadedPiece:
    """A piece from the text of its file; ``probes`` are movements that only write."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "piece.yaml").write_text(text, encoding="utf-8")
        return with_probes(load_piece("./piece.yaml", cwd=folder), probes)


def altered(loaded: LoadedPiece, **changes: Any) -> LoadedPiece:
    """The piece with other values in some of its fields."""
    piece = Piece.model_validate({**loaded.piece.model_dump(), **changes})
    return loaded.model_copy(update={"piece": piece})


LINEAR = """
name: linear
max_movements: 5
initial_movement: plan
movements:
  - name: plan
    instruction_template: "Plan {task}"
    pass_previous_response: false
    rules: [{condition: ready, next: build}]
  - name: build
    instruction_template: Build it.
    rules: [{condition: done, next: COMPLETE}, {condition: failed, next: ABORT}]
"""


def linear() -> Scenario:
    """Two movements of a TAKT piece; the second has no tag, so a judge decides."""
    script = Script.from_entries(
        [
            {"movement": "plan", "text": "A plan. [STEP:0]"},
            {"movement": "build", "purpose": "rules", "json": {"rule": 0, "reason": "it is"}},
            {"movement": "build", "text": "It is built."},
        ]
    )
    return Scenario(name="linear", piece=piece_of(LINEAR), script=script)


FULL = """
cadenza: 1
name: full
max_movements: 20
initial_movement: plan
facets:
  personas: {planner: You plan., coder: You write code., reviewer: You review.}
  policies: {short: Be brief.}
  output-contracts: {plan: "# Plan"}
movements:
  - name: plan
    persona: planner
    policy: short
    instruction: Plan the task.
    report: {name: plan.md, format: plan}
    rules:
      - {condition: ready, next: build}
      - {condition: unclear, next: plan, requires_user_input: true}
  - name: build
    persona: coder
    instruction: "Build what {report:plan.md} says."
    rules: [{condition: built, next: review}]
  - name: review
    parallel:
      - name: security
        persona: reviewer
        instruction: Look for holes.
        report: {name: security.md}
        rules: [{condition: ok}, {condition: bad}]
      - name: style
        persona: reviewer
        instruction: Look at the style.
        rules: [{condition: ok}, {condition: bad}]
    rules: [{condition: all("ok"), next: deploy}, {condition: any("bad"), next: build}]
  - name: deploy
    instruction: Deploy it.
    rules: [{condition: deployed, next: check}, {condition: unsure, next: check}]
  - name: check
    instruction: Look whether it runs.
    rules: [{condition: runs, next: COMPLETE}]
loop_monitors:
  - cycle: [build, review]
    threshold: 2
    judge:
      persona: reviewer
      instruction: "It came {cycle_count} times. Is it going anywhere?"
      rules: [{condition: it is, next: build}, {condition: it is not, next: ABORT}]
"""


def full() -> Scenario:
    """Lanes, a loop monitor, reports, a question, a write, and calls that are tried again."""
    busy = {"status": 429, "retry_after": 0.2, "times": 2}
    script = Script.from_entries(
        [
            {"movement": "plan", "text": "Which database? [STEP:1]"},
            {"movement": "plan", "text": PLAN_REPORT, "error": {"status": 503}},
            {"movement": "build", "text": "Built. [STEP:0]", "error": busy},
            {"movement": "build", "text": "Built again. [STEP:0]", "times": "forever"},
            {"movement": "security", "purpose": "rules", "json": {"rule": 0, "reason": "fine"}},
            {"movement": "security", "text": "```markdown\n# Holes\n```\n[STEP:1]"},
            {"movement": "security", "text": "All well. [STEP:0]"},
            {"movement": "security", "text": "No tag here."},
            {"movement": "style", "text": "Good. [STEP:0]"},
            {"movement": "style", "text": "Ugly. [STEP:1]"},
            {"movement": "style", "text": "Good now. [STEP:0]"},
            {"purpose": "loop-judge", "text": "It moves. [STEP:0]"},
            {"movement": "check", "text": "It runs. [STEP:0]"},
        ]
    )
    answer = Answer(value="SQLite")
    return Scenario(name="full", piece=piece_of(FULL, "deploy"), script=script, inputs=(answer,))


NO_MATCH = """
cadenza: 1
name: nomatch
initial_movement: only
movements:
  - name: only
    instruction: Do it.
    rules: [{condition: done, next: COMPLETE}, {condition: failed, next: ABORT}]
"""


def no_match() -> Scenario:
    """No tag, and a judge that names no rule."""
    script = Script.from_entries(
        [
            {"purpose": "rules", "json": {"rule": None, "reason": "neither"}},
            {"movement": "only", "text": "Well, well."},
        ]
    )
    return Scenario(name="nomatch", piece=piece_of(NO_MATCH), script=script)


def retries() -> Scenario:
    """A call that is tried three times, one that fails for good, and a run that ends by it."""
    script = Script.from_entries(
        [
            {"movement": "plan", "text": "A plan. [STEP:0]", "error": {"status": 429, "times": 3}},
            {"movement": "build", "error": {"status": 401, "times": "forever"}, "text": "never"},
        ]
    )
    return Scenario(name="retries", piece=piece_of(LINEAR), script=script)


SCENARIOS: dict[str, Callable[[], Scenario]] = {
    "linear": linear,
    "full": full,
    "nomatch": no_match,
    "retries": retries,
}

FORTY = "\n".join(
    [
        "cadenza: 1",
        "name: forty",
        "max_movements: 60",
        "initial_movement: m01",
        "movements:",
        *(
            f"  - name: m{n:02}\n    instruction: Part {n}.\n"
            + (f"    report: {{name: {n:02}.md}}\n" if n % 10 == 5 else "")
            + f"    rules: [{{condition: next, next: {'COMPLETE' if n == 40 else f'm{n + 1:02}'}}}]"
            for n in range(1, 41)
        ),
    ]
)
FORTY_PROBES = tuple(f"m{n:02}" for n in range(4, 41, 8))


def forty(delay: float = 0.0) -> Scenario:
    """Forty movements in a row: reports in four, writes in five, a judge for every seventh."""
    entries: list[dict[str, object]] = [{"purpose": "rules", "json": {"rule": 0}, "times": "forever"}]
    for n in range(1, 41):
        tag = "" if n % 7 == 0 else " [STEP:0]"
        entries.append({"movement": f"m{n:02}", "text": f"Part {n} is done.{tag}", "delay": delay})
    piece = piece_of(FORTY, *FORTY_PROBES)
    return Scenario(name="forty", piece=piece, script=Script.from_entries(entries))
