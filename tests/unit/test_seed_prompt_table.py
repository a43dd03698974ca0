"""One row per sentence of the TAKT engine document about prompts, tags, aggregates and reports.

Each row quotes a few words of the sentence (it is the specification) and checks what they say.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cadenza.core.aggregates import first_holding, holds
from cadenza.core.prompts.judging import judge_prompt, monitor_instruction
from cadenza.core.prompts.single import ReportItem, ReportOrder, SinglePrompt, compose
from cadenza.core.prompts.templates import expand
from cadenza.core.reports import ReportWanted, extract
from cadenza.core.slug import slugify, timestamp
from cadenza.core.tags import last_tag
from cadenza.piece.conditions import parse_condition

SECTIONS = {
    "persona": "あなたは作曲家です。",
    "policy": "## ポリシー（行動ルール）",
    "context": "## 実行コンテキスト",
    "knowledge": "## ナレッジ",
    "instruction": "INSTRUCTION",
    "task": "TASK",
    "previous": "PREVIOUS",
    "report": "## レポート出力（必須）",
    "tags": "## ステータス出力（必須）",
    "reminder": "**リマインダー**",
}


def written(**given: Any) -> str:
    plain: dict[str, Any] = {
        "persona": "あなたは作曲家です。",
        "policies": ("POLICY A", "POLICY B"),
        "knowledge": ("KNOWLEDGE",),
        "instruction": "INSTRUCTION",
        "task": "TASK",
        "previous": "PREVIOUS",
        "cwd": "/w",
        "piece": "曲",
        "movement": "下書き",
        "iteration": 5,
        "max_movements": 10,
        "movement_iteration": 2,
        "report_dir": ".takt/runs/20260131-090500-x/reports",
        "reports": {"ai-review.md": "REVIEW"},
        "report": ReportOrder((ReportItem(name="01-plan.md", format="CONTRACT"),)),
        "rules": ("できた", 'ai("できない")'),
        "language": "ja",
    }
    return compose(SinglePrompt(**(plain | given)))


def ordered(*names: str) -> bool:
    text = written()
    places = [text.index(SECTIONS[name]) for name in names]
    return places == sorted(places)


def instruction(template: str, **given: Any) -> str:
    text = written(
        instruction=template, persona=None, policies=(), knowledge=(), rules=(), report=None, **given
    )
    return text.partition("## インストラクション\n")[2].partition("\n\n## ")[0]


def all_any(condition: str, *labels: str | None) -> bool:
    return holds(parse_condition(condition), labels)


def saved(output: str, *wanted: ReportWanted) -> list[str]:
    return list(extract(output, wanted).values())


PLAN = ReportWanted("01-plan.md")
TWO = (ReportWanted("summary.md", "Summary"), ReportWanted("01-scope.md", "Scope"))
BLOCK = "```markdown\n{}\n```\n"
TABLE: list[tuple[str, Callable[[], bool]]] = [
    # プロンプト構築
    ("上から順に結合", lambda: ordered(*SECTIONS)),
    (
        "---（区切り線）",
        lambda: written().count("\n\n---\n\n") == 2 + 2,
    ),  # parts 2, 4; two joined policies, twice
    ("policy: 複数ある場合は結合", lambda: "POLICY A\n\n---\n\nPOLICY B" in written()),
    ("{task} が template に含まれない場合、末尾に自動追加", lambda: "## ユーザーのタスク\nTASK" in written()),
    ("{task} が template に含まれ", lambda: "## ユーザーのタスク" not in written(instruction="{task}")),
    ("pass_previous_response: true の場合、自動追加", lambda: "の出力\nPREVIOUS" in written()),
    ("pass_previous_response: true の場合", lambda: "PREVIOUS" not in written(pass_previous=False)),
    ("report フィールドがある場合、自動追加", lambda: SECTIONS["report"] not in written(report=None)),
    ("rules がある場合、自動追加", lambda: SECTIONS["tags"] not in written(rules=())),
    ("ポリシーがある場合、末尾に再掲", lambda: written().endswith("ください。\nPOLICY A\n\n---\n\nPOLICY B")),
    ("ポリシーがある場合", lambda: SECTIONS["reminder"] not in written(policies=())),
    (
        "その全内容をプロンプトの冒頭に配置する",
        lambda: written().startswith("あなたは作曲家です。\n\n---\n\n## ポリシー"),
    ),
    (
        "ペルソナプロンプト部分を省略し",
        lambda: written(persona=None).startswith("## ポリシー（行動ルール）\n"),
    ),
    ("末尾にリマインダーとして再掲する", lambda: written().count("POLICY A") == 2),
    ("ナレッジの内容", lambda: "## ナレッジ\nKNOWLEDGE\n" in written()),
    ("イテレーション: {iteration} / {max_movements}", lambda: "- イテレーション: 5 / 10\n" in written()),
    ("{movement_iteration} 回目", lambda: "- Movement イテレーション: 2 回目\n" in written()),
    # テンプレート変数の展開
    ("{task} ユーザーが入力したタスク内容", lambda: instruction("<{task}>") == "<TASK>"),
    ("{previous_response} 前の movement の", lambda: instruction("<{previous_response}>") == "<PREVIOUS>"),
    ("{iteration} ピース全体のイテレーション数", lambda: instruction("{iteration}") == "5"),
    ("{max_movements} ピースの max_movements 値", lambda: instruction("{max_movements}") == "10"),
    (
        "{movement_iteration} この movement が実行された回数",
        lambda: instruction("{movement_iteration}") == "2",
    ),
    ("{report_dir} レポートディレクトリパス", lambda: instruction("{report_dir}").endswith("-x/reports")),
    (
        "{report:ファイル名} 指定レポートファイルの内容",
        lambda: instruction("{report:ai-review.md}") == "REVIEW",
    ),
    ("「（レポート未作成）」に置換する", lambda: instruction("{report:x.md}") == "（レポート未作成）"),
    (
        "{task} (data, never expanded)",
        lambda: instruction("{task}", task="{iteration} {x}") == "{iteration} {x}",
    ),
    # レポート出力指示
    ("形式1: ファイル名", lambda: "\n\nファイル名: 01-plan.md\n出力契約:\nCONTRACT\n" in written()),
    (
        "形式2: 配列（複数レポート）",
        lambda: (
            "\n\n1. Summary → ファイル名: summary.md\n2. Scope → ファイル名: 01-scope.md\n"
            in written(report=ReportOrder(tuple(ReportItem(name=n, label=label) for n, label in TWO)))
        ),
    ),
    # レポートの抽出と保存
    (
        "```markdown ブロックからレポート内容を取得する",
        lambda: saved("a\n" + BLOCK.format("p"), PLAN) == ["p\n"],
    ),
    (
        "ファイル名の手がかり（見出し",
        lambda: (
            saved(f"# 01-scope.md\n{BLOCK.format('s')}# summary.md\n{BLOCK.format('t')}", *TWO)
            == ["t\n", "s\n"]
        ),
    ),
    (
        "（見出しやコメント）",
        lambda: (
            saved(f"<!-- Scope -->\n{BLOCK.format('s')}<!-- Summary -->\n{BLOCK.format('t')}", *TWO)
            == ["t\n", "s\n"]
        ),
    ),
    (
        "ファイル名やセクション見出しから",
        lambda: saved(f"{BLOCK.format('a')}## Plan\n{BLOCK.format('b')}", PLAN) == ["b\n"],
    ),
    ("特定できない場合は出力全体を", lambda: saved("no block", PLAN) == ["no block"]),
    ("特定できない場合は", lambda: saved(BLOCK.format("a") * 2, *TWO) == [BLOCK.format("a") * 2] * 2),
    ("YYYYMMDD-HHmmss 形式", lambda: timestamp(1769850300) == "20260131-090500"),
    ("タスク内容の先頭30文字をスラグ化", lambda: slugify("譜面" * 20) == "譜面" * 15),
    # ステータスタグ
    ("[STEP:0] = {rules[0].condition}", lambda: "\n\n[STEP:0] = できた\n" in written()),
    ("ai() の括弧は除去して", lambda: "\n[STEP:1] = できない\n" in written()),
    # Rule 評価
    ("[STEP:N] タグ（N は 0始まり）", lambda: last_tag("済み [STEP:0]") == 0),
    ("最後のタグを採用する", lambda: last_tag("[STEP:1] ... [STEP:0]") == 0),
    ("タグが出力に含まれない場合", lambda: last_tag("済み") is None),
    ("全ての condition と比較して", lambda: "0: a\n1: b" in judge_prompt("o", ["a", 'ai("b")'], "ja")),
    # aggregate
    (
        "all 引数が1つ: 全サブステップ",
        lambda: all_any('all("a")', "a", "a") and not all_any('all("a")', "a", "b"),
    ),
    (
        "all 引数が複数（位置対応）",
        lambda: all_any('all("a", "b")', "a", "b") and not all_any('all("a", "b")', "b", "a"),
    ),
    (
        "any いずれかのサブステップ",
        lambda: all_any('any("b")', "a", "b") and not all_any('any("b")', "a", "a"),
    ),
    (
        "親 rules を上から順に評価し、最初にマッチした",
        lambda: first_holding(map(parse_condition, ('all("b")', 'any("a")', 'any("b")')), ["a", "b"]) == 1,
    ),
    # Loop Monitors
    (
        "{cycle_count} を実際のサイクル回数に置換する",
        lambda: instruction("{cycle_count} 回", cycle_count=3) == "3 回",
    ),
    (
        "judge の rules で評価する",
        lambda: (
            "- 健全\n- 非生産的" in monitor_instruction(["ai_review", "ai_fix"], ["健全", "非生産的"], "ja")
        ),
    ),
]


@pytest.mark.parametrize("row", TABLE, ids=[sentence for sentence, _ in TABLE])
def test_the_seed_says(row: tuple[str, Callable[[], bool]]) -> None:
    _, holds_true = row
    assert holds_true()


def test_a_value_is_expanded_once() -> None:
    values = {"task": "{previous_response}", "previous_response": "{task}"}
    assert expand("{task}{previous_response}", values, {}, missing_report="") == "{previous_response}{task}"
