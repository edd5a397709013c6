"""Do the server events of one call come in the order in which clients expect them?

A turn: speech_started, speech_stopped, committed, conversation.item.added, .done, then its
transcription. Speech that resumes starts and stops again under the same item, which is not
committed twice.

A response: response.created, rate_limits.updated, response.output_item.added,
conversation.item.added, response.content_part.added, output_audio_buffer.started, deltas, the
`.done` of sound, transcript, part and items, response.done, then output_audio_buffer.stopped. Cut
off: output_audio_buffer.cleared, the same `.done` events, response.done (cancelled),
conversation.item.truncated. Only one response is active, and only one is heard.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Event = Mapping[str, Any]

_ITEM_STEPS = (  # of a response's item; each at most once, but deltas
    "response.output_item.added",
    "conversation.item.added",
    "response.content_part.added",
    "delta",
    "response.output_audio.done",
    "response.output_audio_transcript.done",
    "response.output_text.done",
    "response.function_call_arguments.done",
    "response.content_part.done",
    "response.output_item.done",
    "conversation.item.done",
)
_KINDS = {  # of content: the steps that it needs beside those of any item
    "audio": {*_ITEM_STEPS[2:3], *_ITEM_STEPS[4:6], "response.content_part.done"},
    "text": {*_ITEM_STEPS[2:3], "response.output_text.done", "response.content_part.done"},
    "call": {"response.function_call_arguments.done"},
}
_ANY_ITEM = {"response.output_item.added", "response.output_item.done"}
_IN_CONVERSATION = {"conversation.item.added", "conversation.item.done"}


@dataclass
class _Item:
    """An item of a response."""

    steps: list[str] = field(default_factory=list)
    kind: str | None = None  # of _KINDS, once that is known


@dataclass
class _Response:
    in_conversation: bool
    limits_told: bool = False
    items: dict[str, _Item] = field(default_factory=dict)
    started: bool = False  # heard at some time
    ended_heard: bool = False  # its sound was done before it fell silent
    cleared_unasked: bool = False  # while nobody spoke
    done: str | None = None  # its status


class Order:
    """Give it all events of a call, one after the other; `faults` tells what was out of order."""

    def __init__(self, voice_first: bool = True) -> None:
        """`voice_first`: transcripts and the end of a spoken response are told when it is heard,
        not before; False for models that we only pass on."""
        self.faults: list[str] = []
        self._voice_first = voice_first
        self._kind = ""
        self._count = 0
        self._event_ids: set[str] = set()
        self._speaking: str | None = None  # item id of the open turn
        self._stopped: set[str] = set()  # item ids of turns whose speech has ended
        self._committed: dict[str, object] = {}  # item id: of the item before
        self._added: dict[str, bool] = {}  # item id: done
        self._responses: dict[str, _Response] = {}
        self._active: str | None = None
        self._heard: str | None = None  # response id
        self._order: list[str] = []  # item ids of the conversation

    def see(self, event: Event) -> None:
        self._kind = str(event["type"])
        self._count += 1
        self._want(event.get("event_id") not in self._event_ids, "its event_id came before")
        self._event_ids.add(event.get("event_id", ""))
        first = self._kind == "session.created"
        self._want(first == (self._count == 1), "session.created is first, and comes once")
        limits = self._responses[self._active].limits_told if self._active else True
        if not limits and self._kind != "error":
            self._want(self._kind == "rate_limits.updated", "wants rate_limits.updated before it")
        act = self._acts().get(self._kind)
        if act is not None:
            act(event)
        elif self._kind.startswith("response."):
            self._step(event, "delta" if self._kind.endswith(".delta") else self._kind)
        elif self._kind.startswith("conversation.item.input_audio_transcription."):
            done = self._added.get(event["item_id"])
            self._want(done is True, f"item {event['item_id']} is not done")

    def end(self) -> None:
        """The conversation is over and all sound is out: nothing may be left open."""
        self._kind = "the end"
        self._want(self._active is None, f"{self._active} has no response.done")
        self._want(self._heard is None, f"{self._heard} is neither stopped nor cleared")
        for item_id in self._stopped - self._committed.keys():
            self._want(False, f"turn {item_id} was not committed")
        for item_id, done in self._added.items():
            self._want(done, f"item {item_id} has no conversation.item.done")

    def _want(self, right: bool, otherwise: str) -> None:
        if not right:
            self.faults.append(f"event {self._count}, {self._kind}: {otherwise}")

    def _acts(self) -> dict[str, Callable[[Event], None]]:
        return {
            "session.updated": self._session_updated,
            "input_audio_buffer.speech_started": self._speech_started,
            "input_audio_buffer.speech_stopped": self._speech_stopped,
            "input_audio_buffer.cleared": self._input_cleared,
            "input_audio_buffer.committed": self._commit,
            "conversation.item.added": self._item_added,
            "conversation.item.done": self._item_done,
            "conversation.item.deleted": self._item_deleted,
            "conversation.item.truncated": self._item_truncated,
            "response.created": self._response_created,
            "rate_limits.updated": self._limits,
            "response.done": self._response_done,
            "output_audio_buffer.started": self._sound_started,
            "output_audio_buffer.stopped": self._sound_stopped,
            "output_audio_buffer.cleared": self._sound_cleared,
        }

    def _session_updated(self, event: Event) -> None:
        if event["session"]["audio"]["input"].get("turn_detection") is None:
            self._speaking = None  # nobody looks for its end any more

    def _speech_started(self, event: Event) -> None:
        self._want(self._speaking is None, f"turn {self._speaking} has not stopped")
        self._speaking = event["item_id"]

    def _speech_stopped(self, event: Event) -> None:
        self._want(self._speaking == event["item_id"], "this turn has not started")
        self._speaking = None
        self._stopped.add(event["item_id"])

    def _input_cleared(self, event: Event) -> None:
        self._speaking = None

    def _commit(self, event: Event) -> None:
        item_id = event["item_id"]
        self._want(item_id not in self._committed, f"item {item_id} was committed before")
        self._want(item_id not in self._added, f"item {item_id} was added before")
        if self._speaking is not None and self._speaking not in self._committed:
            self._want(self._speaking == item_id, f"turn {self._speaking} goes on")
        self._speaking = None
        self._committed[item_id] = event.get("previous_item_id")

    def _item_added(self, event: Event) -> None:
        item, before = event["item"], event.get("previous_item_id")
        self._want(item["id"] not in self._added, f"item {item['id']} was added before")
        self._want(before is None or before in self._order, f"there is no item {before}")
        replies = item.get("role", "assistant") == "assistant"  # a call of a tool has no role
        replies = replies and item.get("status") == "in_progress"
        if replies or item["id"] in self._stopped:
            last = self._order[-1] if self._order else None
            self._want(before == last, f"comes after {last}, not {before}")
        if item["id"] in self._stopped:
            self._want(item["id"] in self._committed, "the turn was not committed")
            self._want(self._committed.get(item["id"]) == before, "was committed after another")
        at = self._order.index(before) + 1 if before in self._order else 0
        self._order.insert(at, item["id"])
        self._added[item["id"]] = False
        if replies:
            self._step({**event, "item_id": item["id"]}, self._kind)

    def _item_done(self, event: Event) -> None:
        item_id = event["item"]["id"]
        self._want(self._added.get(item_id) is False, f"item {item_id} was not added, or is done")
        self._added[item_id] = True
        if any(item_id in response.items for response in self._responses.values()):
            self._step({**event, "item_id": item_id}, self._kind)

    def _item_deleted(self, event: Event) -> None:
        self._want(event["item_id"] in self._order, "there is no such item")
        if self._added.pop(event["item_id"], None) is not None:
            self._order.remove(event["item_id"])

    def _item_truncated(self, event: Event) -> None:
        done = self._added.get(event["item_id"])
        self._want(done is True, f"item {event['item_id']} is not done")
        for response_id in {self._heard, self._active} - {None}:
            items = self._responses[str(response_id)].items
            self._want(event["item_id"] not in items, f"{response_id} goes on")

    def _response_created(self, event: Event) -> None:
        response = event["response"]
        self._want(self._active is None, f"{self._active} is active")
        self._want(response["id"] not in self._responses, "the id came before")
        self._active = response["id"]
        in_conversation = response.get("conversation_id") is not None
        self._responses[response["id"]] = _Response(in_conversation)

    def _limits(self, event: Event) -> None:
        if self._active is None:
            return self._want(False, "no response was created")
        response = self._responses[self._active]
        self._want(not response.limits_told, "it came before")
        response.limits_told = True
        return None

    def _step(self, event: Event, step: str) -> None:
        """Of an item of the active response."""
        response = self._responses.get(self._active or "")
        named = event.get("response_id", self._active)
        if response is None or named != self._active:
            return self._want(False, f"{named} is not active")
        item_id = event.get("item_id") or event["item"]["id"]
        item = response.items.setdefault(item_id, _Item())
        last = _ITEM_STEPS.index(item.steps[-1]) if item.steps else -1
        at = _ITEM_STEPS.index(step)
        again = at == last and step == "delta"
        self._want(at > last or again, f"comes after {item.steps[-1] if item.steps else 'nothing'}")
        self._want(bool(item.steps) or at == 0, "wants response.output_item.added before it")
        item.steps.append(step)
        if step == "response.output_audio.done":
            response.ended_heard = self._heard == self._active
        if step == "response.content_part.added":
            item.kind = event["part"]["type"]
        elif "function_call_arguments" in self._kind:
            item.kind = "call"
        elif step.startswith(("delta", "response.output_text", "response.output_audio")):
            self._want(item.kind is not None, "wants response.content_part.added before it")
        return None

    def _response_done(self, event: Event) -> None:
        done = event["response"]
        self._want(self._active == done["id"], f"{done['id']} is not active")
        self._active = None
        response = self._responses.setdefault(done["id"], _Response(False))
        response.done = done["status"]
        for item_id, item in response.items.items():
            self._want_whole(item_id, item, response)
        if done["status"] == "cancelled":
            self._want_silent(done, response)

    def _want_silent(self, done: Mapping[str, Any], response: _Response) -> None:
        """Cancelled: first what is heard of it falls silent, then it ends."""
        self._want(self._heard != done["id"], "it is heard: nothing was cleared")
        if self._voice_first:
            self._want(not response.ended_heard, "its sound was done before it was cleared")
        if (done.get("status_details") or {}).get("reason") == "turn_detected":
            self._want(self._speaking is not None, "no turn has started")
            self._want(not response.cleared_unasked, "it was cleared before speech started")

    def _want_whole(self, item_id: str, item: _Item, response: _Response) -> None:
        wanted = _ANY_ITEM | _KINDS.get(item.kind or "", set())
        if response.in_conversation:
            wanted = wanted | (_IN_CONVERSATION if item_id in self._added else set())
        missing = sorted(wanted - set(item.steps))
        self._want(not missing, f"item {item_id} lacks {', '.join(missing)}")

    def _sound_started(self, event: Event) -> None:
        response = self._responses.get(event["response_id"])
        self._want(self._heard is None, f"{self._heard} is heard")
        self._heard = event["response_id"]
        if response is None:
            return self._want(False, "there is no such response")
        self._want(not response.started, "it was heard before")
        kinds = {item.kind for item in response.items.values()}
        self._want("audio" in kinds, "wants response.content_part.added before it")
        if self._voice_first:
            steps = {step for item in response.items.values() for step in item.steps}
            told = steps & {"delta", "response.output_audio.done"}
            self._want(not told, f"comes after {', '.join(sorted(told))}")
        response.started = True
        return None

    def _sound_stopped(self, event: Event) -> None:
        self._silence(event["response_id"])
        response = self._responses.get(event["response_id"])
        self._want(response is None or response.done is not None, "wants response.done before it")

    def _sound_cleared(self, event: Event) -> None:
        self._silence(event["response_id"])
        if event["response_id"] in self._responses:
            self._responses[event["response_id"]].cleared_unasked = self._speaking is None

    def _silence(self, response_id: str) -> None:
        self._want(self._heard == response_id, f"{response_id} is not heard")
        self._heard = None


def faults(events: Sequence[Event], *, ended: bool = True, voice_first: bool = True) -> list[str]:
    """What is out of order in the events of one call; empty if nothing is. `ended`: no response
    goes on, and nothing is heard any more."""
    order = Order(voice_first)
    for event in events:
        order.see(event)
    if ended:
        order.end()
    return order.faults
