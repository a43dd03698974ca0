"""What the files of the configuration say, one layer each, and what they say together."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from cadenza.core.spending import Price
from cadenza.errors import ConfigError
from cadenza.piece.vocabulary import Dialect, Language
from cadenza.settings import Settings

Scope = Literal["environment", "project", "user"]
Permission = Literal["readonly", "edit", "full"]

PERMISSIONS: tuple[Permission, ...] = ("readonly", "edit", "full")
"""From the least to the most."""

TAKTS_PROVIDER = "claude"
"""What TAKT takes where its files name no provider: a model that they name is one of this provider's."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A provider and a model, said in one place.

    ``place`` is where (``file:line:column``, a variable, a movement). ``lenient``: a provider that is not
    known here is passed over, because TAKT's files name those that TAKT has. ``beside`` is the provider
    that the model belongs to, where that is known.
    """

    provider: str | None = None
    model: str | None = None
    place: str = ""
    lenient: bool = False
    beside: str | None = None

    def model_for(self, provider: str | None) -> str | None:
        """The model, unless it belongs to another provider than ``provider``."""
        owner = self.provider or self.beside
        return self.model if None in (owner, provider) or _kind(owner) == _kind(provider) else None


@dataclass(frozen=True, slots=True)
class Profile:
    """What a provider's agents may do: by default, and in some movements."""

    default: Permission | None = None
    overrides: Mapping[str, Permission] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Layer:
    """What one file says. ``gates`` are for every movement (``gates_edit_only``: that may edit files)."""

    scope: Scope
    file: str
    dialect: Dialect = "native"
    choice: Choice = Choice()
    language: Language | None = None
    base_url: str | None = None
    personas: Mapping[str, Choice] = field(default_factory=dict)
    profiles: Mapping[str, Profile] = field(default_factory=dict)
    command_gates: bool | None = None
    gates: tuple[str, ...] = ()
    gates_edit_only: bool = False
    movement_gates: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    prices: Mapping[str, Price] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Configuration:
    """All layers, the nearest first."""

    layers: tuple[Layer, ...] = ()

    @classmethod
    def load(cls, cwd: str | Path, environ: Mapping[str, str] | None = None) -> Configuration:
        """Read the environment and every file that is there.

        Raises:
            ConfigError: files cannot be read, or hold what they cannot; the message has a line for each
                mistake, as ``file:line:column: what (value); what to do``.
        """
        from cadenza.config.reading import read_layer

        env = os.environ if environ is None else environ
        layers, wrong = [_environment(env)], list[str]()
        for scope, dialect, path, shown in _files(Path(cwd), env):
            layer, problems = read_layer(path, shown, scope, dialect)
            layers.append(layer)
            wrong += problems
        if wrong:
            raise ConfigError("\n".join(wrong), hint="mend the configuration, or take the lines out")
        return cls(tuple(layers))

    @property
    def choices(self) -> tuple[Choice, ...]:
        """Provider and model for whatever names none: the environment's, the project's, the user's. A model
        that stands alone belongs to the provider that these layers come to."""
        choices = [layer.choice for layer in self.layers]
        default = next((choice.provider for choice in choices if choice.provider), None)
        return tuple(
            replace(c, beside=default) if c.provider is None and not c.beside else c for c in choices
        )

    @property
    def language(self) -> Language | None:
        """The language of the engine's own texts."""
        return next((layer.language for layer in self.layers if layer.language), None)

    @property
    def base_url(self) -> str | None:
        """Where the provider is reached; from a person's own files only."""
        return next((layer.base_url for layer in self.layers if layer.base_url), None)

    @property
    def command_gates(self) -> bool:
        """Whether commands may be run as quality gates: the nearest file that speaks of it decides."""
        said = (layer.command_gates for layer in self.layers)
        return next((value for value in said if value is not None), False)

    def persona(self, names: Iterable[str]) -> Choice | None:
        """What is chosen for a persona, under the first of its names that a file speaks of."""
        for name in names:
            for layer in self.layers:
                if name in layer.personas:
                    return layer.personas[name]
        return None

    def permission(self, provider: str | None, movement: str, required: Permission | None) -> Permission:
        """What ``movement`` may do: an override of the project's, then of the user's, then the default of
        the project's, then of the user's, then ``edit``; but never less than it requires (TAKT, permissions).
        """
        profiles = [profile for layer in self.layers if (profile := layer.profiles.get(_kind(provider)))]
        said = [profile.overrides.get(movement) for profile in profiles]
        said += [profile.default for profile in profiles]
        resolved: Permission = next((mode for mode in said if mode is not None), "edit")
        return max(resolved, required or "readonly", key=PERMISSIONS.index)

    @property
    def prices(self) -> dict[str, Price]:
        """What a million tokens of each model cost: a nearer file's row replaces a farther one's."""
        found: dict[str, Price] = {}
        for layer in reversed(self.layers):
            found.update(layer.prices)
        return found

    def gates(self, movement: str, *, edit: bool) -> Iterator[str]:
        """The quality gates that the files add to a movement, the user's first."""
        for layer in reversed(self.layers):
            if edit or not layer.gates_edit_only:
                yield from layer.gates
            yield from layer.movement_gates.get(movement, ())

    def settings(self, environ: Mapping[str, str] | None = None) -> Settings:
        """The settings of the environment, with what the files say where it is silent.

        Raises:
            ConfigError: a variable holds what it cannot hold.
        """
        from cadenza.config.applying import choose

        provider, model = choose(self.choices)
        defaults = {"provider": provider, "model": model, "base_url": self.base_url}
        return Settings.from_environment(environ, defaults={**defaults, "language": self.language})


def _environment(env: Mapping[str, str]) -> Layer:
    provider, model = env.get("CADENZA_PROVIDER") or None, env.get("CADENZA_MODEL") or None
    choice = Choice(provider, model, "CADENZA_PROVIDER")
    language: Language | None = None
    if env.get("CADENZA_LANG"):
        language = Settings.from_environment(env).language
    return Layer("environment", "the environment", choice=choice, language=language)


def _files(cwd: Path, env: Mapping[str, str]) -> Iterator[tuple[Scope, Dialect, Path, str]]:
    """The files that there are, with what problems call them. A project that is the person's home has none
    of its own."""
    home = Path(env.get("HOME") or Path.home())
    config = Path(env.get("XDG_CONFIG_HOME") or home / ".config")
    takt = Path(env.get("TAKT_CONFIG_DIR") or home / ".takt")
    users: list[tuple[Dialect, Path]] = [
        ("native", config / "cadenza"),
        ("native", home / ".cadenza"),
        ("takt", takt),
    ]
    own = {os.path.realpath(folder) for _, folder in users}
    projects: list[tuple[Dialect, Path]] = [("native", cwd / ".cadenza"), ("takt", cwd / ".takt")]
    for dialect, folder in projects:
        path = folder / "config.yaml"
        if os.path.realpath(folder) not in own and os.path.lexists(path):
            yield "project", dialect, path, os.path.join(folder.name, "config.yaml")
    for dialect, folder in users:
        path = folder / "config.yaml"
        if os.path.lexists(path):
            yield "user", dialect, path, os.fspath(path)


def _kind(provider: str | None) -> str:
    """``scripted`` of ``scripted:FILE``."""
    return (provider or "").partition(":")[0]


__all__ = ["Choice", "Configuration", "Layer", "Permission", "Profile", "Scope"]
