"""The scripted provider: which entry answers which call, both file formats, and their mistakes."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cadenza.core.outcomes import Usage
from cadenza.errors import NotFound, PieceError, ProviderError
from cadenza.providers.base import CallKey, ChatMessage, ModelProvider, ModelReply, ModelRequest
from cadenza.providers.models.script import takt_persona
from cadenza.providers.models.scripted import Script, ScriptedProvider, load_script

SCENARIOS = "takt-0.28/e2e/fixtures/scenarios"


def call(
    script: Script, movement: str = "plan", persona: str = "default", purpose: str = "perform", **more: Any
) -> ModelReply:
    return call_streaming(script, movement, persona, purpose, **more)[0]


def call_streaming(
    script: Script,
    movement: str = "plan",
    persona: str = "default",
    purpose: str = "perform",
    prompt: str = "Do it.",
    **more: Any,
) -> tuple[ModelReply, list[str]]:
    heard: list[str] = []
    request = ModelRequest(
        messages=(ChatMessage("user", prompt),),
        demand="d1",
        movement=movement,
        persona=persona,
        purpose=purpose,
        **more,
    )
    return asyncio.run(ScriptedProvider(script).complete(request, heard.append)), heard


def play(script: Script, calls: list[CallKey]) -> list[str | None]:
    """The texts for a sequence of calls, counted as a run counts them."""
    earlier: Counter[CallKey] = Counter()
    texts = []
    for key in calls:
        entry = script.pick(key, earlier)
        texts.append(entry.text if entry else None)
        earlier[key] += 1
    return texts


def plan(purpose: str = "perform", persona: str = "default") -> CallKey:
    return ("plan", persona, purpose)


# The rule


def test_entries_of_one_pattern_answer_in_file_order() -> None:
    script = Script.from_entries([{"movement": "plan", "text": "a"}, {"movement": "plan", "text": "b"}])
    assert play(script, [plan(), plan(), plan()]) == ["a", "b", None]


def test_times_and_forever_say_how_often_an_entry_answers() -> None:
    script = Script.from_entries([{"text": "a", "times": 2}, {"text": "b", "times": "forever"}])
    assert play(script, [plan()] * 5) == ["a", "a", "b", "b", "b"]


def test_the_most_specific_pattern_answers_first_wherever_it_stands() -> None:
    fields = {"movement": "plan", "persona": "coder", "purpose": "rules"}
    entries: list[dict[str, Any]] = []
    for size in range(4):
        for names in itertools.combinations(fields, size):
            entries.append({name: fields[name] for name in names} | {"text": "+".join(names)})
    script = Script.from_entries(entries)
    key = plan("rules", "coder")
    assert play(script, [key] * 4) == ["movement+persona+purpose", "movement+purpose", "purpose", ""]
    assert play(script, [plan("perform", "coder")] * 3) == ["movement+persona", "movement", ""]
    assert play(script, [("other", "coder", "rules")] * 3) == ["persona+purpose", "purpose", ""]
    assert play(script, [("other", "coder", "perform")] * 2) == ["persona", ""]


def test_a_movements_text_never_answers_its_judge_where_there_are_entries_for_judges() -> None:
    script = Script.from_entries([{"movement": "plan", "text": "plan"}, {"purpose": "rules", "text": "0"}])
    assert play(script, [plan("rules"), plan(), plan("rules")]) == ["0", "plan", None]


def test_overflow_of_several_queues_is_counted_together() -> None:
    script = Script.from_entries(
        [
            {"movement": "plan", "text": "plan"},
            {"movement": "code", "text": "code"},
            {"text": "rest 1"},
            {"text": "rest 2"},
        ]
    )
    code: CallKey = ("code", "default", "perform")
    assert play(script, [plan(), code, code, plan(), plan()]) == ["plan", "code", "rest 1", "rest 2", None]


FIELD = st.sampled_from([None, "x", "y"])
ENTRY = st.fixed_dictionaries(
    {"movement": FIELD, "persona": FIELD, "purpose": FIELD, "times": st.sampled_from([1, 2, "forever"])}
)
KEY = st.tuples(*[st.sampled_from(["x", "y", "z"])] * 3)


@given(st.lists(ENTRY, max_size=8), st.lists(KEY, max_size=12))
def test_every_answer_is_given_as_often_as_it_says_and_only_to_calls_it_matches(
    patterns: list[dict[str, Any]], calls: list[CallKey]
) -> None:
    entries = [
        {k: v for k, v in pattern.items() if v is not None} | {"text": str(number)}
        for number, pattern in enumerate(patterns)
    ]
    script = Script.from_entries(entries)
    given_out = play_entries(script, calls)
    for number, times in Counter(number for number in given_out if number is not None).items():
        assert times <= script.entries[number].times
    for key, entry in zip(calls, given_out, strict=True):
        assert entry is None or script.entries[entry] in script.candidates(key)


@given(st.lists(ENTRY, max_size=8), st.lists(KEY, min_size=1, max_size=8), st.randoms())
def test_what_a_call_gets_does_not_depend_on_the_order_of_earlier_calls(
    patterns: list[dict[str, Any]], calls: list[CallKey], random: Any
) -> None:
    script = Script.from_entries(
        [{k: v for k, v in pattern.items() if v is not None} | {"text": "t"} for pattern in patterns]
    )
    *earlier, last = calls
    shuffled = earlier.copy()
    random.shuffle(shuffled)
    assert script.pick(last, Counter(earlier)) is script.pick(last, Counter(shuffled))
    given_out = Counter(play_entries(script, calls))
    assert given_out == Counter(play_entries(script, [*shuffled, last]))


def play_entries(script: Script, calls: list[CallKey]) -> list[int | None]:
    earlier: Counter[CallKey] = Counter()
    found = []
    for key in calls:
        entry = script.pick(key, earlier)
        found.append(None if entry is None else script.entries.index(entry))
        earlier[key] += 1
    return found


def test_another_attempt_of_a_call_is_the_same_call() -> None:
    script = Script.from_entries([{"text": "a"}, {"text": "b"}])
    assert call(script, attempt=1).text == call(script, attempt=7).text == "a"


# Answers


def test_json_is_the_text_on_one_line_and_the_structured_answer() -> None:
    reply = call(Script.from_entries([{"json": {"rule": 1, "理由": "はい"}}]))
    assert (reply.text, reply.structured) == ('{"rule":1,"理由":"はい"}', {"rule": 1, "理由": "はい"})


def test_chunks_are_streamed_one_by_one_and_make_up_the_text() -> None:
    reply, heard = call_streaming(Script.from_entries([{"chunks": ["a", {"text": "b", "delay": 0.001}]}]))
    assert (reply.text, heard) == ("ab", ["a", "b"])


def test_a_text_without_chunks_is_streamed_whole() -> None:
    assert call_streaming(Script.from_entries([{"text": "abc"}]))[1] == ["abc"]


def test_usage_is_as_written_or_else_four_characters_a_token() -> None:
    usage = {"input": 100, "output": 7, "cached": 90}
    assert call(Script.from_entries([{"text": "abc", "usage": usage}])).usage == Usage(100, 7, 90)
    assert call(Script.from_entries([{"text": "abcde"}]), prompt="x" * 9).usage == Usage(3, 2, 0)


def test_status_and_model_are_passed_on() -> None:
    reply = call(Script.from_entries([{"text": "?", "status": "blocked"}]), model="m")
    assert (reply.status, reply.model) == ("blocked", "m")


def test_an_error_fails_the_first_attempts_and_then_the_text_comes() -> None:
    error = {"status": 429, "retry_after": 1.5, "message": "slow down", "times": 2}
    script = Script.from_entries([{"error": error, "text": "at last"}])
    for attempt in (1, 2):
        with pytest.raises(ProviderError, match="slow down") as caught:
            call(script, attempt=attempt)
        failed = caught.value
        assert (failed.code, failed.status, failed.retry_after) == ("rate_limited", 429, 1.5)
        assert failed.retriable
    assert call(script, attempt=3).text == "at last"


@pytest.mark.parametrize(
    ("error", "code", "retriable"),
    [
        ({"status": 500}, "server", True),
        ({"status": 409}, "unavailable", True),
        ({"status": 408}, "timeout", True),
        ({"status": 401}, "auth", False),
        ({"status": 404}, "not_found", False),
        ({"status": 422}, "bad_request", False),
        ({"code": "cut"}, "cut", True),
        ({}, "failed", False),
    ],
)
def test_an_error_without_a_text_fails_every_attempt(
    error: dict[str, Any], code: str, retriable: bool
) -> None:
    with pytest.raises(ProviderError) as caught:
        call(Script.from_entries([{"error": error}]), attempt=9)
    assert (caught.value.code, caught.value.retriable) == (code, retriable)


def test_a_script_that_runs_dry_says_which_call_and_where_to_add_what(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text("cadenza-script: 1\nentries:\n  - movement: plan\n    text: a\n", encoding="utf-8")
    script = load_script(file)
    with pytest.raises(ProviderError) as caught:
        call(script, persona="planner", earlier={("plan", "planner", "perform"): 1})
    told = str(caught.value)
    assert (caught.value.code, caught.value.retriable) == ("script", False)
    for part in (
        str(file),
        '"plan"',
        '"planner"',
        '"perform"',
        "1 such call was made",
        f"{file}:3:5",
        "times",
    ):
        assert part in told
    with pytest.raises(ProviderError, match="no entry of this script matches"):
        call(script, movement="review")


def test_a_scripted_provider_is_a_model_provider() -> None:
    assert isinstance(ScriptedProvider(Script([])), ModelProvider)


# Files of our own form


def problems(tmp_path: Path, text: str, name: str = "s.yaml") -> list[str]:
    file = tmp_path / name
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(PieceError) as caught:
        load_script(file)
    return [problem.removeprefix(f"{file}:") for problem in caught.value.problems]


HEAD = "cadenza-script: 1\nentries:\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "1:1: the script is empty"),
        ("entries: []\n", "1:1: not a script; its first line must be `cadenza-script: 1`"),
        ("- text: a\n  broken: [\n", "1:1: broken"),
        ("cadenza-script: 1\nentries:\n  - text: 'a\n", "4:1: broken YAML"),
        ("cadenza-script: 2\nentries: []\n", "1:1: unknown script version (2); this one reads 1"),
        ("cadenza-script: 1\n", "1:1: `entries` must be a list (nothing)"),
        (
            "cadenza-script: 1\nentrys: []\nentries: []",
            "2:1: unknown key ('entrys', did you mean",
        ),
        (HEAD + "  - hello\n", "3:5: an entry must be a mapping ('hello')"),
        (HEAD + "  - txet: a\n    text: a\n", "3:5: unknown key ('txet', did you mean `text`?)"),
        (HEAD + "  - text: 5\n", "3:5: `text` must be text (5); correct it; quote it"),
        (HEAD + "  - text:\n", "3:5: `text` has no value"),
        (HEAD + "  - text: a\n    movement: [b]\n", "4:5: `movement` must be text (['b'])"),
        (HEAD + "  - movement: plan\n", "3:5: this entry answers nothing"),
        (HEAD + "  - text: a\n    json: {}\n", "4:5: `json` stands beside `text`"),
        (HEAD + "  - text: a\n    text: b\n", "4:5: `text` stands here twice"),
        (HEAD + "  - json: 2020-01-01\n", "3:5: `json` holds what JSON cannot"),
        (HEAD + "  - json: .nan\n", "3:5: `json` holds what JSON cannot"),
        (
            HEAD + "  - text: a\n    times: 0\n",
            "4:5: `times` must be a whole number from 1",
        ),
        (HEAD + "  - text: a\n    delay: -1\n", "4:5: `delay` must be a number of seconds, 0 or more (-1)"),
        (
            HEAD + "  - text: a\n    status: dnoe\n",
            "4:5: `status` is not known ('dnoe', did you",
        ),
        (HEAD + "  - error: {code: serve}\n", "3:13: `code` is not known ('serve', did you mean `server`?)"),
        (HEAD + "  - error: {statsu: 1}\n", "3:13: unknown key ('statsu', did you mean `status`?)"),
        (HEAD + "  - error: {times: 2}\n", "3:5: `error` ends after some attempts"),
        (
            HEAD + "  - text: a\n    usage: {input: 1, cached: 2}\n",
            "4:23: `cached` is more than `input`",
        ),
        (HEAD + "  - chunks: [a, 3]\n", "3:17: a chunk must be text, or text and delay (3)"),
        (HEAD + '  - text: "\\ud800"\n', "3:5: `text` holds half a surrogate pair"),
        ("cadenza-script: 1\nentries: []\n\x00", "1:1: broken YAML"),
    ],
)
def test_a_mistake_in_a_script_is_named_with_its_line(tmp_path: Path, text: str, expected: str) -> None:
    found = problems(tmp_path, text)
    assert len(found) == 1, found
    assert found[0].startswith(expected) or (expected == "1:1: broken" and "broken" in found[0]), found


def test_all_mistakes_are_reported_at_once(tmp_path: Path) -> None:
    found = problems(tmp_path, HEAD + "  - text: 1\n  - text: 2\n  - movement: x\n")
    assert [line.split(": ")[0] for line in found] == ["3:5", "4:5", "5:5"]


def test_a_missing_a_binary_and_an_unreadable_script_are_one_clear_error_each(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"nowhere\.yaml"):
        load_script(tmp_path / "nowhere.yaml")
    with pytest.raises(PieceError, match="cannot be read"):
        load_script(tmp_path)
    (tmp_path / "b.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(PieceError, match="not UTF-8"):
        load_script(tmp_path / "b.yaml")


def test_the_example_in_the_documentation_of_the_format_is_a_script(tmp_path: Path) -> None:
    from textwrap import dedent

    from cadenza.providers.models import script_file

    example = dedent((script_file.__doc__ or "").split("::\n", 1)[1].split("A file whose", 1)[0])
    (tmp_path / "s.yaml").write_text(example, encoding="utf-8")
    script = load_script(tmp_path / "s.yaml")
    assert script.dialect == "cadenza"
    assert play(script, [plan(), plan("rules"), plan("rules")]) == [
        "1. Do it. [PLAN:0]",
        '{"rule":0}',
        '{"rule":0}',
    ]


def test_entries_from_python_are_checked_like_those_of_a_file() -> None:
    with pytest.raises(PieceError, match=r"demo: entry 2: unknown key \('txt', did you mean `text`\?\)"):
        Script.from_entries([{"text": "a"}, {"txt": "b", "text": "c"}], name="demo")


# TAKT scenarios


def scenario(tmp_path: Path, entries: list[dict[str, Any]]) -> Script:
    file = tmp_path / "s.json"
    file.write_text(json.dumps(entries, indent=2), encoding="utf-8")
    return load_script(file)


def test_a_persona_entry_beats_an_earlier_unnamed_one(tmp_path: Path) -> None:
    script = scenario(tmp_path, [{"content": "any"}, {"persona": "coder", "content": "coder"}])
    assert play(script, [plan(persona="coder")] * 3) == ["coder", "any", None]


def test_the_judge_is_known_as_conductor_and_a_call_without_persona_as_default(tmp_path: Path) -> None:
    script = scenario(
        tmp_path, [{"persona": "conductor", "content": "j"}, {"persona": "default", "content": "d"}]
    )
    assert play(script, [plan("rules", "coder"), plan(persona="")]) == ["j", "d"]


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        (None, "default"),
        ("coder", "coder"),
        ("personas/coder.md", "coder"),
        ("../personas/coder.md", "coder"),
        ("../agents/test-coder.md", "agents/test-coder"),
        ("/x/agents/test-coder.md", "agents/test-coder"),
        ("coder.md", "coder"),
        ("agents/test-coder", "agents/test-coder"),
    ],
)
def test_a_persona_is_named_as_takt_names_it(spec: str | None, name: str) -> None:
    assert takt_persona(spec) == name


def test_a_scenario_that_has_no_entry_left_answers_takts_default(tmp_path: Path) -> None:
    reply = call(scenario(tmp_path, []), persona="../agents/a.md", prompt="x" * 150)
    assert reply.text == f'[MOCK:DONE]\n\nMock response for persona "agents/a".\nPrompt: {"x" * 100}...'


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ("done", "done"),
        ("approved", "done"),
        ("rejected", "done"),
        ("improve", "done"),
        ("blocked", "blocked"),
        ("error", "error"),
    ],
)
def test_the_statuses_of_both_generations_are_read(tmp_path: Path, status: str, expected: str) -> None:
    assert call(scenario(tmp_path, [{"status": status, "content": "c"}])).status == expected


def test_rate_limited_is_a_failed_call_that_is_not_tried_again(tmp_path: Path) -> None:
    with pytest.raises(ProviderError, match="quota") as caught:
        call(scenario(tmp_path, [{"status": "rate_limited", "content": "quota"}]))
    assert (caught.value.code, caught.value.retriable) == ("rate_limited", False)


def test_structured_output_is_kept_and_is_the_text_where_json_was_asked_for(tmp_path: Path) -> None:
    script = scenario(tmp_path, [{"content": "c", "structured_output": {"step": 2}}])
    assert (call(script).text, call(script).structured) == ("c", {"step": 2})
    assert call(script, schema={"type": "object"}).text == '{"step":2}'


def test_text_chunks_and_delays_are_in_milliseconds(tmp_path: Path) -> None:
    chunks = [{"text": "a", "delay_ms": 1}, {"text": "b"}]
    script = scenario(tmp_path, [{"content": "ab", "delay_ms": 2, "text_chunks": chunks}])
    assert script.entries[0].delay == 0.002
    assert call_streaming(script)[1] == ["a", "b"]


def test_wait_for_abort_answers_never(tmp_path: Path) -> None:
    script = scenario(tmp_path, [{"content": "", "wait_for_abort": True}])

    async def wait() -> None:
        request = ModelRequest(messages=(), demand="d", movement="m")
        async with asyncio.timeout(0.05):
            await ScriptedProvider(script).complete(request, lambda _: None)

    with pytest.raises(TimeoutError):
        asyncio.run(wait())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[\n  {,}]", "2:4: broken JSON"),
        ('[\n\t{"content": "a"},\n\t{"persona": "p"}\n]', "3:2: `content` is missing"),
        ('[{"content": "a"},\n 5]', "2:2: an entry must be a mapping (5)"),
        ('[{"content": "a",\n  "statsu": "done"}]', "2:3: unknown key ('statsu', did you mean `status`?)"),
        (
            '[{"content": "a",\n  "status": "dnoe"}]',
            "2:3: `status` is not known ('dnoe', did you",
        ),
        ('[{"content": 1}]', "1:3: `content` must be text (1)"),
        ('[{"content": "\\ud83d"}]', "1:3: `content` holds half a surrogate pair"),
        ('[{"content": "a", "file_writes": [{"path": "p"}]}]', "1:19: `file_writes` is not played"),
        ("5", "1:1: a scenario must be an array of answers (5)"),
        ("", "1:1: broken JSON"),
    ],
)
def test_a_mistake_in_a_scenario_is_named_with_its_line(tmp_path: Path, text: str, expected: str) -> None:
    found = problems(tmp_path, text, "s.json")
    assert len(found) == 1, found
    assert found[0].startswith(expected), found


def test_every_scenario_of_takts_own_tests_is_served_entry_by_entry() -> None:
    corpus = os.environ.get("CADENZA_CORPUS")
    if not corpus:
        pytest.skip("CADENZA_CORPUS is not set: the folder that holds takt-0.28")
    files = sorted((Path(corpus) / SCENARIOS).glob("*.json"))
    assert len(files) == 11
    for file in files:
        written = json.loads(file.read_text(encoding="utf-8"))
        script = load_script(file)
        assert script.dialect == "takt"
        # Unnamed entries also serve personas that have none left, so each persona is asked first.
        calls = [("m", _spec(e.get("persona", "nobody")), "perform") for e in written]
        assert play(script, calls) == [e["content"] for e in written], file.name


def _spec(persona: str) -> str:
    return f"../{persona}.md" if "/" in persona else persona
