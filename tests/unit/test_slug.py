"""The folder of a run: its slug and its timestamp."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cadenza.core.slug import slugify, timestamp


@pytest.mark.parametrize(
    ("task", "slug"),
    [
        ("Fix the Bug", "fix-the-bug"),
        ("  --Fix__the...bug!!  ", "fix-the-bug"),
        ("a" * 40, "a" * 30),
        ("abcdefghij abcdefghij abcdefg hij", "abcdefghij-abcdefghij-abcdefg"),
        ("ユーザー認証を追加する", "ユーザー認証を追加する"),
        ("認証 API を追加", "認証-api-を追加"),
        ("が" * 3, "が" * 3),
        ("Ünïcode ÄÖ ß", "ünïcode-äö-ß"),
        ("हिन्दी कार्य", "हिन्दी-कार्य"),
        ("../../etc/passwd", "etc-passwd"),
        ("C:\\temp\\x", "c-temp-x"),
        ("a\0b\ud800c", "a-b-c"),
        ("v1.2", "v1-2"),
        ("٣ ملفات", "٣-ملفات"),
        ("🎼️ play", "play"),
        ("½ ① ²", "task"),
        ("", "task"),
        ("...", "task"),
        ("\n\t", "task"),
        ("!" * 30 + "late", "task"),
    ],
)
def test_slugify(task: str, slug: str) -> None:
    assert slugify(task) == slug


@given(st.text(max_size=80))
def test_a_slug_is_always_a_plain_folder_name(task: str) -> None:
    slug = slugify(task)
    assert slug
    assert not slug.startswith("-")
    assert not slug.endswith("-")
    assert "--" not in slug
    assert all(char == "-" or unicodedata.category(char)[0] in "LMN" for char in slug)
    assert len(slug.encode("utf-8")) < 200
    assert slugify(task[:30]) == slug


@pytest.mark.parametrize(
    ("at", "text"), [(0.0, "19700101-000000"), (1769850300.999, "20260131-090500"), (1e9, "20010909-014640")]
)
def test_timestamp_is_utc(at: float, text: str) -> None:
    assert timestamp(at) == text
