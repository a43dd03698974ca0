"""The arpeggio: one prompt over the rows of a table, batch by batch."""

from __future__ import annotations

from typing import Any

from cadenza.core.batches import BatchError, batch_failures, batch_prompts, merge, read_csv
from cadenza.core.demands import CallModel, Message, WaitUntil
from cadenza.core.movements.playing import Played, failure, prepare
from cadenza.core.movements.three.finishing import finish
from cadenza.core.movements.three.turn import system_text
from cadenza.core.outcomes import AnyOutcome, Replied, Returned
from cadenza.core.performance import NextOf, Performance
from cadenza.core.signals import Signal
from cadenza.core.visit import Visit
from cadenza.piece.model import Arpeggio


def perform_arpeggio(visit: Visit) -> Performance[Signal]:
    """Every batch is one call, at most ``concurrency`` at once, each tried ``max_retries`` + 1 times; the
    outputs are merged in the order of the table (TAKT's command-line engine, arpeggio)."""
    score = visit.movement.arpeggio
    assert score is not None
    yield from prepare(visit)
    read: Any = yield visit.host("table", "read_file", path=score.source)
    assert isinstance(read, Returned)
    try:
        table = read_csv(visit.text(read.value["text"]))
        prompts = batch_prompts(visit.text(score.template), table, score.batch_size)
    except BatchError as error:
        message = f"{score.source}: {error}"
        return Signal(kind="failed", code="movement_failed", message=message)
    results = yield from _play_batches(visit, score, prompts)
    failed = batch_failures({i: r.error or "" for i, r in results.items() if r.output is None})
    if failed is not None:
        return Signal(kind="failed", code="movement_failed", message=failed)
    texts = {i: visit.text(r.output) for i, r in results.items() if r.output is not None}
    output = visit.put(merge(texts, score.separator))
    if score.output is not None:
        yield visit.host("output", "write_file", path=score.output, text=output)
    return (yield from finish(visit, output))


def _play_batches(visit: Visit, score: Arpeggio, prompts: tuple[str, ...]) -> Performance[dict[int, Played]]:
    waiting = list(enumerate(prompts))
    playing: dict[str, Performance[Played]] = {}
    results: dict[int, Played] = {}
    while waiting or playing:
        while waiting and len(playing) < score.concurrency:
            index, prompt = waiting.pop(0)
            playing[f"batch-{index}"] = _batch(visit, score, index, prompt)
        name, played = yield NextOf(dict(playing))
        del playing[name]
        results[int(name.removeprefix("batch-"))] = played
    return results


def _batch(visit: Visit, score: Arpeggio, index: int, prompt: str) -> Performance[Played]:
    """One batch, tried until it succeeds or its tries are used up."""
    played = Played(error="never tried")
    for tried in range(1, score.max_retries + 2):
        if tried > 1:
            yield visit.need(f"wait:{tried}", WaitUntil(seconds=score.retry_delay))
        outcome: AnyOutcome = yield visit.need(f"try:{tried}", _call(visit, f"{index}:{tried}", prompt))
        if isinstance(outcome, Replied) and not outcome.blocked:
            return Played(output=outcome.text)
        if isinstance(outcome, Replied):
            played = Played(error=f"blocked: {visit.text(outcome.text)}")
        else:
            played = failure(outcome)
    return played


def _call(visit: Visit, key: str, prompt: str) -> CallModel:
    movement = visit.movement
    return CallModel(
        conversation=visit.conversation(f"batch:{key}"),
        append=(
            Message("system", visit.put(system_text(visit))),
            Message("user", visit.put(prompt)),
        ),
        movement=movement.name,
        persona=movement.performer,
        provider=visit.provider,
        model=visit.model,
    )
