"""The same server in the names of the beta protocol, as older open servers speak it. Pure."""

from typing import Any

Event = dict[str, Any]
_NAMES = {
    "response.output_audio.": "response.audio.",
    "response.output_audio_transcript.": "response.audio_transcript.",
    "response.output_text.": "response.text.",
}
_PARTS = {"output_audio": "audio", "output_text": "text"}


def said(event: Event) -> Event | None:
    """A server event in beta names; None: there is no such event."""
    kind = event["type"]
    if kind == "conversation.item.done":
        return None
    if kind == "conversation.item.added":
        kind = "conversation.item.created"
    for ours, theirs in _NAMES.items():
        if kind.startswith(ours):
            kind = theirs + kind[len(ours) :]
    event = {**event, "type": kind}
    if "session" in event:
        event["session"] = _session(event["session"])
    if isinstance(event.get("item"), dict):
        event["item"] = _item(event["item"])
    if isinstance(event.get("response"), dict):
        response = {**event["response"], "output": [_item(i) for i in event["response"]["output"]]}
        response["modalities"] = response.pop("output_modalities")
        event["response"] = response
    return event


def heard(event: Event) -> Event:
    """A client event, whose session is a beta one, for the server."""
    session = event.get("session")
    if event["type"] != "session.update" or not isinstance(session, dict):
        return event
    if "type" in session or "audio" in session:
        return {**event, "session": {"type": "unknown_parameter"}}  # refused, as it would be
    session = dict(session)
    audio: dict[str, Event] = {"input": {}, "output": {}}
    ga: Event = {"type": "realtime", "audio": audio}
    for ours, theirs in (("turn_detection", "turn_detection"),):
        if ours in session:
            audio["input"][theirs] = session.pop(ours)
    if "input_audio_transcription" in session:
        audio["input"]["transcription"] = session.pop("input_audio_transcription")
    if "voice" in session:
        audio["output"]["voice"] = session.pop("voice")
    if "modalities" in session:
        ga["output_modalities"] = ["audio"] if "audio" in session.pop("modalities") else ["text"]
    session.pop("input_audio_format", None)
    session.pop("output_audio_format", None)
    return {**event, "session": {**session, **ga}}


def _session(session: Event) -> Event:
    rest = {k: v for k, v in session.items() if k not in ("audio", "output_modalities", "type")}
    given, made = session["audio"]["input"], session["audio"]["output"]
    return {
        **rest,
        "modalities": ["audio", "text"] if session["output_modalities"] == ["audio"] else ["text"],
        "voice": made["voice"],
        "input_audio_format": "pcm16",
        "output_audio_format": "pcm16",
        "input_audio_transcription": given.get("transcription"),
        "turn_detection": given.get("turn_detection"),
    }


def _item(item: Event) -> Event:
    if "content" not in item:
        return item
    content = [{**part, "type": _PARTS.get(part["type"], part["type"])} for part in item["content"]]
    return {**item, "content": content}
