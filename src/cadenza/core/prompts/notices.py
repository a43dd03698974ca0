"""What the engine tells a person about a run, in their language."""

from __future__ import annotations

from collections.abc import Sequence

from cadenza.core.prompts.texts import Language

SHOWN = 500
"""How many characters of an unmatched output are shown from its beginning, and from its end."""


def repeated(language: Language, movement: str, count: int) -> str:
    """The warning about a movement that is performed again and again."""
    if language == "ja":
        return f"movement「{movement}」が連続 {count} 回実行されています"
    return f'movement "{movement}" has now been performed {count} times in a row'


def no_match(language: Language, movement: str, conditions: Sequence[str], output: str) -> str:
    """Why a run was aborted for want of a matching rule: the movement, what was tried, the output's ends."""
    shown = ends(output, language)
    tried = "\n".join(f"  - {condition}" for condition in conditions)
    if language == "ja":
        head = f"movement「{movement}」の出力はどの rule にもマッチしませんでした。"
        return f"{head}\n試した条件:\n{tried or '  (なし)'}\n出力:\n{shown}"
    head = f'No rule of movement "{movement}" matched its output.'
    return f"{head}\nConditions tried:\n{tried or '  (none)'}\nOutput:\n{shown}"


def cut_short(language: Language, movement: str) -> str:
    """The warning about an answer that the model had to break off."""
    if language == "ja":
        return (
            f"movement「{movement}」の回答は長さの上限で途切れています（CADENZA_MAX_TOKENS で変えられます）"
        )
    return f'the answer of movement "{movement}" was cut at the length limit (CADENZA_MAX_TOKENS sets it)'


def gate_failed(language: Language, gate: str, problem: str) -> str:
    """What an agent is told whose work did not pass a command gate."""
    if language == "ja":
        return f"品質ゲート「{gate}」を通過しませんでした。直してください。\n{ends(problem, language)}"
    return f'The quality gate "{gate}" was not passed. Put it right.\n{ends(problem, language)}'


def plan_refused(language: Language, problem: str) -> str:
    """What a team leader is told whose plan cannot be used."""
    if language == "ja":
        return f"この計画は使えません: {problem}\n同じ形式で、直した計画の全体だけを出力してください。"
    return f"This plan cannot be used: {problem}\nAnswer with the whole plan, put right, in the same form."


def status_not_found(movement: str) -> str:
    """What TAKT's command-line engine says when every stage has failed; the same words in any language."""
    return f'Status not found for movement "{movement}": no rule matched after all detection phases'


def ends(text: str, language: Language) -> str:
    """``text`` whole, or its first and last :data:`SHOWN` characters with a note of what lies between."""
    if not text.strip():
        return "（空の回答）" if language == "ja" else "(an empty answer)"
    if len(text) <= 2 * SHOWN:
        return text
    left = len(text) - 2 * SHOWN
    between = f"…（{left:,} 文字省略）…" if language == "ja" else f"… ({left:,} characters left out) …"
    return f"{text[:SHOWN]}\n{between}\n{text[-SHOWN:]}"
