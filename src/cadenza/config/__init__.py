"""The configuration: what a project and a person set once for all their runs.

The files, the nearest first; each is optional::

    <cwd>/.cadenza/config.yaml              project
    <cwd>/.takt/config.yaml                 project, as TAKT has it
    $XDG_CONFIG_HOME/cadenza/config.yaml    user (~/.config without the variable)
    ~/.cadenza/config.yaml                  user
    $TAKT_CONFIG_DIR/config.yaml            user, as TAKT has it (~/.takt without the variable)

Before them all stand ``CADENZA_PROVIDER``, ``CADENZA_MODEL`` and ``CADENZA_LANG``. What is read::

    language: en                       # or ja
    provider: openai                   # a name, or {type: openai, model: …}
    model: qwen3
    base_url: http://localhost:8080/v1 # only in a person's own files
    persona_providers:
      reviewer: {provider: openai, model: qwen3-large}
    provider_profiles:
      openai:
        default_permission_mode: edit  # readonly, edit, full
        movement_permission_overrides: {review: readonly}
    workflow_command_gates: {custom_scripts: true}
    piece_overrides:
      quality_gates: [All tests pass]
      quality_gates_edit_only: true
      movements: {plan: {quality_gates: [Every step names its product]}}

An unknown key is a problem in our files and nothing in TAKT's, which hold much that is for TAKT alone.

Source of behaviour: TAKT's command-line engine, configuration.
"""

from __future__ import annotations

from cadenza.config.applying import apply
from cadenza.config.layers import Choice, Configuration, Layer, Profile

__all__ = ["Choice", "Configuration", "Layer", "Profile", "apply"]
