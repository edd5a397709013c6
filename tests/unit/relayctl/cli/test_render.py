import json

import pytest

from relayctl.cli import render
from relayctl.cli.render import Column


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("203.0.113.10:3478", "203.0.113.10:3478"),
        ("\x1b]0;owned\x07", "\\x1b]0;owned\\x07"),
        ("a\nb\tc\x7f", "a\\nb\\tc\\x7f"),
        ("\x9b31m", "\\x9b31m"),
        ("abc\u202ecba", "abc\\u202ecba"),
        ("naïve", "naïve"),
    ],
)
def test_escape_takes_the_sting_out_of_control_characters(text: str, shown: str) -> None:
    assert render.escape(text) == shown


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (999_949, "999.9 kB"),
        (999_950, "1.0 MB"),
        (2_500_000_000, "2.5 GB"),
        (10**15, "1000.0 TB"),
    ],
)
def test_size(value: int, text: str) -> None:
    assert render.size(value) == text


def test_table_cells_are_escaped_and_markup_is_text(capsys: pytest.CaptureFixture[str]) -> None:
    columns = (Column("NAME", lambda record: record["name"]),)
    render.table(columns, [{"name": "[red]\x1b[2J"}, {"name": None}])
    *_, first, second = capsys.readouterr().out.splitlines()
    assert first.strip() == "[red]\\x1b[2J"
    assert second.strip() == "-"


def test_table_is_not_cut_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    render.table((Column("NAME", lambda record: record["name"]),), [{"name": "x" * 500}])
    assert "x" * 500 in capsys.readouterr().out


def test_pairs_are_aligned_and_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    render.pairs([("a", 1), ("long", "x\x1b")])
    assert capsys.readouterr().out == "a     1\nlong  x\\x1b\n"


def test_json_has_no_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    render.json_document({"name": "\x1b[2J\u202e"})
    text = capsys.readouterr().out
    assert "\x1b" not in text
    assert text.isascii()
    assert json.loads(text) == {"name": "\x1b[2J\u202e"}


@pytest.mark.parametrize(
    ("value", "lines"), [([], 1), ([{"a": {"b": 1}}, {"a": 2}], 4), ({"a": [1, 2]}, 6)]
)
def test_json_of_a_list_has_one_entry_a_line(
    value: object, lines: int, capsys: pytest.CaptureFixture[str]
) -> None:
    render.json_document(value)
    text = capsys.readouterr().out
    assert json.loads(text) == value
    assert len(text.splitlines()) == lines
