"""Providers by name. A provider's module, and the packages it needs, are imported when it is made.

Other packages add providers through the entry point group ``cadenza.providers``: the entry's name is what
a person writes after ``--provider``, its object a callable that takes :class:`ProviderOptions`.
"""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches

import msgspec

from cadenza.errors import CadenzaError, ProviderError, UsageError
from cadenza.providers.base import ModelProvider

GROUP = "cadenza.providers"


class ProviderOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What a provider may be told. ``None`` leaves it to the provider's own default or environment.

    ``script`` is a path. ``timeout`` is how many seconds of silence end a call.
    """

    model: str | None = None
    script: str | None = None
    base_url: str | None = None
    api_key: str | None = None
    timeout: float | None = None


Factory = Callable[[ProviderOptions], ModelProvider]


def make_provider(name: str, options: ProviderOptions | None = None) -> ModelProvider:
    """Make the provider called ``name``.

    Raises:
        UsageError: no provider is called so, or an option that it needs is missing.
        ProviderError: a package that it needs is not installed.
        PieceError: its script cannot be read.
    """
    factory = _BUILT_IN.get(name) or _from_entry_point(name)
    if factory is None:
        known = provider_names()
        near = get_close_matches(name, known, n=1)
        meant = f"; did you mean {near[0]!r}?" if near else ""
        raise UsageError(f"there is no provider {name!r}{meant}", hint=f"known: {', '.join(known)}")
    try:
        return factory(options or ProviderOptions())
    except CadenzaError:
        raise
    except Exception as error:
        raise ProviderError(
            f"the provider {name!r} could not be made: {type(error).__name__}: {error}",
            hint="that is a fault of the package that brings it",
        ) from error


def provider_names() -> list[str]:
    """Every name that :func:`make_provider` knows, sorted."""
    from importlib.metadata import entry_points

    return sorted({*_BUILT_IN, *(point.name for point in entry_points(group=GROUP))})


def _from_entry_point(name: str) -> Factory | None:
    from importlib.metadata import entry_points

    for point in entry_points(group=GROUP, name=name):
        try:
            factory: Factory = point.load()
        except (ImportError, AttributeError) as error:
            raise ProviderError(
                f"the provider {name!r} cannot be loaded: {error}",
                hint=f"install or repair the package that brings {point.value}",
            ) from error
        return factory
    return None


def _scripted(options: ProviderOptions) -> ModelProvider:
    from cadenza.providers.models.scripted import ScriptedProvider, load_script

    if not options.script:
        raise UsageError("the provider 'scripted' needs a script", hint="give --script FILE")
    return ScriptedProvider(load_script(options.script))


def _openai(options: ProviderOptions) -> ModelProvider:
    from cadenza.providers.models.openai_compatible import OpenAIProvider

    return OpenAIProvider(
        model=options.model,
        base_url=options.base_url,
        api_key=options.api_key,
        timeout=options.timeout,
    )


def _anthropic(options: ProviderOptions) -> ModelProvider:
    from cadenza.providers.models.anthropic_messages import AnthropicProvider

    return AnthropicProvider(
        model=options.model,
        base_url=options.base_url,
        api_key=options.api_key,
        timeout=options.timeout,
    )


_BUILT_IN: dict[str, Factory] = {"anthropic": _anthropic, "openai": _openai, "scripted": _scripted}
