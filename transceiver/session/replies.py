"""The one active response, what of it can be heard, and how it is silenced. Pure."""

from typing import Any, Literal, NamedTuple

from transceiver import events
from transceiver.events import NewId
from transceiver.session import items
from transceiver.session.commands import Abandon, Clear, Cut, Output, Truncate
from transceiver.session.conversation import Conversation
from transceiver.session.fields import Refusal
from transceiver.session.request import Request
from transceiver.session.response import Response

Reason = Literal["turn_detected", "client_cancelled"]


class Claim(NamedTuple):
    """A client's `conversation.item.truncate`: what it has heard itself."""

    item_id: str
    content_index: int
    audio_end_ms: int
    event_id: object


class _Sound(NamedTuple):
    """What the client hears now."""

    response_id: str
    item_id: str


class Replies:
    """`silence` only asks for silence: the reply ends with `cut`, when it is known what was heard
    of it. Ids of responses that are over are ignored: their sound may still be under way."""

    def __init__(self, conversation: Conversation, new_id: NewId) -> None:
        self._conversation = conversation
        self._new_id = new_id
        self._active: Response | None = None
        self._sound: _Sound | None = None
        self._reason: Reason = "client_cancelled"  # of the silence that was asked for last
        self._claim: Claim | None = None  # waits for `cut`

    @property
    def active(self) -> bool:
        return self._active is not None

    @property
    def audible(self) -> bool:
        """Between output_audio_buffer.started and .stopped or .cleared."""
        return self._sound is not None

    @property
    def item_id(self) -> str | None:
        """Of the active response."""
        return self._active.item_id if self._active else None

    def create(self, request: Request) -> list[Output]:
        """Raises `Refusal` while one is active: that one goes on."""
        if self._active is not None:
            detail = f"{self._active.id} is in progress: wait for its response.done or cancel it"
            raise Refusal("conversation_already_has_active_response", detail)
        ids = self._new_id("resp"), self._new_id("item")
        self._active = Response(*ids, request, self._conversation)
        return self._active.create()

    def began(self, response_id: str) -> list[Output]:
        response = self._live(response_id)
        return response.begin() if response else []

    def write(self, response_id: str, delta: str) -> list[Output]:
        response = self._live(response_id)
        return response.write(delta) if response else []

    def spoken(self, response_id: str, audio_ms: int | None) -> list[Output]:
        response = self._live(response_id)
        if response is None:
            return []
        outputs = response.begin() if audio_ms != 0 else []
        if audio_ms is not None:
            self._conversation.lasts(response.item_id, audio_ms)
        response.made = True
        if audio_ms == 0:
            outputs += response.hear()  # by reading: there is nothing else
        if response.holds_end:
            return outputs
        return outputs + self._end("completed")

    def failed(self, response_id: str, code: str, message: str) -> list[Output]:
        if self._live(response_id) is None:
            return []
        error = {"type": "server_error", "code": code, "message": message}
        return self._end("failed", {"type": "failed", "error": error})

    def hear(self, response_id: str) -> list[Output]:
        """The client hears this response from now on."""
        response = self._live(response_id)
        if response is None or not response.spoken or self._is_heard(response):
            return []
        outputs = self.silent(self._sound.response_id) if self._sound else []
        self._sound = _Sound(response_id, response.item_id)
        outputs += response.begin()
        outputs.append({"type": "output_audio_buffer.started", "response_id": response_id})
        outputs += response.hear()
        return outputs + (self._end("completed") if response.made else [])

    def silent(self, response_id: str) -> list[Output]:
        """The last of this response's sound is out, so all of it was given."""
        if self._sound is None or self._sound.response_id != response_id:
            return []
        outputs: list[Output] = []
        if self._active is not None and self._active.id == response_id:
            if self._active.abandoned:
                return []  # `cut` will tell how it ends
            outputs = self._end("completed")
        self._sound = None
        return [*outputs, {"type": "output_audio_buffer.stopped", "response_id": response_id}]

    def cancel(self, response_id: object) -> list[Output]:
        """The client's wish; None: whichever is active. Raises `Refusal`."""
        active = self._active
        if active is None or active.abandoned or response_id not in (None, active.id):
            detail = "there is no such response in progress: nothing was cancelled"
            raise Refusal("response_cancel_not_active", detail, "response_id")
        return self.silence("client_cancelled")

    def silence(self, reason: Reason) -> list[Output]:
        """Stop what is made, and what is heard. `Clear` is the last output."""
        self._reason = reason
        outputs: list[Output] = []
        if self._active is not None and not self._active.abandoned:
            self._active.abandoned = True
            outputs.append(Abandon(self._active.id))
        return [*outputs, Clear()]

    def truncate(self, claim: Claim) -> list[Output]:
        """Silences the item, too, if it is the one that is heard. Raises `Refusal`."""
        item = self._conversation.get(claim.item_id)
        active = self._active
        is_made = active is not None and active.spoken and active.item_id == claim.item_id
        if not items.is_spoken_reply(item, claim.content_index) and (
            not is_made or claim.content_index
        ):
            detail = "only model output audio messages can be truncated"
            raise Refusal("unsupported_content_type", detail, "item_id")
        if is_made or (self._sound is not None and self._sound.item_id == claim.item_id):
            self._claim = claim
            return self.silence("client_cancelled")
        audio_ms = self._conversation.audio_ms(claim.item_id)
        received_ms = claim.audio_end_ms if audio_ms is None else audio_ms
        return self._shorten(_checked(claim, received_ms), asked=True)

    def cut(self, cut: Cut | None) -> list[Output]:
        """The output fell silent, on `Clear` or by itself. None: nothing played."""
        claim, self._claim = self._claim, None
        reason, self._reason = self._reason, "client_cancelled"
        claimed, refused = _claimed(claim, cut) if claim else (None, [])
        if claimed is not None and cut is not None and cut.item_id == claimed.item_id:
            cut = None  # the client knows better what it has heard
        outputs = self._clear()
        ended = self._active
        if ended is not None and (ended.abandoned or cut is not None):
            details = {"type": "cancelled", "reason": reason}
            outputs += self._end("cancelled", details, claimed or cut or _NOTHING)
        for heard in (cut, claimed):
            if heard is not None:
                shortened = ended is not None and ended.item_id == heard.item_id
                outputs += self._shorten(heard, asked=heard is claimed, shortened=shortened)
        return outputs + refused

    def _live(self, response_id: str) -> Response | None:
        """The active response if that is the one, and goes on."""
        active = self._active
        return active if active and active.id == response_id and not active.abandoned else None

    def _is_heard(self, response: Response) -> bool:
        return self._sound is not None and self._sound.response_id == response.id

    def _end(
        self, status: str, details: dict[str, Any] | None = None, cut: Cut | None = None
    ) -> list[Output]:
        response, self._active = self._active, None
        return response.end(status, details, cut) if response else []

    def _clear(self) -> list[Output]:
        sound, self._sound = self._sound, None
        if sound is None:
            return []
        return [{"type": "output_audio_buffer.cleared", "response_id": sound.response_id}]

    def _shorten(self, cut: Cut, asked: bool, shortened: bool = False) -> list[Output]:
        """Keep of the item what was heard. The client is told, unless that is nothing and it did
        not ask. `shortened`: its transcript is, by the end of its response."""
        if cut.item_id not in self._conversation:
            return []
        item = self._conversation.get(cut.item_id)
        if not items.is_spoken_reply(item, cut.content_index):
            return []
        if not shortened:
            place = cut.content_index, cut.heard_ms, cut.received_ms
            self._conversation.replace(items.truncated(item, *place))
        self._conversation.lasts(cut.item_id, cut.heard_ms)
        outputs: list[Output] = []
        if cut.heard_ms or asked:
            outputs.append(
                {
                    "type": "conversation.item.truncated",
                    "item_id": cut.item_id,
                    "content_index": cut.content_index,
                    "audio_end_ms": cut.heard_ms,
                }
            )
        return [*outputs, Truncate(cut.item_id, cut.heard_ms)]


_NOTHING = Cut("", "", 0, 0, 0)


def _claimed(claim: Claim, cut: Cut | None) -> tuple[Cut | None, list[Output]]:
    """The cut that a client's truncation asks for, or its refusal: there was less sound."""
    received_ms = cut.received_ms if cut and cut.item_id == claim.item_id else 0
    try:
        return _checked(claim, received_ms), []
    except Refusal as refusal:
        answer = events.error(
            refusal.code, refusal.message, param=refusal.param, event_id=claim.event_id
        )
        return None, [answer]


def _checked(claim: Claim, received_ms: int) -> Cut:
    """Raises `Refusal`."""
    if claim.audio_end_ms > received_ms:
        detail = f"audio content of {received_ms} ms is shorter than {claim.audio_end_ms} ms"
        raise Refusal("invalid_value", detail, "audio_end_ms")
    return Cut("", claim.item_id, claim.content_index, claim.audio_end_ms, received_ms)
