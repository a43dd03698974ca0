"""Quality gates: words for the prompt, and commands that must succeed.

::

    quality_gates:
      - All tests pass
      - {type: command, name: tests, command: make test, cwd: app, timeout_ms: 60000}

Source of behaviour: TAKT's schema; commands come from its later versions. They are read here and run only
where the configuration allows it (:mod:`cadenza.config`).
"""

from __future__ import annotations

from pathlib import PurePosixPath

from cadenza.piece.dialects.fields import Fields, mapping_of, text_of
from cadenza.piece.dialects.grammar import Grammar
from cadenza.piece.model import CommandGate
from cadenza.piece.source import Node


def read_gates(fields: Fields, grammar: Grammar) -> tuple[tuple[str, ...], tuple[CommandGate, ...]]:
    """The words, and the commands, that must hold before a movement is over."""
    words: list[str] = []
    commands: list[CommandGate] = []
    for node in fields.items("quality_gates"):
        if isinstance(node.value, dict):
            if gate := _command(node, fields, grammar):
                commands.append(gate)
        elif (text := text_of(node, fields.problems, "an item of quality_gates")) is not None:
            words.append(text)
    return tuple(words), tuple(commands)


def _command(node: Node, fields: Fields, grammar: Grammar) -> CommandGate | None:
    gate = mapping_of(node, fields.problems, "a quality gate")
    if gate is None:
        return None
    gate.check_keys(grammar.gate, strict=grammar.strict)
    if gate.get("type") is None:
        gate.problems.error(node, "a quality gate that is no text has no type", None, "add type: command")
    gate.choice("type", ("command",))
    command = gate.required_text("command")
    default = CommandGate(command=command)
    return CommandGate(
        command=command,
        name=gate.text("name"),
        cwd=_folder(gate),
        timeout=gate.seconds("timeout_ms", default=default.timeout),
    )


def _folder(gate: Fields) -> str | None:
    folder = gate.text("cwd")
    if folder and (PurePosixPath(folder).is_absolute() or ".." in PurePosixPath(folder).parts):
        what = "a quality gate runs inside the working directory"
        gate.problems.error(gate.at("cwd"), what, folder, "write a folder below it, such as app")
        return None
    return folder


__all__ = ["read_gates"]
