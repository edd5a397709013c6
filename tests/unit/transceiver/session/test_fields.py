import pytest

from transceiver.session import fields
from transceiver.session.fields import Refusal


def test_a_field_is_read() -> None:
    assert fields.text({"a": "b"}, "a") == "b"
    assert fields.number({"a": 5}, "a") == 5
    assert fields.number({}, "a", 7) == 7
    assert fields.mapping({"a": 1}, "a") == {"a": 1}
    assert fields.size({"a": 1}, "a") == len('{"a": 1}')


@pytest.mark.parametrize("value", [None, 5, [], {}])
def test_a_text_is_a_string(value: object) -> None:
    with pytest.raises(Refusal, match=r"outer\.a is .*: want a string"):
        fields.text({"a": value}, "a", "outer.")


@pytest.mark.parametrize("value", [None, -1, 1.0, True, "1"])
def test_a_number_is_a_whole_one_from_0(value: object) -> None:
    with pytest.raises(Refusal, match=r"a is .*: want an integer"):
        fields.number({"a": value}, "a", 0 if value is not None else None)


def test_a_long_value_is_not_shown_whole() -> None:
    refusal = fields.invalid("a", "x" * 1000, "less")
    assert len(refusal.message) < 100


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {"a": object()}, {(1, 2): 3}])
def test_what_json_cannot_say_has_no_size(value: object) -> None:
    with pytest.raises(Refusal, match="plain JSON"):
        fields.size(value, "a")
