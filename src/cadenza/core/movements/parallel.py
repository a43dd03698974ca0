"""The parallel movement: several agents at once, then the parent's aggregate rules."""

from __future__ import annotations

from cadenza.core.aggregates import holds
from cadenza.core.movements.gating import pass_gates, run_gates
from cadenza.core.movements.monitoring import watch_loops
from cadenza.core.movements.playing import Played, play
from cadenza.core.movements.ruling import Matched, ask_judge, conclude, match_rules
from cadenza.core.movements.three.parallel import perform_parallel_three
from cadenza.core.movements.tools.parallel import perform_parallel_tools
from cadenza.core.performance import Lanes, Performance, guarded
from cadenza.core.signals import LaneResult, Signal
from cadenza.core.visit import Visit
from cadenza.ids import Hash


def perform_parallel(visit: Visit) -> Performance[Signal]:
    """All lanes at once; loop monitors; each lane's own rules; then the parent's (TAKT engine, parallel
    movement). A lane that fails has no label; when all fail, so does the movement."""
    if visit.piece.control == "tools":
        return (yield from perform_parallel_tools(visit))
    if visit.piece.phases == "three":
        return (yield from perform_parallel_three(visit))
    branches = [visit.branch(lane) for lane in visit.movement.lanes]
    played: list[Played] = yield Lanes({b.movement.name: guarded(_work(b), _broken) for b in branches})
    if all(p.output is None for p in played):
        errors = "; ".join(f"{b.movement.name}: {p.error}" for b, p in zip(branches, played, strict=True))
        message = f"all parallel sub-movements failed: {errors}"
        return Signal(kind="failed", code="movement_failed", message=message)
    output = visit.put(joined(visit, branches, played))
    stopped = yield from pass_gates(visit, output)
    if stopped is not None:
        return stopped
    judgement = yield from watch_loops(visit, output)
    if judgement.signal is not None:
        return judgement.signal
    found: list[Matched] = yield Lanes(
        {b.movement.name: guarded(_label(b, p), _unlabelled) for b, p in zip(branches, played, strict=True)}
    )
    lanes = tuple(_result(b, p, m) for b, p, m in zip(branches, played, found, strict=True))
    matched = yield from _parent_rules(visit, lanes, output)
    return (yield from conclude(visit, matched, output, judged=judgement.judged, lanes=lanes))


def _broken(words: str) -> Played:
    return Played(code="movement_broken", error=words)


def _work(branch: Visit) -> Performance[Played]:
    """A lane's turn; one that does not pass its own command gates has failed."""
    played = yield from play(branch)
    refused = None if played.output is None else (yield from run_gates(branch))
    return played if refused is None else Played(code="gate", error=refused[1])


def joined(visit: Visit, branches: list[Visit], played: list[Played]) -> str:
    """The outputs as one text, in the order of the piece (the seed leaves the form open)."""
    parts = [
        f"## {b.movement.name}\n{visit.text(p.output) if p.output else f'[ERROR] {p.error}'}"
        for b, p in zip(branches, played, strict=True)
    ]
    return "\n\n---\n\n".join(parts)


def _label(branch: Visit, played: Played) -> Performance[Matched]:
    if played.output is None:
        return Matched(None)
    return (yield from match_rules(branch, branch.movement, played.output))


def _unlabelled(words: str) -> Matched:
    return Matched(None, f"broken: {words}")


def _result(branch: Visit, played: Played, matched: Matched) -> LaneResult:
    rules = branch.movement.rules
    return LaneResult(
        name=branch.movement.name,
        label=None if matched.rule is None else rules[matched.rule].parsed.text,
        method=matched.method,
        output=played.output,
        error=played.error,
    )


def _parent_rules(visit: Visit, lanes: tuple[LaneResult, ...], output: Hash) -> Performance[Matched]:
    """Aggregates from the top; then the judge over the plain rules. The joined text has no tag of its own."""
    labels = [lane.label for lane in lanes]
    for index, rule in enumerate(visit.movement.rules):
        if holds(rule.parsed, labels):
            return Matched(index, "aggregate")
    plain = {i: r for i, r in enumerate(visit.movement.rules) if r.parsed.kind in ("label", "ai")}
    return (yield from ask_judge(visit, plain, output))
