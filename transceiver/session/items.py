"""Conversation items: those a client brings, and those that are spoken. Pure.

An item is never changed in place: it may wait in an event that has not been sent yet.
"""

import re
from collections.abc import Mapping
from typing import Any, Literal

from transceiver.session.fields import Refusal, invalid, mapping, size, text

Item = dict[str, Any]
Status = Literal["in_progress", "completed", "incomplete"]

MAX_ITEM = 128 * 1024  # characters of JSON
MAX_ID = 128  # characters

_PARTS: dict[str, dict[str, str]] = {  # role: type of a content part: the field that it needs
    "user": {"input_text": "text", "input_audio": "", "input_image": "image_url"},
    "assistant": {"output_text": "text", "output_audio": ""},
    "system": {"input_text": "text"},
}
_KEPT = ("text", "transcript", "image_url", "detail")  # of a part; the sound itself is not


def read(asked: object, new_id: str, param: str = "item") -> Item:
    """The item that a client's `item` stands for; `new_id` unless it brings one of its own.

    Takes message, function_call and function_call_output. Raises `Refusal`.
    """
    given = mapping(asked, param)
    kind = given.get("type")
    prefix = f"{param}."
    item: Item = {"id": _id(given, new_id, prefix), "object": "realtime.item", "type": kind}
    item["status"] = "completed"
    if kind == "message":
        item |= _message(given, prefix)
    elif kind == "function_call":
        item |= {key: text(given, key, prefix) for key in ("name", "arguments")}
        item["call_id"] = text(given, "call_id", prefix) if "call_id" in given else item["id"]
    elif kind == "function_call_output":
        item |= {key: text(given, key, prefix) for key in ("call_id", "output")}
    else:
        want = "'message', 'function_call' or 'function_call_output'"
        raise invalid(f"{prefix}type", kind, want)
    if size(item, param) > MAX_ITEM:
        raise Refusal("item_too_large", f"the item takes more than {MAX_ITEM} characters", param)
    return item


def spoken_turn(item_id: str) -> Item:
    """What the client said, of which nothing is written yet."""
    return _item(item_id, "user", [{"type": "input_audio", "transcript": None}], "completed")


def is_spoken_turn(item: Item) -> bool:
    """Whether it is as `spoken_turn` makes them; a client may have put another in its place."""
    content = item.get("content") or [{}]
    return item.get("role") == "user" and content[0].get("type") == "input_audio"


def reply(item_id: str, content: list[dict[str, Any]], status: Status) -> Item:
    """The item of a response."""
    return _item(item_id, "assistant", content, status)


def reply_content(modality: str, text: str) -> dict[str, Any]:
    """The one content part of a reply; `text` is its transcript if it is spoken."""
    if modality == "text":
        return {"type": "output_text", "text": text}
    return {"type": "output_audio", "transcript": text}


def transcribed(item: Item, transcript: str) -> Item:
    """The item with this transcript of its sound."""
    return item | {"content": [item["content"][0] | {"transcript": transcript}]}


def truncated(item: Item, content_index: int, heard_ms: int, received_ms: int) -> Item:
    """The item with as much of the part's transcript as was heard of its sound: whole words."""
    content = list(item["content"])
    part = content[content_index]
    heard = heard_part(part.get("transcript") or "", heard_ms, received_ms)
    content[content_index] = part | {"transcript": heard}
    return item | {"content": content}


def heard_part(transcript: str, heard_ms: int, received_ms: int) -> str:
    """The words at the front that fit into the heard share of the sound, spread evenly over it:
    rather one too few than one that was not spoken."""
    length = len(transcript) * min(heard_ms, received_ms) // max(received_ms, 1)
    ends = [word.end() for word in re.finditer(r"\S+", transcript) if word.end() <= length]
    return transcript[: ends[-1]] if ends else ""


def is_spoken_reply(item: Item, content_index: int) -> bool:
    """Whether this is a part that the client hears, so one that can be truncated."""
    content = item.get("content") or []
    return (
        item.get("role") == "assistant"
        and content_index < len(content)
        and content[content_index]["type"] == "output_audio"
    )


def written(item: Item) -> str | None:
    """What the item says to whoever has to answer it; None for a spoken turn."""
    if item["type"] == "function_call_output":
        return str(item["output"])
    texts = [part["text"] for part in item.get("content", ()) if part["type"] == "input_text"]
    return "\n".join(texts) if texts else None


def _id(given: Mapping[str, Any], new_id: str, prefix: str) -> str:
    if given.get("id") is None:
        return new_id
    item_id = text(given, "id", prefix)
    if not 0 < len(item_id) <= MAX_ID:
        raise invalid(f"{prefix}id", item_id, f"1 to {MAX_ID} characters")
    return item_id


def _message(given: Mapping[str, Any], prefix: str) -> Item:
    role = given.get("role")
    if not isinstance(role, str) or role not in _PARTS:
        raise invalid(f"{prefix}role", role, " or ".join(map(repr, _PARTS)))
    content = given.get("content")
    if not isinstance(content, list) or not content:
        raise invalid(f"{prefix}content", content, "a list of content parts")
    parts = [_part(part, role, f"{prefix}content[{at}]") for at, part in enumerate(content)]
    return {"role": role, "content": parts}


def _part(asked: object, role: str, param: str) -> dict[str, Any]:
    given = mapping(asked, param)
    kind, allowed = given.get("type"), _PARTS[role]
    if not isinstance(kind, str) or kind not in allowed:
        raise invalid(f"{param}.type", kind, " or ".join(map(repr, allowed)))
    if allowed[kind]:
        text(given, allowed[kind], f"{param}.")
    part: dict[str, Any] = {"type": kind}
    if kind.endswith("_audio"):
        part["transcript"] = None  # clients want it to be there
    kept = {key: text(given, key, f"{param}.") for key in _KEPT if given.get(key) is not None}
    return part | kept


def _item(item_id: str, role: str, content: list[dict[str, Any]], status: Status) -> Item:
    return {
        "id": item_id,
        "object": "realtime.item",
        "type": "message",
        "status": status,
        "role": role,
        "content": content,
    }
