"""Who performs each movement of a piece, with which permission: the configuration, applied.

**Provider**: the first that is said, in this order: the command line, ``persona_providers`` under the
performer's name, the movement (or its piece), the environment, the project, the user. TAKT's files name
agents that TAKT has; one that is not known here is passed over. **Model**: the same order, but a model
that was named beside a provider counts only where that provider was chosen.

Source of behaviour: TAKT's command-line engine, provider resolution and permission profiles.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from functools import cache

from cadenza.config.layers import Choice, Configuration
from cadenza.errors import ConfigError, UsageError
from cadenza.piece.model import Judge, LoopMonitor, Movement, Piece

JUDGE = "loop-judge"
"""The name of a loop monitor's judge without a persona."""


def apply(
    piece: Piece,
    config: Configuration,
    cli_provider: str | None = None,
    cli_model: str | None = None,
    *,
    any_provider: bool = False,
) -> Piece:
    """The piece as it will be played: provider, model and permission of every movement, lane and judge are
    resolved, and the quality gates of the configuration are added.

    ``any_provider``: whoever plays it answers to every provider's name.

    Raises:
        UsageError: a movement names providers that are not known, and nothing else does; or the piece has
            commands as quality gates and the configuration does not allow them.
        ConfigError: our own configuration names a provider that is not known.
    """
    _check_command_gates(piece, config)
    cast = _Cast(piece, config, Choice(cli_provider, cli_model), any_provider)
    movements = tuple(cast.movement(movement) for movement in piece.movements)
    monitors = tuple(cast.monitor(monitor) for monitor in piece.loop_monitors)
    if cast.without:
        raise UsageError(
            "no provider is known for " + "; ".join(cast.without),
            hint="give --provider NAME, or say provider: in .cadenza/config.yaml or for the persona under "
            f"persona_providers:; known are {', '.join(_known())}",
        )
    return piece.changed(movements=movements, loop_monitors=monitors)


def choose(
    choices: Sequence[Choice], *, given: bool = False, any_provider: bool = False
) -> tuple[str | None, str | None]:
    """The provider and the model that ``choices`` come to, the strongest first.

    ``given``: the first one was said for this run and needs no looking up; with ``any_provider`` none does.

    Raises:
        ConfigError: a choice that is not lenient names a provider that is not known.
    """
    provider = None
    for at, choice in enumerate(choices):
        if choice.provider and (any_provider or (given and at == 0) or _is_known(choice)):
            provider = choice.provider
            break
    model = next((model for choice in choices if (model := choice.model_for(provider))), None)
    return provider, model


class _Cast:
    """Finds the performers of one piece; ``without`` says for which movements there is none."""

    def __init__(self, piece: Piece, config: Configuration, cli: Choice, any_provider: bool) -> None:
        self.piece = piece
        self.config = config
        self.cli = cli
        self.any_provider = any_provider
        self.without: list[str] = []

    def movement(self, movement: Movement) -> Movement:
        """A movement with its lanes."""
        names = [movement.persona_name, movement.persona.name if movement.persona else movement.name]
        provider, model = self._performer(movement.name, movement, names)
        required = movement.required_permission_mode
        added = self.config.gates(movement.name, edit=movement.edit is True)
        return movement.changed(
            provider=provider,
            model=model,
            permission=self.config.permission(provider, movement.name, required),
            quality_gates=tuple(dict.fromkeys((*added, *movement.quality_gates))),
            lanes=tuple(self.movement(lane) for lane in movement.lanes),
        )

    def monitor(self, monitor: LoopMonitor) -> LoopMonitor:
        """A loop monitor with its judge."""
        judge = monitor.judge
        names = [judge.persona.name if judge.persona else None, JUDGE]
        provider, model = self._performer(monitor.name, judge, names)
        return monitor.changed(judge=judge.changed(provider=provider, model=model))

    def _performer(
        self, name: str, part: Movement | Judge, names: Sequence[str | None]
    ) -> tuple[str | None, str | None]:
        place = f"{self.piece.name}, movement {name}"
        own = Choice(part.provider, part.model, place, lenient=self.piece.dialect == "takt")
        persona = self.config.persona(name for name in names if name) or Choice()
        choices = (self.cli, persona, own, *self.config.choices)
        provider, model = choose(choices, given=True, any_provider=self.any_provider)
        named = list(dict.fromkeys(choice.provider for choice in choices if choice.provider))
        if provider is None and named:
            self.without.append(f"movement {name}, which names {' and '.join(named)}")
        return provider, model


def _check_command_gates(piece: Piece, config: Configuration) -> None:
    commands = list(_commands(piece))
    if commands and not config.command_gates:
        raise UsageError(
            f"{piece.name} runs commands as quality gates, and nothing allows it: {'; '.join(commands)}",
            hint="read the commands; to allow such, write workflow_command_gates: {custom_scripts: true} "
            "into .cadenza/config.yaml",
        )


def _commands(piece: Piece) -> Iterator[str]:
    for top in piece.movements:
        for movement in (top, *top.lanes):
            for gate in movement.command_gates:
                yield f"{movement.name}: {gate.command}"


def _is_known(choice: Choice) -> bool:
    name = choice.provider or ""
    if name.partition(":")[0] in _known():
        return True
    if choice.lenient:
        return False
    near = get_close_matches(name, _known(), n=1)
    fix = f"did you mean {near[0]}?" if near else f"known are {', '.join(_known())}"
    raise ConfigError(f"{choice.place}: there is no provider of this name ({name})", hint=fix)


@cache
def _known() -> tuple[str, ...]:
    from cadenza.providers.registry import provider_names

    return tuple(provider_names())


__all__ = ["apply", "choose"]
