import functools
import json
import os
from typing import Any

import pytest

from relayctl.wire.call_id import CallId
from transceiver.resume import record
from transceiver.resume.record import (
    MAX_ITEMS,
    MAX_RECORD,
    Record,
    RecordError,
    claim_of,
    key_of,
    render,
    unseal,
)

seal = functools.partial(record.seal, random_bytes=os.urandom)
ID = CallId("A" * 24, "s" * 22)
ITEM = {"id": "i", "type": "message", "role": "user", "content": []}
RECORD = Record("anna", {"instructions": "ünïcødé \ud800"}, [ITEM])


def sealed(call: Record = RECORD, call_id: CallId = ID) -> bytes:
    return seal(render(call)[0], call_id)


def test_comes_back_as_it_was() -> None:
    assert unseal(sealed(), ID) == RECORD
    assert sealed() != sealed()  # the nonce is another


def test_shows_nothing_of_what_is_in_it() -> None:
    assert b"anna" not in sealed()
    assert b"instructions" not in sealed()
    assert ID.secret not in key_of(ID)


@pytest.mark.parametrize("other", [CallId("A" * 24, "t" * 22), CallId("B" * 24, "s" * 22)])
def test_is_of_one_call(other: CallId) -> None:
    """The second one has the same key, so the digest of the id is what tells them apart."""
    with pytest.raises(RecordError, match="not sealed for this call"):
        unseal(sealed(), other)


@pytest.mark.parametrize("at", [0, 1, 12, 13, 40, -1])
def test_is_not_changed_unnoticed(at: int) -> None:
    data = bytearray(sealed())
    data[at] ^= 1
    with pytest.raises(RecordError):
        unseal(bytes(data), ID)


@pytest.mark.parametrize("size", [0, 1, 13, 28])
def test_is_not_cut_unnoticed(size: int) -> None:
    with pytest.raises(RecordError):
        unseal(sealed()[:size], ID)


def test_the_version_is_authentic(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "VERSION", 2)
    newer = sealed()
    monkeypatch.undo()
    with pytest.raises(RecordError, match="no record of version 1"):
        unseal(newer, ID)
    with pytest.raises(RecordError, match="not sealed"):
        unseal(b"\x01" + newer[1:], ID)


@pytest.mark.parametrize(
    "values",
    [
        [],
        {},
        {"subject": 1, "session": {}, "items": []},
        {"subject": "", "session": [], "items": []},
        {"subject": "", "session": {}, "items": [{}]},
        {"subject": "", "session": {}, "items": ["x"]},
    ],
)
def test_what_we_would_not_write_is_not_read(values: Any) -> None:
    with pytest.raises(RecordError):
        unseal(seal(json.dumps(values).encode(), ID), ID)


def test_the_oldest_items_go_first() -> None:
    items = [{**ITEM, "id": str(n), "content": ["ü" * 1000]} for n in range(100)]
    text, dropped = render(Record("", {}, items))
    assert 0 < dropped < 100
    assert MAX_RECORD - 7000 < len(seal(text, ID)) <= MAX_RECORD
    assert unseal(seal(text, ID), ID).items == items[dropped:]


def test_items_are_counted_too() -> None:
    items = [{**ITEM, "id": str(n)} for n in range(MAX_ITEMS + 3)]
    text, dropped = render(Record("", {}, items))
    assert dropped == 3
    assert unseal(seal(text, ID), ID).items == items[3:]


def test_settings_that_leave_no_room_are_refused() -> None:
    with pytest.raises(RecordError, match="settings"):
        render(Record("", {"instructions": "x" * MAX_RECORD}, []))


def test_keys_of_a_call_are_in_one_place() -> None:
    key = key_of(ID)
    assert key.startswith("call:{")
    assert claim_of(ID) == f"{key}:resumed"
    assert key_of(CallId("A" * 24, "t" * 22)) != key
