"""Which events of the client and of the upstream server we change: a closed list. Pure.

| event | what is done |
|---|---|
| upstream `session.created` | held; our configuration goes up as `session.update`, and the client gets one `session.created` with the result |
| client `session.update` | passed without the formats of the sound, and without `model` if the operator has chosen one |
| upstream `response.output_audio.delta` | played, not passed |
| upstream `response.audio.delta` | not passed: sound in the names of the beta API, see `complaints.py` |
| client `input_audio_buffer.append` | error `unsupported_over_webrtc` |
| client `output_audio_buffer.clear` | done here, not passed |
| upstream `output_audio_buffer.*` | not passed: ours are told |
| upstream `input_audio_buffer.speech_started` | passed; if a reply plays and `interrupt_response` is not false, it falls silent, and the server is told how much was heard |
| client `conversation.item.truncate` | the reply with that item falls silent, then passed |
| upstream `response.done` that is cancelled | the reply falls silent, then passed |
| upstream events about what only we asked | not passed |

Everything else passes as it is, whatever it is.
"""  # noqa: E501

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from transceiver import events
from transceiver.backends.realtime.complaints import BETA_DELTA
from transceiver.backends.realtime.configuration import Configuration
from transceiver.backends.realtime.out import Down, Out, Up, backend_error
from transceiver.backends.realtime.replay import CREATE, Memory
from transceiver.backends.realtime.replies import Replies
from transceiver.backends.realtime.unfinished import Unfinished
from transceiver.events import Event, NewId
from transceiver.remembered import Remembered, told_of
from transceiver.session.items import Item
from transceiver.session.response import NO_USAGE

_ITEM_TOLD = ("conversation.item.added", "conversation.item.done", "conversation.item.created")
_MAX_ACTIVE = 100  # responses; one is active, a few may be beside the conversation
_MAX_OURS = 2000  # ids of events of ours that an error may still answer


class Table:
    """One call's, over all connections to the server. `asked` and `model`: see `Configuration`.

    What it gives to send while it is not `ready` goes before everything that waits.
    """

    def __init__(
        self,
        asked: Mapping[str, Any],
        model: str | None,
        new_id: NewId,
        restored: Sequence[Item] = (),
    ) -> None:
        self.refused = 0  # events of ours that the server answered with an error
        self._configuration = Configuration(asked, model)
        self._memory = Memory()
        self._memory.restore(restored)
        self._restored = restored  # items that the client is to be told of
        self.replies = Replies(self._memory, self._mark)
        self._new_id = new_id
        self._active: dict[str, Event] = {}  # responses being made
        self._unfinished = Unfinished()
        self._responses_asked: deque[object] = deque(maxlen=100)  # event ids of response.create
        self._ours: deque[str] = deque(maxlen=_MAX_OURS)
        self._replayed: set[str] = set()  # items that the client knows already

    @property
    def ready(self) -> bool:
        """Whether the server has our configuration."""
        return self._configuration.ready

    def remembered(self, now: float) -> Remembered:
        heard = self.replies.heard(now)
        return Remembered(self._configuration.wanted, self._memory.remembered(heard), bool(heard))

    @property
    def busy(self) -> bool:
        """Whether the client still is to hear something."""
        return bool(self._active) or self.replies.playing

    def lost(self, now: float) -> list[Out]:
        """The connection is gone: nobody is to wait for what does not come any more."""
        self._configuration.restart()
        outs: list[Out] = [Down(end) for end in self._unfinished.end()]
        for response_id, response in self._active.items():
            outs += self.replies.end(response_id, now)
            outs.append(Down({"type": "response.done", "response": _failed(response)}))
        for event_id in self._responses_asked:
            outs.append(Down(backend_error("backend_unavailable", "the model is gone", event_id)))
        self._active.clear()
        self._responses_asked.clear()
        return outs

    def unanswered(self) -> list[Out]:
        """The server does not answer our configuration: go on with the session that it has."""
        return [] if self.ready else self._settled(None)

    def sent(self, event: Event) -> None:
        """An event is on its way to the server."""
        if event.get("event_id") in self._ours:
            return
        match event.get("type"):
            case "session.update":
                self._configuration.asked(event.get("session"), event.get("event_id"))
            case "conversation.item.create":
                self._memory.asked(event)
            case "response.create":
                self._responses_asked.append(event.get("event_id"))

    def client(self, event: Event, now: float) -> list[Out]:
        """What the client says."""
        match event.get("type"):
            case "session.update" if isinstance(session := event.get("session"), dict):
                return [Up({**event, "session": self._configuration.passed(session)})]
            case "input_audio_buffer.append":
                detail = "the sound comes over WebRTC; this event is for a WebSocket"
                event_id = event.get("event_id")
                return [Down(events.error("unsupported_over_webrtc", detail, event_id=event_id))]
            case "output_audio_buffer.clear":
                return self.replies.clear(now, self._active)
            case "conversation.item.truncate":
                return [*self.replies.truncate(event.get("item_id"), now), Up(event)]
        return [Up(event)]

    def server(self, event: Event, now: float) -> list[Out]:
        """What the server says, in the names of general availability."""
        kind = event["type"]
        if kind == BETA_DELTA:
            return []
        if not self.ready:
            return self._configure(event)
        if kind == "response.output_audio.delta":
            return self.replies.play(event, now)
        if kind.startswith("output_audio_buffer.") or kind == "session.created":
            return []
        if self._is_known(event):
            return []
        self._memory.told(event)
        self._unfinished.told(event)
        match kind:
            case "session.updated" if isinstance(session := event.get("session"), dict):
                self._configuration.updated(session)
            case "response.created":
                self._response_created(event)
            case "response.done":
                return [*self._response_done(event, now), Down(event)]
            case "input_audio_buffer.speech_started":
                interrupts = self._configuration.interrupts
                return [Down(event), *(self.replies.silence(now) if interrupts else [])]
        return [Down(event)]

    def _configure(self, event: Event) -> list[Out]:
        kind, session = event["type"], event.get("session")
        if kind == "session.created" and isinstance(session, dict):
            return [Up(self._configuration.created(session, self._mark()))]
        if kind == "session.updated" and isinstance(session, dict):
            return self._settled(session)
        if kind == "error" and self._configuration.answers(_cause(event)):
            told = {**event, "error": {**_error(event), "event_id": None}}
            return [*self._settled(None), Down(told)]
        self._configuration.hold(event)
        return []

    def _settled(self, session: Mapping[str, Any] | None) -> list[Out]:
        told = self._configuration.settled(session)
        if not self.ready:
            return []
        introduced, self._restored = told_of(self._restored), ()
        return [*self._replay(), *map(Down, [*told[:1], *introduced, *told[1:]])]

    def _replay(self) -> list[Out]:
        """All of the conversation that is known, to a server that is new to it."""
        items = self._memory.items()
        self._replayed = {item["id"] for item in items}
        ours: list[Out] = [
            Up({"type": CREATE, "event_id": self._mark(), "item": item}) for item in items
        ]
        return ours + [Up(event) for event in self._memory.unconfirmed()]

    def _is_known(self, event: Event) -> bool:
        """Whether this is about an event of ours, or an item that the client has."""
        if event["type"] == "error":
            if _cause(event) in self._ours:
                self.refused += 1
                return True
            self._configuration.refused(_cause(event))
            if _cause(event) in self._responses_asked:
                self._responses_asked.remove(_cause(event))
        item = event.get("item")
        return (
            event["type"] in _ITEM_TOLD
            and isinstance(item, dict)
            and str(item.get("id")) in self._replayed
        )

    def _response_created(self, event: Event) -> None:
        response = event.get("response")
        if isinstance(response, dict) and isinstance(response.get("id"), str):
            self._active[response["id"]] = response
            if len(self._active) > _MAX_ACTIVE:
                del self._active[next(iter(self._active))]
        if self._responses_asked:
            self._responses_asked.popleft()

    def _response_done(self, event: Event, now: float) -> list[Out]:
        response = event.get("response")
        if not isinstance(response, dict):
            return []
        response_id = str(response.get("id"))
        self._active.pop(response_id, None)
        if response.get("status") == "cancelled":
            return self.replies.cancelled(response_id, now)
        return self.replies.end(response_id, now)

    def _mark(self) -> str:
        """The id of an event of ours."""
        event_id = self._new_id("event")
        self._ours.append(event_id)
        return event_id


def _failed(response: Event) -> Event:
    reason = {"type": "server_error", "code": "backend_unavailable"}
    return {
        **response,
        "status": "failed",
        "status_details": {"type": "failed", "error": reason},
        "usage": NO_USAGE,
    }


def _error(event: Event) -> Mapping[str, Any]:
    found = event.get("error")
    return found if isinstance(found, dict) else {}


def _cause(event: Event) -> object:
    """Id of the event that an error answers."""
    return _error(event).get("event_id")
