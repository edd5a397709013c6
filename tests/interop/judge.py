"""From what was seen of a client to the cells of its row. Pure but for the judges of events."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.interop.listen import Levels, fault_of_speech, fault_of_tone, levels, loud_share
from tests.judges import agents_union, openai_types, order
from tests.lab import speech

_SETTLE_S = 0.9  # from an interruption until nothing may be heard
_REPLY_LOUD = 0.4  # of a reply is loud, pauses included
_SILENT_S = 0.5  # at the head of a call, at least


@dataclass(frozen=True)
class Seen:
    """A client's own account of its call, and what the other side says about it.

    `marks` and `cuts`: moments in seconds of the client, of `levels` too. `heard`: what came back,
    at 48 kHz, where it was recorded. `arrived`: what came to the model. `call`: the transceiver's
    account after the end."""

    marks: Mapping[str, float]
    cuts: Sequence[Mapping[str, Any]]
    levels: Levels
    heard: speech.Samples | None
    arrived: speech.Samples
    messages: Sequence[str]
    call: Mapping[str, Any]


def connects(seen: Seen) -> str | None:
    reached = {k for k, v in seen.call.get("timeline", {}).items() if v is not None}
    lacking = {"answer_ms", "ice_ms", "dtls_ms"} - reached
    return f"never reached {', '.join(sorted(lacking))}" if lacking else None


def audio_up(seen: Seen, spoken: speech.Samples | None) -> str | None:
    """Silence came while the client was silent, then its words; `spoken` None: a tone."""
    head = loud_share(levels(seen.arrived), 0.1, 0.1 + _SILENT_S)
    if head is None or head > 0:
        return f"up, while the client was silent: {head} of it loud"
    fault = fault_of_tone(seen.arrived) if spoken is None else fault_of_speech(seen.arrived, spoken)
    return fault and f"up: {fault}"


def audio_down(seen: Seen, spoken: speech.Samples) -> str | None:
    """Silence before the reply, then the reply, and where it was recorded, its words."""
    marks = seen.marks
    before = loud_share(seen.levels, marks["silent"], marks["said"])
    if before is None or before > 0:
        return f"down, before the reply: {before} of it loud"
    reply = loud_share(seen.levels, marks["replied"], marks["hushed"] - 1.3)
    if reply is None or reply < _REPLY_LOUD:
        return f"down, during the reply: {reply} of it loud"
    if seen.heard is None:
        return None
    fault = fault_of_speech(seen.heard, spoken)
    return fault and f"down: {fault}"


def barge_in(seen: Seen) -> str | None:
    """A cut reply is loud before the cut and silent after it."""
    if not seen.cuts:
        return "nothing was cut"
    for cut in seen.cuts:
        before = loud_share(seen.levels, cut["at"] - 0.4, cut["at"])
        after = loud_share(seen.levels, cut["at"] + _SETTLE_S, cut["until"])
        if not before or after is None or after > 0:
            return f"by {cut['way']}: {before} loud before it, {after} after it"
    return None


def realtime_events(seen: Seen, *, allowed: Iterable[str] = ()) -> str | None:
    """All that came on the channel are server events by both schemas, in their order. `allowed`:
    codes of errors that the client asked for."""
    try:
        events = [json.loads(text) for text in seen.messages]
    except ValueError as error:
        return f"no JSON: {error}"
    kinds = [event.get("type") for event in events]
    if not kinds or kinds[0] != "session.created":
        return f"the first events are {kinds[:3]}"
    told = [e["error"].get("code") for e in events if e["type"] == "error"]
    if unasked := set(told) - set(allowed):
        return f"errors {sorted(map(str, unasked))}"
    faults = [fault for event in events for fault in openai_types.faults(event)]
    faults += [fault for found in agents_union.faults(events) for fault in found]
    faults += order.faults(events, ended=False, voice_first=False)
    return f"{len(faults)} faults, first: {faults[0]}" if faults else None


def interrupted(seen: Seen) -> str | None:
    """The channel told of each cut."""
    kinds = [json.loads(text)["type"] for text in seen.messages]
    cleared = kinds.count("output_audio_buffer.cleared")
    if cleared < len(seen.cuts):
        return f"{cleared} of {len(seen.cuts)} cuts told"
    return None


def ended(seen: Seen, *reasons: str) -> str | None:
    """The call ended as the client meant it."""
    state, reason = seen.call.get("state"), seen.call.get("reason")
    return None if state == "ended" and reason in reasons else f"call is {state}: {reason}"


def restarted(seen: Seen, restart: Mapping[str, Any] | None, *, down: bool = True) -> str | None:
    """Other credentials, and the call goes on: the client is answered."""
    if restart is None:
        return "not tried"
    if restart["before"] == restart["after"]:
        return "the server's ufrag stayed"
    after = loud_share(seen.levels, restart["said"], restart["until"])
    return "no reply after it" if down and not after else None
