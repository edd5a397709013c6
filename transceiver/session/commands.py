"""What a session asks of the owner of the audio, and what that owner reports of a cut reply."""

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from transceiver.events import Event


class Cut(NamedTuple):
    """A reply that was silenced: how much of it the client has heard.

    Milliseconds of the item's audio; 0 <= heard_ms <= received_ms, the latter being all that the
    item's maker had given until then.
    """

    response_id: str
    item_id: str
    content_index: int
    heard_ms: int
    received_ms: int


@dataclass(frozen=True, slots=True)
class Respond:
    """Make this response; tell `Session.began`, `transcript` or `text`, and `spoken` or `failed`.

    Without turn and text nobody has said anything yet.
    """

    response_id: str
    item_id: str  # of the reply
    modality: Literal["audio", "text"]
    turn_item_id: str | None  # the spoken turn to answer, if that is what came last
    text: str | None  # the written message to answer, if that is what came last


@dataclass(frozen=True, slots=True)
class Abandon:
    """Stop making this response: it is over, and what still comes of it is stale."""

    response_id: str


@dataclass(frozen=True, slots=True)
class Clear:
    """Silence the output within a frame, then tell `Session.cut`, also when nothing played: what
    was abandoned ends with that. Always the last of a list of outputs."""


@dataclass(frozen=True, slots=True)
class Commit:
    """What was heard since the last turn is the turn of this item, by the client's wish or after
    long silence. Tell `Session.committed` how much that is."""

    item_id: str


@dataclass(frozen=True, slots=True)
class Forget:
    """Drop what was heard and is not a turn yet."""


@dataclass(frozen=True, slots=True)
class Detect:
    """Take turns by this `turn_detection` from now on; None: by the client's commits."""

    turn_detection: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class Drop:
    """This item's audio is not wanted any more."""

    item_id: str


@dataclass(frozen=True, slots=True)
class Truncate:
    """The client heard only this much of the item's audio."""

    item_id: str
    audio_end_ms: int


Command = Respond | Abandon | Clear | Commit | Forget | Detect | Drop | Truncate
Output = Event | Command
