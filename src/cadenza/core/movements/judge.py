"""The loop monitor's judge: an agent with the monitor's persona, instruction and rules."""

from __future__ import annotations

from cadenza.core.movements.playing import play
from cadenza.core.movements.ruling import Matched, match_rules
from cadenza.core.performance import Performance
from cadenza.core.prompts.judging import monitor_instruction
from cadenza.core.visit import Visit
from cadenza.ids import Hash
from cadenza.piece.model import LoopMonitor, Movement


def perform_judge(visit: Visit, monitor: LoopMonitor, count: int, output: Hash) -> Performance[Matched]:
    """Which of the judge's rules holds; none when the judge fails. It is one iteration of its own."""
    judge = visit.branch(judge_movement(visit, monitor), iteration=visit.iteration + 1)
    judge.previous = output
    played = yield from play(judge, cycle_count=count)
    if played.output is None:
        return Matched(None)
    return (yield from match_rules(judge, judge.movement, played.output))


def judge_movement(visit: Visit, monitor: LoopMonitor) -> Movement:
    """The judge as a movement: ``_loop_judge_<a>_<b>``."""
    judge = monitor.judge
    instruction = judge.instruction
    if instruction is None:
        labels = tuple(rule.condition for rule in judge.rules)
        instruction = visit.put(monitor_instruction(monitor.cycle, labels, visit.language))
    return Movement(
        name=monitor.name,
        persona=judge.persona,
        persona_name=judge.persona.name if judge.persona else "loop-judge",
        instruction=instruction,
        rules=judge.rules,
        provider=judge.provider,
        model=judge.model,
        edit=False,
        session="refresh",
    )
