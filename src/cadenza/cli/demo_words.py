"""What the demonstration says, in English and Japanese."""

from __future__ import annotations

from typing import NamedTuple

from cadenza.piece.vocabulary import Language


class Words(NamedTuple):
    """Texts with ``{…}`` for what only the moment knows. ``checks`` is the heading behind the result."""

    begin: str
    no_git: str
    task: str
    answer: str
    parked: str
    checks: str
    handed_over: str
    kept: str
    removed: str


_EN = Words(
    begin=(
        "A small program stands in {folder}. The piece {piece} is played on it:\n"
        "somebody plans, somebody builds, two review at once, and what they find is mended.\n"
        "A script says what the agents answer. No model is called, and no key is needed."
    ),
    no_git="There is no usable git here; the demo goes on without a repository.",
    task=(
        'Write the section "How to use it" for the README of this program.\n\n'
        "count.py:\n\n```python\n{code}```\n"
    ),
    answer="For people who run it",
    parked=(
        "The run is parked: no process waits for it, it is only a row in the journal. A person would answer\n"
        "tomorrow, from any terminal. Here the demo answers by itself, with\n"
        "  {command}"
    ),
    checks="## Checks",
    handed_over=(
        "Agents answer with text only in this version, so the demo itself puts the result into README.md:"
    ),
    kept="The project, its reports and its journal are kept in {folder}\n  {show}",
    removed="The folder was removed again; cadenza demo --keep leaves it for you to look at.",
)

_JA = Words(
    begin=(
        "{folder} に小さなプログラムがあります。これに対して piece {piece} を演奏します。\n"
        "計画し、作り、二人が同時にレビューし、見つかった点を直します。\n"
        "agent の答えは台本どおりです。モデルは呼ばれず、API キーも要りません。"
    ),
    no_git="使える git がないため、リポジトリなしで続けます。",
    task="このプログラムの README に「使い方」の節を書いてください。\n\ncount.py:\n\n```python\n{code}```\n",
    answer="使う人向け",
    parked=(
        "run は停車中です。待っているプロセスはなく、journal に記録があるだけです。\n"
        "人は明日でも、別の端末からでも答えられます。ここでは demo が自分で答えます:\n"
        "  {command}"
    ),
    checks="## 確認",
    handed_over="この版の agent は文章で答えるだけなので、demo が成果物を README.md に入れます:",
    kept="プロジェクト、レポート、journal は {folder} に残っています\n  {show}",
    removed="フォルダーは消しました。cadenza demo --keep で残せます。",
)

WORDS: dict[Language, Words] = {"en": _EN, "ja": _JA}
