"""Plays a movement's generator, and those of its lanes, from outcome to outcome.

A movement kind is a generator. It yields :class:`Need` (a keyed demand; it is resumed with the
outcome), :class:`Lanes` (branches; resumed with all their results in declared order) or
:class:`NextOf` (branches; resumed with the first that ends, the others go on). Nothing here does I/O.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from typing import Any, TypeVar

import msgspec

from cadenza.core.demands import AnyDemand
from cadenza.core.outcomes import AnyOutcome
from cadenza.core.signals import Signal
from cadenza.errors import CadenzaError, CodeChanged

T = TypeVar("T")


class Need(msgspec.Struct, frozen=True):
    """A demand, and what it is for: ``key`` is unique among the demands of its lane in this visit."""

    key: str
    demand: AnyDemand


class Lanes(msgspec.Struct, frozen=True):
    """Branches that run side by side; resumes with the list of their results in declared order."""

    children: Mapping[str, Generator[Any, Any, Any]]


class NextOf(msgspec.Struct, frozen=True):
    """Branches of which one is awaited; resumes with ``(name, result)`` of the next that ends.

    Children named before go on; new names are started. A name that has ended is not to be named again.
    """

    children: Mapping[str, Generator[Any, Any, Any]]


class Tell(msgspec.Struct, frozen=True):
    """Something a person should see; the generator goes on at once. ``code`` is for machines."""

    code: str
    message: str


class Record(msgspec.Struct, frozen=True):
    """A fact for the journal; the generator goes on at once."""

    event: Any


Ask = Need | Lanes | NextOf | Tell | Record
Performance = Generator[Ask, Any, T]


def guarded(performance: Performance[T], failed: Callable[[str], T]) -> Performance[T]:
    """A branch whose own bugs are its own failure: an exception in it becomes ``failed(words)``, and the
    other branches go on."""
    try:
        return (yield from performance)
    except CadenzaError:
        raise
    except Exception as error:
        return failed(f"{type(error).__name__}: {error}")


class Issued(msgspec.Struct, frozen=True):
    """A demand that came out of a generator. ``key`` is unique within the visit."""

    key: str
    lane: str
    demand: AnyDemand


class _Node:
    __slots__ = ("children", "ended", "generator", "name", "parent", "path", "result", "waiting")

    def __init__(self, generator: Performance[Any], parent: _Node | None, name: str) -> None:
        self.generator = generator
        self.parent = parent
        self.name = name
        self.path: tuple[str, ...] = () if parent is None else (*parent.path, name)
        self.children: dict[str, _Node] = {}
        self.ended: list[str] = []
        self.waiting: Ask | None = None
        self.result: Any = None


class Player(msgspec.Struct):
    """A visit being played. ``done`` turns true with ``result`` when the root generator returns."""

    root: Any
    open: dict[str, Any] = {}
    keys: set[str] = set()
    told: list[Tell | Record] = []
    fed: int = 0
    last: str = ""
    done: bool = False
    result: Any = None

    @classmethod
    def of(cls, generator: Performance[Any]) -> Player:
        """A player at the very beginning of ``generator``."""
        return cls(root=_Node(generator, None, ""))

    def start(self) -> list[Issued]:
        """Run to the first demands."""
        return self._run(self.root, None)

    def feed(self, key: str, outcome: AnyOutcome) -> list[Issued]:
        """Give the generator that asked for ``key`` its outcome; the demands that follow.

        Raises:
            CodeChanged: nobody asked for ``key``: the movement was played by other code.
        """
        node = self.open.pop(key, None)
        if node is None:
            raise CodeChanged(f"the journal holds an outcome for {key!r}, which this version never asks for")
        self.fed += 1
        self.last = key
        return self._run(node, outcome)

    def pending(self) -> list[Issued]:
        """What the generator waits for, in the order of asking."""
        waiting = ((key, node, node.waiting) for key, node in self.open.items())
        return [Issued(key, "/".join(node.path), ask.demand) for key, node, ask in waiting]

    def _run(self, node: _Node, value: Any) -> list[Issued]:
        """Go on at ``node``. A kind that raises ends the visit; our own errors are the caller's."""
        issued: list[Issued] = []
        try:
            self._advance(node, value, issued)
        except CadenzaError:
            raise
        except Exception as error:
            words = f"{type(error).__name__}: {error}"
            self.done, self.result = True, Signal(kind="broken", code="movement_broken", message=words)
            return []
        return issued

    def _advance(self, node: _Node, value: Any, issued: list[Issued]) -> None:
        while True:
            node.waiting = None
            try:
                ask: Ask = node.generator.send(value)
            except StopIteration as stop:
                self._finish(node, stop.value, issued)
                return
            if isinstance(ask, Need):
                self._open(node, ask, issued)
                return
            if isinstance(ask, Tell | Record):
                self.told.append(ask)
                value = None
                continue
            value = self._branch(node, ask, issued)
            if value is None:
                node.waiting = ask
                return

    def _open(self, node: _Node, ask: Need, issued: list[Issued]) -> None:
        key = "/".join((*(part.replace("%", "%25").replace("/", "%2F") for part in node.path), ask.key))
        if key in self.keys:
            raise ValueError(f"the key {key!r} is asked for twice in one visit")
        self.keys.add(key)
        node.waiting = ask
        self.open[key] = node
        issued.append(Issued(key, "/".join(node.path), ask.demand))

    def _branch(self, node: _Node, ask: Lanes | NextOf, issued: list[Issued]) -> Any:
        """Start the children that do not run yet; the value to resume with, or None to wait."""
        if isinstance(ask, Lanes):
            node.children, node.ended = {}, []
        for name, generator in ask.children.items():
            if name not in node.children:
                child = node.children[name] = _Node(generator, node, name)
                self._advance(child, None, issued)
        return self._ready(node, ask)

    def _ready(self, node: _Node, ask: Lanes | NextOf) -> Any:
        if isinstance(ask, Lanes):
            if len(node.ended) < len(node.children):
                return None
            results = [node.children[name].result for name in ask.children]
            node.children, node.ended = {}, []
            return results
        if not node.ended:
            return None
        name = node.ended.pop(0)
        return name, node.children[name].result

    def _finish(self, node: _Node, result: Any, issued: list[Issued]) -> None:
        node.result = result
        parent = node.parent
        if parent is None:
            self.done, self.result = True, result
            return
        if parent.children.get(node.name) is not node:
            return  # nobody waits for it any more
        parent.ended.append(node.name)
        if isinstance(parent.waiting, Lanes | NextOf):
            value = self._ready(parent, parent.waiting)
            if value is not None:
                self._advance(parent, value, issued)
