"""Whatever a client says and its owner tells, in whatever order: nothing raises, every event is
one of OpenAI's, responses and sounds begin and end in pairs, and nothing grows without bound."""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from tests.judges import openai_types, order
from tests.unit.transceiver.session.owner import Owner
from transceiver.session.commands import Cut, Respond

KINDS = (
    *["conversation.item.truncate"] * 2,
    "session.update",
    "input_audio_buffer.append",
    "input_audio_buffer.commit",
    "input_audio_buffer.clear",
    "conversation.item.create",
    "conversation.item.retrieve",
    "conversation.item.delete",
    "conversation.item.truncate",
    "response.create",
    "response.cancel",
    "output_audio_buffer.clear",
    "nonsense",
)
JUNK: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)
DETECTIONS = st.sampled_from(
    [
        None,
        {"type": "semantic_vad"},
        {"type": "server_vad", "idle_timeout_ms": 5000},
        {"type": "server_vad", "create_response": False},
        {"type": "server_vad", "interrupt_response": False},
    ]
)
SESSIONS = st.builds(
    lambda detection, asks: {
        "audio": {
            "input": {
                "turn_detection": detection,
                "transcription": {"model": "x"} if asks else None,
            }
        }
    },
    DETECTIONS,
    st.booleans(),
)
ITEMS = st.sampled_from(
    [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]},
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_audio", "transcript": "so it was"}],
        },
        {"type": "function_call", "name": "f", "arguments": "{}", "call_id": "c"},
        {"type": "function_call_output", "call_id": "c", "output": "1"},
    ]
)
RESPONSES = st.sampled_from(
    [
        None,
        {"output_modalities": ["text"]},
        {"conversation": "none", "metadata": {"a": "b"}},
        {"input": [{"type": "item_reference", "id": "mine_1"}]},
    ]
)
OURS = ("reply", "turn")  # stand for the id of the newest reply and turn
IDS = st.integers(1, 3).map(lambda number: f"mine_{number}") | st.sampled_from(OURS)
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "session": SESSIONS,
    "item": st.builds(
        lambda item, id_: item | ({"id": id_} if id_ else {}), ITEMS, st.none() | IDS
    ),
    "item_id": IDS,
    "previous_item_id": st.sampled_from(["root"]) | IDS,
    "content_index": st.integers(0, 1),
    "audio_end_ms": st.integers(0, 1500),
    "response": RESPONSES,
    "response_id": st.sampled_from(["resp_5", None]),
    "event_id": st.text(max_size=5),
}
LATE = st.sampled_from([False, False, False, True])
NEEDED = {
    "session.update": ["session"],
    "conversation.item.create": ["item"],
    "conversation.item.retrieve": ["item_id"],
    "conversation.item.delete": ["item_id"],
    "conversation.item.truncate": ["item_id", "audio_end_ms"],
}


@st.composite
def client_events(draw: st.DrawFn) -> dict[str, Any]:
    """Mostly right ones."""
    kind = draw(st.sampled_from(KINDS))
    names = {*NEEDED.get(kind, ()), *draw(st.sets(st.sampled_from(sorted(FIELDS)), max_size=2))}
    event = {name: draw(FIELDS[name]) for name in sorted(names)}
    if draw(st.integers(0, 9)) == 0 and event:
        event[draw(st.sampled_from(sorted(event)))] = draw(JUNK)
    return {"type": kind, **event}


MS = st.integers(-10, 3000)


class AnyOrder(RuleBasedStateMachine):
    """Notices are about the newest response, rarely about an old one."""

    @initialize(responds=st.sampled_from([True, True, True, False]), recognises=st.booleans())
    def call(self, responds: bool, recognises: bool) -> None:
        self.owner = Owner({}, responds=responds, recognises=recognises)
        self.session = self.owner.session
        self.now = 100.0

    @property
    def responses(self) -> list[Respond]:
        return [command for command in self.owner.commands if isinstance(command, Respond)]

    @property
    def turns(self) -> list[str]:
        events = self.owner.events
        return [each["item_id"] for each in events if each["type"].endswith("speech_started")]

    def response(self, late: bool) -> Respond:
        none = Respond("resp_none", "item_none", "audio", None, None)
        return (self.responses or [none])[0 if late else -1]

    @rule(event=client_events(), heard_ms=st.integers(0, 1))
    def client(self, event: dict[str, Any], heard_ms: int) -> None:
        ids = {"reply": self.response(False).item_id, "turn": (self.turns or ["none"])[-1]}
        meant = {
            name: ids.get(value, value) if isinstance(value, str) else value
            for name, value in event.items()
        }
        self.owner.heard_ms = heard_ms
        self.owner.do(self.session.event(meant, self.now))

    @rule()
    def ask(self) -> None:
        self.owner.say("response.create")

    @rule(start_ms=MS)
    def start(self, start_ms: int) -> None:
        self.owner.do(self.session.speech_started(start_ms))

    @rule(start_ms=MS)
    def resume(self, start_ms: int) -> None:
        self.owner.do(self.session.speech_resumed(start_ms))

    @rule(end_ms=MS)
    def stop(self, end_ms: int) -> None:
        self.owner.do(self.session.speech_stopped(end_ms))

    @rule(late=LATE)
    def begin(self, late: bool) -> None:
        self.owner.do(self.session.began(self.response(late).response_id))

    @rule(late=LATE, delta=st.text(max_size=8))
    def write(self, late: bool, delta: str) -> None:
        self.owner.do(self.session.transcript(self.response(late).response_id, delta))

    @rule(late=LATE, audio_ms=st.none() | st.integers(0, 2000))
    def spoken(self, late: bool, audio_ms: int | None) -> None:
        self.owner.do(self.session.spoken(self.response(late).response_id, audio_ms))

    @rule(late=LATE, parts_ms=st.tuples(st.integers(0, 900), st.integers(0, 900)))
    def audible(self, late: bool, parts_ms: tuple[int, int]) -> None:
        response = self.response(late)
        self.owner.do(self.session.audible(response.response_id))
        self.owner.playing = Cut(response.response_id, response.item_id, 0, *sorted(parts_ms))

    @rule(late=LATE)
    def silent(self, late: bool) -> None:
        self.owner.do(self.session.silent(self.response(late).response_id))

    @rule(late=LATE)
    def fail(self, late: bool) -> None:
        self.owner.do(self.session.failed(self.response(late).response_id, "code", "message"))

    @rule()
    def flush(self) -> None:
        cut, self.owner.playing = self.owner.playing, None
        self.owner.do(self.session.cut(cut))

    @rule(transcript=st.none() | st.text(max_size=9), seconds=st.floats(-1, 9))
    def transcribe(self, transcript: str | None, seconds: float) -> None:
        for item_id in self.turns[-1:]:
            self.owner.do(self.session.transcribed(item_id, transcript, seconds))

    @rule(later_s=st.floats(0, 10))
    def wait(self, later_s: float) -> None:
        self.now += later_s
        self.owner.do(self.session.timer(self.now))

    def teardown(self) -> None:
        """All that goes on ends; then it must have come in order."""
        self.owner.do(self.session.speech_stopped(5000))
        for response in self.responses:
            self.owner.do(self.session.spoken(response.response_id, 0))
            self.owner.do(self.session.silent(response.response_id))
        events = self.owner.events
        assert [fault for event in events for fault in openai_types.faults(event)] == []
        assert order.faults(events) == []


AnyOrder.TestCase.settings = settings(
    max_examples=60, stateful_step_count=40, deadline=None, derandomize=True
)
TestAnyOrder = AnyOrder.TestCase


def test_a_flood_is_bounded() -> None:
    """The conversation keeps the newest; the session refuses what is too much."""
    owner = Owner()
    for number in range(1500):
        owner.write(f"{number} " + "x" * 5000)
        owner.update(**{f"field{number}": "y" * 1000})
        owner.events.clear()
        owner.commands.clear()
    conversation = owner.session._conversation
    assert len(conversation) <= 1000
    assert conversation.text <= 2 * 1024 * 1024
    assert len(str(owner.session._settings.shown)) < 140_000
