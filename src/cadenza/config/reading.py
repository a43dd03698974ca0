"""One file of the configuration, read into a layer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cadenza.config.layers import PERMISSIONS, TAKTS_PROVIDER, Choice, Layer, Permission, Profile, Scope
from cadenza.core.spending import Price
from cadenza.errors import NotFound, PieceError
from cadenza.piece.dialects.fields import Fields, mapping_of, names_of, text_of
from cadenza.piece.problems import Problems
from cadenza.piece.source import Node, parse, read_text
from cadenza.piece.vocabulary import Dialect

KEYS = {
    "language": "of the engine's own texts: en or ja",
    "provider": "what plays a movement that names none",
    "model": "the model to ask it for",
    "base_url": "where it is reached; in a person's own files only",
    "persona_providers": "provider and model by persona",
    "provider_profiles": "permissions by provider",
    "workflow_command_gates": "whether commands may be quality gates",
    "prices": "what a million tokens cost, by model: input, output, cached",
    "piece_overrides": "quality gates for pieces as they are",
}
"""The keys of our own files, each with a line that says what it is for."""

_PERSONA = ("provider", "type", "model")
_PRICE = ("input", "output", "cached")
_PROFILE = ("default_permission_mode", "movement_permission_overrides")
_PROFILE_NAMES = ("movement_permission_overrides", "step_permission_overrides")
_OVERRIDES = ("quality_gates", "quality_gates_edit_only", "movements")
_OVERRIDES_NAMES = ("piece_overrides", "workflow_overrides")


def read_layer(path: Path, shown: str, scope: Scope, dialect: Dialect) -> tuple[Layer, list[str]]:
    """What a file says, and its mistakes, a line each; problems call the file ``shown``."""
    empty = Layer(scope, shown, dialect)
    try:
        text = read_text(path, shown=shown)
        if not _says_something(text):
            return empty, []
        root = parse(text, file=shown)
    except PieceError as error:
        return empty, list(error.problems)
    except NotFound as error:  # a link that leads nowhere
        return empty, [error.message]
    problems = Problems(shown)
    fields = mapping_of(root, problems, "a configuration")
    layer = _Reader(fields, problems, scope, dialect).layer() if fields else empty
    return layer, [str(problem) for problem in problems.errors]


def _says_something(text: str) -> bool:
    lines = (line.strip() for line in text.splitlines())
    return any(line and not line.startswith("#") and line != "---" for line in lines)


class _Reader:
    """Reads the keys of one file. In TAKT's, keys that mean nothing here are passed over."""

    def __init__(self, fields: Fields, problems: Problems, scope: Scope, dialect: Dialect) -> None:
        self.fields = fields
        self.problems = problems
        self.scope = scope
        self.dialect = dialect

    def layer(self) -> Layer:
        """Everything that the file says."""
        self.fields.what = "a configuration"
        self._check(self.fields, KEYS)
        gates, edit_only, movements = self._overrides()
        return Layer(
            scope=self.scope,
            file=self.problems.file,
            dialect=self.dialect,
            choice=self._choice(self.fields),
            language=self.fields.choice("language", ("en", "ja")),
            base_url=self._base_url(),
            personas=self._personas(),
            profiles=self._profiles(),
            command_gates=self._command_gates(),
            gates=gates,
            gates_edit_only=edit_only,
            movement_gates=movements,
            prices=self._prices(),
        )

    def _check(self, fields: Fields, known: Any) -> None:
        if self.dialect == "native":
            fields.check_keys(dict.fromkeys(known, ""), strict=True)

    def _choice(self, fields: Fields) -> Choice:
        """``provider`` (a name, or a block with ``type``) and ``model``."""
        node, model = fields.get("provider", "type"), fields.text("model")
        provider = None
        if node is not None and isinstance(node.value, dict):
            block = Fields(node, self.problems, "a provider")
            self._check(block, ("type", "model"))
            provider, model = block.required_text("type") or None, model or block.text("model")
        elif node is not None:
            provider = text_of(node, self.problems, "provider")
        takt = self.dialect == "takt"
        at = node or fields.at("model")
        place = f"{self.problems.file}:{at.line}:{at.column}"
        return Choice(provider, model, place, lenient=takt, beside=TAKTS_PROVIDER if takt else None)

    def _base_url(self) -> str | None:
        if self.dialect == "takt" or (url := self.fields.text("base_url")) is None:
            return None
        at, fix = self.fields.at("base_url"), "write http://… or https://…"
        if not url.startswith(("http://", "https://")):
            self.problems.error(at, "base_url must be a web address", url, fix)
        if self.scope == "project":
            fix = "write it into your own configuration: your key is sent there"
            self.problems.error(at, "a project's configuration cannot say base_url", url, fix)
        return url

    def _personas(self) -> dict[str, Choice]:
        found: dict[str, Choice] = {}
        for key, node in self._entries("persona_providers"):
            if isinstance(node.value, str):
                place = f"{self.problems.file}:{node.line}:{node.column}"
                found[key] = Choice(node.value, None, place, lenient=self.dialect == "takt")
            elif fields := mapping_of(node, self.problems, f"the entry {key}"):
                self._check(fields, _PERSONA)
                found[key] = self._choice(fields)
        return found

    def _profiles(self) -> dict[str, Profile]:
        found: dict[str, Profile] = {}
        for key, node in self._entries("provider_profiles"):
            if fields := mapping_of(node, self.problems, f"the profile {key}"):
                self._check(fields, _PROFILE)
                overrides = fields.mapping(*_PROFILE_NAMES)
                modes = {str(name): mode for name, at in overrides or () if (mode := self._mode(at))}
                found[key] = Profile(fields.choice("default_permission_mode", PERMISSIONS), modes)
        return found

    def _mode(self, node: Node) -> Permission | None:
        for mode in PERMISSIONS:
            if node.value == mode:
                return mode
        what = f"a permission must be one of {', '.join(PERMISSIONS)}"
        self.problems.error(node, what, node.text or node.kind, "write one of them")
        return None

    def _command_gates(self) -> bool | None:
        gates = self.fields.mapping("workflow_command_gates")
        if gates is None:
            return None
        self._check(gates, ("custom_scripts",))
        return gates.flag("custom_scripts")

    def _overrides(self) -> tuple[tuple[str, ...], bool, dict[str, tuple[str, ...]]]:
        fields = self.fields.mapping(*_OVERRIDES_NAMES)
        if fields is None:
            return (), False, {}
        self._check(fields, _OVERRIDES)
        movements: dict[str, tuple[str, ...]] = {}
        for key, node in fields.mapping("movements", "steps") or ():
            if entry := mapping_of(node, self.problems, f"the entry {key}"):
                self._check(entry, ("quality_gates",))
                movements[str(key)] = names_of(entry, "quality_gates") or ()
        gates = names_of(fields, "quality_gates") or ()
        return gates, fields.flag("quality_gates_edit_only") is True, movements

    def _prices(self) -> dict[str, Price]:
        found: dict[str, Price] = {}
        if self.dialect == "takt":
            return found
        for key, node in self._entries("prices"):
            if fields := mapping_of(node, self.problems, f"the price of {key}"):
                self._check(fields, _PRICE)
                given = {
                    name: amount for name in _PRICE if (amount := self._amount(fields, name)) is not None
                }
                found[key] = Price(**given)
        return found

    def _amount(self, fields: Fields, name: str) -> float | None:
        node = fields.get(name)
        if node is None:
            return None
        value = node.value
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < float("inf"):
            return float(value)
        what = f"{name} must be a number, 0 or more"
        self.problems.error(node, what, node.text or node.kind, "write 0.25")
        return None

    def _entries(self, name: str) -> list[tuple[str, Node]]:
        return [(str(key), node) for key, node in self.fields.mapping(name) or ()]


__all__ = ["KEYS", "read_layer"]
