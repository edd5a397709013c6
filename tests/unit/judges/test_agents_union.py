"""The judge asks Node once for a list, so these tests do too."""

from typing import Any

import pytest

from tests.judges import agents_union

ITEM: dict[str, Any] = {
    "id": "item_1",
    "object": "realtime.item",
    "type": "message",
    "status": "completed",
    "role": "user",
    "content": [{"type": "input_audio", "transcript": None}],
}
ADDED = {"type": "conversation.item.added", "event_id": "event_1", "item": ITEM}
needs_node = pytest.mark.skipif(
    agents_union.unavailable() is not None, reason=str(agents_union.unavailable())
)


@needs_node
def test_what_the_sdk_reads_has_no_faults() -> None:
    events: list[dict[str, Any]] = [
        ADDED,
        {"type": "error", "event_id": "event_2", "error": {"message": "no"}},
        {"type": "input_audio_buffer.timeout_triggered", "event_id": "event_3"},
    ]
    assert agents_union.faults(events) == [[], [], []]


@needs_node
def test_what_it_does_not_read_has() -> None:
    item = ITEM | {"content": [{"type": "input_image", "image_url": "data:"}]}
    throws = ITEM | {"content": [{"type": "input_audio"}]}
    events: list[dict[str, Any]] = [
        ADDED | {"event_id": None},
        ADDED | {"item": ITEM | {"status": "done"}},
        ADDED | {"item": item},
        ADDED | {"item": throws},
        {"type": "response.audio.done", "event_id": "event_2"},
        ADDED,
    ]
    faults = agents_union.faults(events)
    assert [bool(fault) for fault in faults] == [True, True, True, True, True, False]
    assert "the SDK throws" in faults[3][0]
    assert "no server event" in faults[4][0]


@needs_node
def test_a_judge_that_fails_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agents_union, "_PROGRAM", agents_union._HERE / "none.mjs")
    with pytest.raises(agents_union.JudgeError, match=r"none\.mjs"):
        agents_union.faults([ADDED])


def test_without_its_packages_the_judge_names_the_mend(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(agents_union, "_INSTALLED", agents_union._HERE / "nowhere")
    with pytest.raises(agents_union.JudgeError, match=r"python -m tests\.judges\.agents_union"):
        agents_union.faults([ADDED])
