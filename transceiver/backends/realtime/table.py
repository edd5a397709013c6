"""Which events of the client and of the upstream server we change: a closed list. Pure.

| event | what is done |
|---|---|
| upstream `session.created` | held; our configuration goes up as `session.update`, and the client gets one `session.created` with the result |
| client `session.update` | passed without the formats of the sound |
| upstream `response.output_audio.delta` | played, not passed |
| client `input_audio_buffer.append` | error `unsupported_over_webrtc` |
| client `output_audio_buffer.clear` | done here, not passed |
| upstream `output_audio_buffer.*` | not passed: ours are told |
| upstream `input_audio_buffer.speech_started` | passed; if a reply plays and `interrupt_response` is not false, it falls silent, and the server is told how much was heard |
| client `conversation.item.truncate` | the reply falls silent, then passed |
| upstream `response.done` that is cancelled | the reply falls silent, then passed |
| upstream events about what only we asked | not passed |

Everything else passes as it is, whatever it is.
"""  # noqa: E501

import base64
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from transceiver import events
from transceiver.backends.realtime.configuration import Configuration, stripped
from transceiver.backends.realtime.replay import CREATE, Memory
from transceiver.events import Event, NewId
from transceiver.playback import Audible, Notice, Playback

_ITEM_TOLD = ("conversation.item.added", "conversation.item.done", "conversation.item.created")
_MAX_OURS = 2000  # ids of events of ours that an error may still answer


class Up(NamedTuple):
    """Send this to the server."""

    event: Event
    ours: bool = False  # the client knows nothing of it


class Down(NamedTuple):
    """Tell the client this."""

    event: Event


Out = Up | Down


def backend_error(code: str, message: str, event_id: object = None) -> Event:
    """An `error` event that is not the client's fault."""
    return events.error(code, message, event_id=event_id, kind="server_error")


class Table:
    """One call's, over all connections to the server. `asked` and `model`: see `Configuration`.

    What it gives to send while it is not `ready` goes before everything that waits.
    """

    def __init__(self, asked: Mapping[str, Any], model: str | None, new_id: NewId) -> None:
        self.overruns = 0  # replies cancelled: too much of them waited to be played
        self.refused = 0  # events of ours that the server answered with an error
        self.undecodable = 0  # deltas that are no sound
        self._configuration = Configuration(asked, model)
        self._memory = Memory()
        self._playback: Playback | None = None
        self._audible: str | None = None  # response that the client hears
        self._new_id = new_id
        self._active: dict[str, Event] = {}  # responses being made
        self._responses_asked: deque[object] = deque(maxlen=100)  # event ids of response.create
        self._ours: deque[str] = deque(maxlen=_MAX_OURS)
        self._replayed: set[str] = set()  # items that the client knows already

    def begin(self, playback: Playback) -> None:
        """There is sound from now on; before that no event but of the session may come."""
        self._playback = playback

    @property
    def ready(self) -> bool:
        """Whether the server has our configuration."""
        return self._configuration.ready

    @property
    def busy(self) -> bool:
        """Whether the client still is to hear something."""
        return bool(self._active) or (self._playback is not None and self._playback.playing)

    def notices(self, notices: Iterable[Notice]) -> list[Out]:
        """What the client is told of the playback."""
        outs: list[Out] = []
        for notice in notices:
            self._audible = notice.response_id if isinstance(notice, Audible) else None
            outs.append(_buffer(_started(notice), notice.response_id))
        return outs

    def lost(self, now: float) -> list[Out]:
        """The connection is gone: nobody is to wait for what does not come any more."""
        self._configuration.restart()
        outs: list[Out] = []
        for response_id, response in self._active.items():
            outs += self._end(response_id, now)
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
                return [Up({**event, "session": stripped(session)})]
            case "input_audio_buffer.append":
                detail = "the sound comes over WebRTC; this event is for a WebSocket"
                event_id = event.get("event_id")
                return [Down(events.error("unsupported_over_webrtc", detail, event_id=event_id))]
            case "output_audio_buffer.clear":
                return self._clear(now)
            case "conversation.item.truncate":
                return [*self._silence(now, truncates=False), Up(event)]
        return [Up(event)]

    def server(self, event: Event, now: float) -> list[Out]:
        """What the server says, in the names of general availability."""
        kind = event["type"]
        if not self.ready:
            return self._configure(event)
        if kind == "response.output_audio.delta":
            return self._play(event, now)
        if kind.startswith("output_audio_buffer.") or kind == "session.created":
            return []
        if self._is_known(event):
            return []
        self._memory.told(event)
        match kind:
            case "session.updated" if isinstance(session := event.get("session"), dict):
                self._configuration.updated(session)
            case "response.created":
                self._response_created(event)
            case "response.done":
                return [*self._response_done(event, now), Down(event)]
            case "input_audio_buffer.speech_started":
                interrupts = self._configuration.interrupts
                return [Down(event), *(self._silence(now) if interrupts else [])]
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
        return [*self._replay(), *map(Down, told)] if self.ready else []

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
            and item.get("id") in self._replayed
        )

    def _play(self, event: Event, now: float) -> list[Out]:
        response_id, item_id = str(event.get("response_id")), str(event.get("item_id"))
        try:
            samples = base64.b64decode(event["delta"])
        except (KeyError, TypeError, ValueError):
            self.undecodable += 1
            return []
        playback, index = self._playback, event.get("content_index")
        index = index if isinstance(index, int) else 0
        if playback is None or playback.stale(response_id):
            return []
        if playback.play(response_id, item_id, index, samples, now):
            self._memory.sound(item_id, len(samples))
            return []
        return self._overrun(response_id)

    def _overrun(self, response_id: str) -> list[Out]:
        """What waits is played; the rest of the reply is not wanted."""
        assert self._playback is not None
        self.overruns += 1
        self._playback.drop(response_id)
        cancel = {"type": "response.cancel", "response_id": response_id}
        detail = "the model is too far ahead of its voice; the reply ends early"
        return [
            Up({**cancel, "event_id": self._mark()}, ours=True),
            Down(backend_error("backend_overrun", detail)),
        ]

    def _response_created(self, event: Event) -> None:
        response = event.get("response")
        if isinstance(response, dict) and isinstance(response.get("id"), str):
            self._active[response["id"]] = response
        if self._responses_asked:
            self._responses_asked.popleft()

    def _response_done(self, event: Event, now: float) -> list[Out]:
        response = event.get("response")
        if not isinstance(response, dict):
            return []
        response_id = str(response.get("id"))
        self._active.pop(response_id, None)
        playback = self._playback
        overran = playback is not None and playback.stale(response_id)
        if response.get("status") == "cancelled" and not overran:
            return self._silence(now, of=response_id) + self._end(response_id, now)
        return self._end(response_id, now)

    def _end(self, response_id: str, now: float) -> list[Out]:
        """No more sound comes of this response; late chunks are stale."""
        if self._playback is None:
            return []
        ended = self.notices(self._playback.end(response_id, now))
        self._playback.drop(response_id)
        return ended

    def _clear(self, now: float) -> list[Out]:
        """The client wants silence: nothing of what is being made is heard any more."""
        outs = self._silence(now)
        for response_id in self._active:
            if self._playback is not None:
                self._playback.drop(response_id)
        return outs

    def _silence(self, now: float, truncates: bool = True, of: str | None = None) -> list[Out]:
        """Stop the sound, if there is any (of this response), and say how much was heard."""
        playback = self._playback
        if playback is None or (of is not None and playback.response_id != of):
            return []
        cut = playback.clear(now)
        if cut is None:
            return []
        outs: list[Out] = []
        if cut.response_id == self._audible:
            outs.append(_buffer("cleared", cut.response_id))
        self._audible = None
        self._memory.heard(cut.item_id, cut.heard_ms)
        if truncates and cut.heard_ms > 0:
            truncate = {
                "type": "conversation.item.truncate",
                "event_id": self._mark(),
                "item_id": cut.item_id,
                "content_index": cut.content_index,
                "audio_end_ms": cut.heard_ms,
            }
            outs.append(Up(truncate, ours=True))
        return outs

    def _mark(self) -> str:
        """The id of an event of ours."""
        event_id = self._new_id("event")
        self._ours.append(event_id)
        return event_id


def _started(notice: Notice) -> str:
    return "started" if isinstance(notice, Audible) else "stopped"


def _buffer(what: str, response_id: str) -> Down:
    return Down({"type": f"output_audio_buffer.{what}", "response_id": response_id})


def _failed(response: Event) -> Event:
    reason = {"type": "server_error", "code": "backend_unavailable"}
    return {
        **response,
        "status": "failed",
        "status_details": {"type": "failed", "error": reason},
    }


def _error(event: Event) -> Mapping[str, Any]:
    found = event.get("error")
    return found if isinstance(found, dict) else {}


def _cause(event: Event) -> object:
    """Id of the event that an error answers."""
    return _error(event).get("event_id")
