"""The configuration: what is read from where, and what it makes of a piece."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cadenza.config import Configuration, apply
from cadenza.config.layers import Choice, Layer
from cadenza.errors import ConfigError, UsageError
from cadenza.ids import text_hash
from cadenza.journal import open_journal
from cadenza.piece.model import (
    CommandGate,
    Facet,
    Judge,
    LoopMonitor,
    Movement,
    Piece,
    Rule,
)
from cadenza.piece.vocabulary import Dialect, Language, Phases
from cadenza.service import Options, Service

Put = Callable[[str, str], Path]

PROJECT, PROJECT_TAKT = "project/.cadenza/config.yaml", "project/.takt/config.yaml"
USER, USER_OLD = "home/.config/cadenza/config.yaml", "home/.cadenza/config.yaml"
USER_TAKT = "home/.takt/config.yaml"
PLACES = (PROJECT, PROJECT_TAKT, USER, USER_OLD, USER_TAKT)


@pytest.fixture
def put(tmp_path: Path) -> Put:
    (tmp_path / "project").mkdir()

    def written(place: str, text: str) -> Path:
        path = tmp_path / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        return path

    return written


@pytest.fixture
def load(tmp_path: Path) -> Callable[..., Configuration]:
    def loaded(**environ: str) -> Configuration:
        return Configuration.load(tmp_path / "project", {"HOME": str(tmp_path / "home"), **environ})

    return loaded


Load = Callable[..., Configuration]


def persona(name: str) -> Facet:
    return Facet(name=name, text=text_hash(name))


def piece(*movements: Movement, dialect: Dialect = "takt", judge: Judge | None = None) -> Piece:
    monitors = (LoopMonitor(cycle=("a", "b"), judge=judge),) if judge else ()
    return Piece(
        name="p",
        dialect=dialect,
        initial_movement=movements[0].name,
        movements=movements,
        loop_monitors=monitors,
    )


def one(movement: Movement, config: Configuration, *cli: str | None, dialect: Dialect = "takt") -> Movement:
    return apply(piece(movement, dialect=dialect), config, *cli).movements[0]


def performer(movement: Movement | Judge) -> tuple[str | None, str | None]:
    return movement.provider, movement.model


# What is read


def test_without_files_nothing_is_said(load: Load) -> None:
    config = load()
    assert (config.language, config.base_url, config.command_gates) == (None, None, False)
    assert performer(one(Movement(name="a"), config)) == (None, None)


@pytest.mark.parametrize("nearest", range(len(PLACES)))
def test_the_nearest_file_wins(put: Put, load: Load, nearest: int) -> None:
    for at, place in enumerate(PLACES[nearest:], nearest):
        put(place, f"provider: scripted:{at}\nmodel: m{at}\nlanguage: {'ja' if at == nearest else 'en'}\n")
    config = load()
    assert performer(one(Movement(name="a"), config)) == (f"scripted:{nearest}", f"m{nearest}")
    assert config.language == "ja"


def test_the_environment_comes_before_the_files(put: Put, load: Load) -> None:
    put(PROJECT, "provider: openai\nmodel: m\nlanguage: en\n")
    config = load(CADENZA_PROVIDER="scripted:x", CADENZA_LANG="ja")
    assert performer(one(Movement(name="a"), config)) == ("scripted:x", None)
    assert config.language == "ja"


@pytest.mark.parametrize(
    ("variable", "place"),
    [("XDG_CONFIG_HOME", "x/cadenza/config.yaml"), ("TAKT_CONFIG_DIR", "x/config.yaml")],
)
def test_variables_move_the_users_folders(
    put: Put, load: Load, tmp_path: Path, variable: str, place: str
) -> None:
    put(place, "provider: openai\n")
    assert one(Movement(name="a"), load(**{variable: str(tmp_path / "x")})).provider == "openai"


def test_a_home_that_is_the_project_is_read_once(put: Put, tmp_path: Path) -> None:
    put(USER_OLD, "base_url: http://localhost:1\n")
    config = Configuration.load(tmp_path / "home", {"HOME": str(tmp_path / "home")})
    assert config.base_url == "http://localhost:1"


@pytest.mark.parametrize("text", ["", "# nothing yet\n", "---\n"])
def test_a_file_of_comments_says_nothing(put: Put, load: Load, text: str) -> None:
    put(PROJECT, text)
    assert load().choices[1].provider is None


def test_takts_sample_is_read_as_it_is(put: Put, load: Load) -> None:
    put(
        USER_TAKT,
        """
        language: en
        log_level: info
        provider: claude
        concurrency: 2
        runtime: {prepare: [gradle, node]}
        provider_options: {codex: {network_access: true}}
        provider_profiles: {cursor: {default_permission_mode: full}}
        """,
    )
    config = load()
    assert (config.choices[1].provider, config.language) == ("claude", "en")


MISTAKES = [
    ("modle: x", "1:1: a configuration has no such key (modle); did you mean model?"),
    ("- a", "1:1: a configuration must be a mapping, not a list"),
    ("language: fr", "1:11: language must be one of en, ja (fr)"),
    ("provider: 3", "1:11: provider must be text, not a number (3)"),
    ("provider: {model: x}", "1:11: a provider has no type"),
    (
        "provider_profiles: {openai: {default_permission_mode: all}}",
        "1:55: default_permission_mode must be one of",
    ),
    (
        "provider_profiles: {openai: {movement_permission_overrides: {a: none}}}",
        "1:65: a permission must be one of readonly, edit, full (none)",
    ),
    ("persona_providers: {a: [x]}", "1:24: the entry a must be a mapping, not a list"),
    ("persona_providers: {a: {modle: x}}", "the entry a has no such key (modle); did you mean model?"),
    ("workflow_command_gates: {custom_scripts: yes}", "1:42: custom_scripts must be true or false"),
    ("piece_overrides: {quality_gates: one}", "quality_gates must be a list, not text (one)"),
    ("base_url: localhost", "base_url must be a web address (localhost)"),
    (
        "base_url: http://x",
        "1:11: a project's configuration cannot say base_url (http://x); write it into your own",
    ),
    ("a: b: c", "1:5: this is not valid YAML"),
    ("model: x\nmodel: y", "2:1: this key was given already on line 1 (model)"),
]


@pytest.mark.parametrize(("text", "words"), MISTAKES, ids=[words for _, words in MISTAKES])
def test_a_mistake_names_its_place(put: Put, load: Load, text: str, words: str) -> None:
    put(PROJECT, text)
    with pytest.raises(ConfigError) as caught:
        load()
    lines = caught.value.message.splitlines()
    assert any(words in line for line in lines), lines
    assert all(line.startswith(".cadenza/config.yaml:") for line in lines)


def test_mistakes_of_all_files_are_told_at_once(put: Put, load: Load) -> None:
    put(PROJECT, "modle: x\nlanguage: fr\n")
    user = put(USER, "provder: openai\n")
    put(USER_TAKT, "provder: claude\nlanguage: xx\n")
    with pytest.raises(ConfigError) as caught:
        load()
    places = [line.split(" ")[0] for line in caught.value.message.splitlines()]
    assert places[:3] == [".cadenza/config.yaml:1:1:", ".cadenza/config.yaml:2:11:", f"{user}:1:1:"]
    assert len(places) == 4


@pytest.mark.parametrize("value", ["fr", "EN"])
def test_a_language_in_the_environment_that_is_none(load: Load, value: str) -> None:
    with pytest.raises(ConfigError, match="CADENZA_LANG"):
        load(CADENZA_LANG=value)


# Who performs


def test_the_order_of_those_who_name_a_provider(put: Put, load: Load) -> None:
    put(USER, "provider: scripted:user\nmodel: user-model\n")
    movement = Movement(name="a", persona=persona("coder"))
    assert performer(one(movement, load())) == ("scripted:user", "user-model")
    put(PROJECT, "provider: openai\nmodel: project-model\n")
    assert performer(one(movement, load())) == ("openai", "project-model")
    named = movement.changed(provider="scripted:own", model="own-model")
    assert performer(one(named, load())) == ("scripted:own", "own-model")
    put(PROJECT, "persona_providers: {coder: {provider: openai, model: coder-model}}\n")
    assert performer(one(named, load())) == ("openai", "coder-model")
    assert performer(one(named, load(), "scripted:cli")) == ("scripted:cli", "own-model")
    assert performer(one(named, load(), "anything", "cli-model")) == ("anything", "cli-model")


@pytest.mark.parametrize(
    ("movement", "key"),
    [
        (Movement(name="a", persona=persona("coder")), "coder"),
        (Movement(name="a", persona=persona("coder"), persona_name="agents/coder"), "agents/coder"),
        (Movement(name="a", persona=persona("coder"), persona_name="agents/coder"), "coder"),
        (Movement(name="a", persona_name="The Coder"), "The Coder"),
        (Movement(name="a"), "a"),
    ],
)
def test_a_persona_is_known_by_its_names(put: Put, load: Load, movement: Movement, key: str) -> None:
    put(PROJECT, f"provider: openai\npersona_providers: {{{key}: scripted:x}}\n")
    assert one(movement, load()).provider == "scripted:x"


@pytest.mark.parametrize(
    ("project", "model"),
    [
        ("provider: openai\nmodel: m", "m"),
        ("model: m", "m"),
        ("provider: scripted:x\nmodel: m", None),
    ],
)
def test_a_files_model_goes_with_its_provider(put: Put, load: Load, project: str, model: str | None) -> None:
    put(PROJECT, project)
    assert performer(one(Movement(name="a", provider="openai"), load())) == ("openai", model)


def test_a_model_of_takts_file_without_a_provider_is_one_of_claudes(put: Put, load: Load) -> None:
    put(PROJECT_TAKT, "model: sonnet\n")
    assert performer(one(Movement(name="a"), load(), "openai")) == ("openai", None)


def test_a_model_that_was_named_beside_a_provider_is_not_asked_of_another(put: Put, load: Load) -> None:
    put(PROJECT, "provider: openai\nmodel: qwen\n")
    movement = Movement(name="a", provider="claude", model="opus")
    assert performer(one(movement, load())) == ("openai", "qwen")
    assert performer(one(movement, load(), "scripted:x")) == ("scripted:x", None)
    assert performer(one(Movement(name="a", model="big"), load())) == ("openai", "big")


@pytest.mark.parametrize("name", ["claude", "codex", "opencode", "cursor", "copilot", "mock"])
def test_takts_agents_do_not_stand_in_the_way(put: Put, load: Load, name: str) -> None:
    put(USER_TAKT, f"provider: {name}\npersona_providers: {{coder: {name}}}\n")
    movement = Movement(name="a", provider=name, persona=persona("coder"))
    assert one(movement, load(), "openai").provider == "openai"
    put(USER, "provider: scripted:x\n")
    assert one(movement, load()).provider == "scripted:x"


def test_when_nothing_else_is_named_the_error_says_who_names_whom(put: Put, load: Load) -> None:
    put(USER_TAKT, "provider: claude\n")
    movements = (Movement(name="a", provider="codex"), Movement(name="b", provider="openai"))
    with pytest.raises(UsageError) as caught:
        apply(piece(*movements), load())
    assert caught.value.message == "no provider is known for movement a, which names codex and claude"
    assert "--provider" in str(caught.value.hint)
    whole = apply(piece(*movements), load(), any_provider=True)
    assert [movement.provider for movement in whole.movements] == ["codex", "openai"]


def test_our_own_files_must_name_providers_that_there_are(put: Put, load: Load) -> None:
    put(PROJECT, "provider: opnai\n")
    with pytest.raises(ConfigError) as caught:
        one(Movement(name="a"), load())
    assert str(caught.value).startswith(
        ".cadenza/config.yaml:1:11: there is no provider of this name (opnai)"
    )
    assert "did you mean openai?" in str(caught.value)
    with pytest.raises(ConfigError, match="p, movement a: there is no provider of this name"):
        one(Movement(name="a", provider="mock"), load(), dialect="native")
    assert one(Movement(name="a", provider="mock"), load(), "openai", dialect="native").provider == "openai"


def test_lanes_and_judges_are_resolved_too(put: Put, load: Load) -> None:
    put(PROJECT, "provider: openai\npersona_providers: {critic: scripted:c, loop-judge: scripted:j}\n")
    lanes = (Movement(name="x", persona=persona("critic")), Movement(name="y", model="m"))
    rules = (Rule(condition="on", next="a"),)
    played = apply(piece(Movement(name="a", lanes=lanes), judge=Judge(rules=rules)), load())
    assert [performer(lane) for lane in played.movements[0].lanes] == [("scripted:c", None), ("openai", "m")]
    assert played.loop_monitors[0].judge.provider == "scripted:j"
    judge = Judge(rules=rules, persona=persona("critic"))
    assert (
        apply(piece(Movement(name="a"), judge=judge), load()).loop_monitors[0].judge.provider == "scripted:c"
    )


def test_a_piece_that_was_applied_is_another_piece_and_stays_so(put: Put, load: Load) -> None:
    put(PROJECT, "provider: openai\nmodel: m\npiece_overrides: {quality_gates: [g]}\n")
    before = piece(Movement(name="a", quality_gates=("own",)))
    first = before.hash
    after = apply(before, load())
    assert after.hash not in (first, "")
    assert after.hash == text_hash(after.source)
    assert apply(after, load()) == after


# Permissions and gates


@pytest.mark.parametrize(
    ("project", "user", "required", "resolved"),
    [
        ("", "", None, "edit"),
        ("", "", "full", "full"),
        ("", "", "readonly", "edit"),
        ("default_permission_mode: readonly", "", None, "readonly"),
        ("", "default_permission_mode: full", None, "full"),
        ("default_permission_mode: readonly", "default_permission_mode: full", None, "readonly"),
        ("default_permission_mode: full", "movement_permission_overrides: {a: readonly}", None, "readonly"),
        (
            "movement_permission_overrides: {a: full}",
            "movement_permission_overrides: {a: readonly}",
            None,
            "full",
        ),
        ("movement_permission_overrides: {b: full}", "", None, "edit"),
        ("movement_permission_overrides: {a: readonly}", "", "edit", "edit"),
    ],
)
def test_what_a_movement_may_do(
    put: Put, load: Load, project: str, user: str, required: str | None, resolved: str
) -> None:
    for place, profile in ((PROJECT, project), (USER, user)):
        put(
            place,
            f"provider_profiles:\n  openai: {{{profile}}}\n  other: {{default_permission_mode: full}}\n",
        )
    movement = Movement.model_validate({"name": "a", "required_permission_mode": required})
    assert one(movement, load(), "openai").permission == resolved


def test_a_profile_is_found_by_the_providers_kind(put: Put, load: Load) -> None:
    put(PROJECT_TAKT, "provider_profiles: {scripted: {default_permission_mode: readonly}}\n")
    assert one(Movement(name="a"), load(), "scripted:/some/file").permission == "readonly"


@pytest.mark.parametrize(
    ("project", "user", "allowed"),
    [
        (None, None, False),
        ("true", None, True),
        (None, "true", True),
        ("false", "true", False),
    ],
)
def test_commands_as_gates_need_to_be_allowed(
    put: Put, load: Load, project: str | None, user: str | None, allowed: bool
) -> None:
    for place, said in ((PROJECT_TAKT, project), (USER, user)):
        if said:
            put(place, f"workflow_command_gates: {{custom_scripts: {said}}}\n")
    gated = Movement(name="a", lanes=(Movement(name="l", command_gates=(CommandGate(command="make test"),)),))
    if allowed:
        assert one(gated, load()).lanes[0].command_gates == gated.lanes[0].command_gates
        return
    with pytest.raises(UsageError) as caught:
        one(gated, load())
    assert "l: make test" in caught.value.message
    assert "workflow_command_gates: {custom_scripts: true}" in str(caught.value.hint)


def test_gates_of_the_configuration_are_added(put: Put, load: Load) -> None:
    put(USER, "piece_overrides: {quality_gates: [from the user, both]}\n")
    put(
        PROJECT,
        """
        piece_overrides:
          quality_gates: [when editing]
          quality_gates_edit_only: true
          movements: {a: {quality_gates: [for a]}}
        """,
    )
    a = Movement(name="a", quality_gates=("own", "both"))
    assert one(a, load()).quality_gates == ("from the user", "both", "for a", "own")
    edit = Movement(name="b", edit=True)
    assert one(edit, load()).quality_gates == ("from the user", "both", "when editing")


# Settings


def test_settings_take_what_the_environment_does_not_say(put: Put, load: Load) -> None:
    put(PROJECT, "provider: openai\nmodel: m\nlanguage: ja\n")
    put(USER, "base_url: http://localhost:8080/v1\nmodel: other\n")
    settings = load().settings({})
    assert (settings.provider, settings.model, settings.language) == ("openai", "m", "ja")
    assert settings.base_url == "http://localhost:8080/v1"
    environ = {"CADENZA_PROVIDER": "scripted:x", "CADENZA_LANG": "en", "OPENAI_BASE_URL": "http://env"}
    settings = load(**environ).settings(environ)
    assert (settings.provider, settings.language, settings.base_url) == ("scripted:x", "en", "http://env")
    assert settings.model == "other"


# At the start of a run


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("CADENZA_PROVIDER", "CADENZA_MODEL", "CADENZA_LANG", "XDG_CONFIG_HOME", "TAKT_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)
    journal = open_journal(":memory:")
    yield Service(journal)
    journal.close()


@pytest.mark.parametrize("phases", ["single", "three"])
@pytest.mark.parametrize("language", ["en", "ja"])
@pytest.mark.parametrize("name", ["hello", "plan-build-review", "research"])
def test_our_own_pieces_begin_in_both_phases(
    put: Put, service: Service, tmp_path: Path, name: str, language: Language, phases: Phases
) -> None:
    options = Options(cwd=tmp_path / "project", language=language, phases=phases)
    run = service.start(name, "find out", options)
    played = service.piece(run)
    assert (played.name, played.phases, played.language) == (name, phases, language)


def test_a_run_pins_what_the_projects_configuration_resolved(
    put: Put, service: Service, tmp_path: Path
) -> None:
    put(
        PROJECT,
        """
        provider: openai
        model: m
        persona_providers: {helper: {provider: scripted:x}}
        provider_profiles: {scripted: {default_permission_mode: readonly}}
        """,
    )
    run = service.start("hello", "say it", Options(cwd=tmp_path / "project"))
    put(PROJECT, "provider: nobody\n")
    (movement,) = service.piece(run).movements
    assert (movement.provider, movement.model, movement.permission) == ("scripted:x", None, "readonly")
    assert service.state(run).run.provider is None


def test_what_the_configuration_forbids_is_no_run(put: Put, service: Service, tmp_path: Path) -> None:
    put(
        "project/p.yaml",
        """
        name: p
        movements:
          - name: a
            quality_gates: [{type: command, command: make test}]
            rules: [{condition: x, next: COMPLETE}]
        """,
    )
    options = Options(cwd=tmp_path / "project")
    with pytest.raises(UsageError, match="a: make test"):
        service.start("./p.yaml", "do it", options)
    put(PROJECT, "language: fr\n")
    with pytest.raises(ConfigError, match="language must be one of"):
        service.start("./p.yaml", "do it", options)
    assert service.runs() == []
    put(PROJECT, "workflow_command_gates: {custom_scripts: true}\n")
    assert service.start("./p.yaml", "do it", options)


def test_a_model_that_stands_alone_belongs_to_the_provider_that_the_layers_come_to() -> None:
    alone, owner = Layer("project", "a.yaml", choice=Choice(model="gpt-big")), Choice(provider="openai")
    config = Configuration((alone, Layer("user", "b.yaml", choice=owner)))
    first, second = config.choices
    assert first.model_for("openai") == "gpt-big"
    assert first.model_for("anthropic") is None
    assert second.provider == "openai"
