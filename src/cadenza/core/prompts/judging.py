"""The prompts of the two judges, and how a verdict is read.

Source of behaviour: TAKT engine, rule evaluation, "fallback (AI judgement)", and "Loop Monitors". The
wording is ours. A rule judge reads an output that had no usable status tag and names one rule or none;
none, an answer that cannot be read and a judge that failed all mean that no rule matched.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from cadenza.core.prompts.templates import expand
from cadenza.core.prompts.texts import Language, texts
from cadenza.piece.conditions import display_condition

_FENCED = re.compile(r"^[ \t]*```(?:json)?[ \t]*\r?\n(.*?)^[ \t]*```[ \t]*\r?$", re.M | re.S | re.I)
_BARE = re.compile(r"[0-9]{1,9}")
_REASON_LENGTH = 200


def judge_prompt(output: str, conditions: Sequence[str], language: Language) -> str:
    """Ask which of ``conditions`` (as the piece writes them) an output meets.

    The conditions are numbered from 0 in the order given; a caller that left some rules out maps the
    number back.
    """
    listed = "\n".join(f"{at}: {display_condition(text)}" for at, text in enumerate(conditions))
    values = {"output": output, "conditions": listed}
    return expand(texts(language).judge, values, {}, missing_report="")


def verdict_schema(count: int) -> dict[str, Any]:
    """The JSON Schema of a verdict over ``count`` rules.

    Small and flat, so that a server can turn it into a grammar; the reason is bounded, so that a tiny
    model cannot babble past the end of its answer.
    """
    return {
        "type": "object",
        "properties": {
            "rule": {"type": ["integer", "null"], "enum": [*range(count), None]},
            "reason": {"type": "string", "maxLength": _REASON_LENGTH},
        },
        "required": ["rule", "reason"],
        "additionalProperties": False,
    }


def read_verdict(text: str, count: int) -> int | None:
    """The rule that a judge named, or ``None`` for none and for anything that is no verdict.

    A verdict is a JSON object whose ``rule`` is an integer in ``range(count)``, alone or as the only
    JSON code block of the answer, or a bare integer. ``true``, ``1.0`` and ``"1"`` are no integers.
    """
    text = text.strip()
    if len(blocks := _FENCED.findall(text)) == 1:
        text = blocks[0].strip()
    rule = int(text) if _BARE.fullmatch(text) else _rule_of(text)
    return rule if rule is not None and rule in range(count) else None


def _rule_of(text: str) -> int | None:
    try:
        verdict = json.loads(text)
    except (ValueError, RecursionError):
        return None
    rule = verdict.get("rule") if isinstance(verdict, dict) else None
    return rule if isinstance(rule, int) and not isinstance(rule, bool) else None


def monitor_instruction(cycle: Sequence[str], conditions: Sequence[str], language: Language) -> str:
    """The instruction of a loop monitor's judge that has none of its own.

    A template: ``{cycle_count}`` is still to be expanded, with everything else that an instruction may
    mention. ``cycle`` holds movement names, ``conditions`` the judge's conditions.
    """
    values = {
        "cycle": " → ".join(cycle),
        "conditions": "\n".join(f"- {display_condition(text)}" for text in conditions),
    }
    return expand(texts(language).monitor, values, {}, missing_report="")
