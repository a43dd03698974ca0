"""The scenarios of the crash matrix, as text: any process can make them again."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from cadenza.piece.find import load_piece
from cadenza.piece.model import LoadedPiece, Piece
from cadenza.testing import Answer, Scenario, Script, with_probes
from tests.crash.agents import agents

PLAN_REPORT = "Here is the plan.\n\n```markdown\n# Plan\n\n1. Do it.\n```\n\n[STEP:0]"


def piece_of(text: str, *probes: str, beside: Mapping[str, str] | None = None) -> LoadedPiece:
    """A piece from the text of its file; ``probes`` are movements that only write, ``beside`` are files
    that the piece names."""
    with tempfile.TemporaryDirectory() as folder:
        for name, content in {"piece.yaml": text, **(beside or {})}.items():
            (Path(folder) / name).write_text(content, encoding="utf-8")
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
control: tags
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
control: tags
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


TEAM = """
name: team
phases: three
max_movements: 5
initial_movement: split
movements:
  - name: split
    persona: lead
    instruction_template: "Split {task}"
    team_leader: {max_parts: 2, refill_threshold: 1, part_persona: worker}
    output_contracts: {report: [{name: team.md, format: "# What was done"}]}
    rules: [{condition: done, next: ship}]
  - name: ship
    instruction_template: Ship it.
    rules: [{condition: shipped, next: COMPLETE}, {condition: unsure, next: ABORT}]
"""


def parts(*ids: str) -> list[dict[str, Any]]:
    """Parts of a team leader's plan."""
    return [{"id": id, "title": f"Part {id}", "instruction": f"Do {id}.", "timeout_ms": None} for id in ids]


def team() -> Scenario:
    """A plan that is sent back, parts that end, one that fails, two refills, a report; then a write."""
    refused = {"error": {"status": 401, "times": "forever"}, "text": "never"}
    script = Script.from_entries(
        [
            {"movement": "split", "purpose": "perform", "text": "I would rather not."},
            {"movement": "split", "purpose": "perform", "json": {"parts": parts("a", "b")}},
            {"movement": "split", "purpose": "perform", "json": {"done": False, "parts": parts("c")}},
            {"movement": "split", "purpose": "perform", "json": {"done": True, "parts": []}},
            {"movement": "split", "purpose": "report", "text": "# What was done\n\nEverything but b."},
            {"movement": "split.a", "text": "A is done.", "error": {"status": 503}},
            {"movement": "split.b", **refused},
            {"movement": "split.c", "text": "C is done."},
        ]
    )
    return Scenario(name="team", piece=piece_of(TEAM, "ship"), script=script)


ARPEGGIO = """
name: arpeggio
max_movements: 3
movements:
  - name: rows
    persona: clerk
    instruction_template: Go through the table.
    arpeggio:
      source: csv
      source_path: rows.csv
      template: prompt.md
      concurrency: 2
      max_retries: 2
      retry_delay_ms: 500
      output_path: merged.txt
    rules: [{condition: done, next: COMPLETE}, {condition: failed, next: ABORT}]
"""
ROWS = "name,age\nann,30\nbob,31\ncid,32\ndan,33\n"


def arpeggio() -> Scenario:
    """Four batches, two at once: one is tried three times, with waits, one has a failure that is retried."""
    beside = {"prompt.md": "{batch_index} of {total_batches}: {col:1:name}"}
    loaded = piece_of(ARPEGGIO, beside=beside)
    movement = loaded.piece.movements[0].model_dump()
    movement["arpeggio"] |= {"source": "rows.csv", "output": "merged.txt"}
    refused = {"error": {"status": 400, "times": "forever"}, "text": "never"}
    script = Script.from_entries(
        [
            {"movement": "rows", "text": "First."},
            {"movement": "rows", **refused, "times": 2},
            {"movement": "rows", "text": "Second.", "error": {"status": 429, "retry_after": 0.3}},
            {"movement": "rows", "text": "Good. [STEP:0]", "times": "forever"},
        ]
    )
    piece = altered(loaded, movements=[movement])
    return Scenario(name="arpeggio", piece=piece, script=script, files={"rows.csv": ROWS})


THREE = """
name: three
phases: three
max_movements: 9
initial_movement: plan
movements:
  - name: plan
    persona: planner
    instruction_template: "Plan {task}"
    output_contracts: {report: [{name: plan.md, format: "# Plan"}]}
    rules: [{condition: planned, next: review}]
  - name: review
    parallel:
      - name: holes
        persona: reviewer
        instruction_template: Look for holes.
        output_contracts: {report: [{name: holes.md, format: "# Holes"}]}
        rules: [{condition: ok}, {condition: bad}]
      - name: style
        persona: reviewer
        instruction_template: Look at the style.
        rules: [{condition: ok}, {condition: bad}]
    rules: [{condition: all("ok"), next: COMPLETE}, {condition: any("bad"), next: fix}]
  - name: fix
    persona: planner
    instruction_template: Mend it.
    rules: [{condition: mended, next: review}, {condition: lost, next: ABORT}]
loop_monitors:
  - cycle: [review, fix]
    threshold: 1
    judge:
      persona: judge
      instruction_template: "Round {cycle_count}: is it going anywhere?"
      rules: [{condition: it is, next: review}, {condition: it is not, next: ABORT}]
"""


def three() -> Scenario:
    """Phases three: an agent and a lane that are blocked, reports (one asked for twice), statuses by
    structured output, by tag and by evaluation, and a loop judge."""
    script = Script.from_entries(
        [
            {"movement": "plan", "text": "Which database?", "status": "blocked"},
            {"movement": "plan", "text": "Planned."},
            {"movement": "plan", "purpose": "report", "text": " "},
            {"movement": "plan", "purpose": "report", "text": "# Plan\n\n1. Do it."},
            {"movement": "holes", "text": "None.", "times": "forever"},
            {"movement": "holes", "purpose": "report", "text": "# Holes\n\nNone.", "times": "forever"},
            {"movement": "holes", "purpose": "rules", "text": "hm"},
            {"movement": "holes", "purpose": "rules", "text": "[HOLES:1]"},
            {"movement": "holes", "purpose": "rules", "json": {"step": 1}},
            {"movement": "style", "text": "Which style?", "status": "blocked"},
            {"movement": "style", "text": "Looked at.", "times": "forever"},
            {"movement": "style", "purpose": "rules", "json": {"step": 2}},
            {"movement": "style", "purpose": "rules", "json": {"step": 1}},
            {"movement": "fix", "text": "Mended. [FIX:1]", "error": {"status": 503}},
            {"movement": "fix", "purpose": "rules", "text": "hm", "times": "forever"},
            {"purpose": "loop-judge", "text": "It moves."},
            {"purpose": "rules", "json": {"step": 1}},
        ]
    )
    answers = (Answer(value="SQLite"), Answer(value="Plain"))
    return Scenario(name="three", piece=piece_of(THREE), script=script, inputs=answers)


SCENARIOS: dict[str, Callable[[], Scenario]] = {
    "linear": linear,
    "full": full,
    "nomatch": no_match,
    "retries": retries,
    "team": team,
    "arpeggio": arpeggio,
    "three": three,
    "agents": agents,
}

FORTY = "\n".join(
    [
        "cadenza: 1",
        "control: tags",
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
