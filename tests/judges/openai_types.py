"""Is an event what OpenAI's Python package says that a server sends?

The package reads leniently: it never validates what arrives, nearly all inner fields are optional
and unknown ones are welcome. Here every type and literal has to fit without conversion, no field
may be unknown, and what each server gives of items, responses and errors has to be there.
"""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, get_args

from openai import BaseModel
from openai.types.realtime import RealtimeServerEvent
from pydantic import TypeAdapter, ValidationError

_ALWAYS = {  # fields that the schema leaves optional, by the key that holds the object
    "item": ("id", "object", "status"),
    "response": ("id", "object", "status", "output", "output_modalities", "usage"),
    "error": ("code", "message", "type"),
    "session": ("id", "object", "model", "audio", "output_modalities", "expires_at"),
    "part": ("type",),
}


def faults(event: Mapping[str, Any]) -> list[str]:
    """What is wrong with one server event; empty if nothing is."""
    kind = event.get("type")
    if not isinstance(kind, str) or kind not in _models():
        return [f"{kind!r} is no server event"]
    try:
        read = _models()[kind].validate_json(json.dumps(event), strict=True)
    except ValidationError as error:
        return [f"{kind}: {_place(fault['loc'])}: {fault['msg']}" for fault in error.errors()]
    unknown = [f"{kind}: {path} is unknown" for path in _unknown(read, "")]
    missing = [f"{kind}: {path} is missing" for path in _missing(event)]
    return unknown + missing


@cache
def _models() -> dict[str, TypeAdapter[BaseModel]]:
    """The type of each server event by the value of its `type`."""
    found = {}
    for model in get_args(get_args(RealtimeServerEvent)[0]):
        (kind,) = get_args(model.model_fields["type"].annotation)
        found[kind] = TypeAdapter[BaseModel](model)
    return found


def _place(location: tuple[int | str, ...]) -> str:
    return ".".join(map(str, location))


def _unknown(value: object, path: str) -> Iterator[str]:
    """Fields that the type does not have; a session may keep those of its client."""
    if isinstance(value, list):
        for at, entry in enumerate(value):
            yield from _unknown(entry, f"{path}[{at}]")
    if not isinstance(value, BaseModel):
        return
    if path != "session":
        yield from (f"{path}.{name}".lstrip(".") for name in value.model_extra or ())
    for name in type(value).model_fields:
        yield from _unknown(getattr(value, name), f"{path}.{name}".lstrip("."))


def _missing(event: Mapping[str, Any]) -> Iterator[str]:
    for key, names in _ALWAYS.items():
        inner = event.get(key)
        if isinstance(inner, Mapping):
            yield from (f"{key}.{name}" for name in names if name not in inner)
    response = event.get("response")
    if event["type"] != "response.done" or not isinstance(response, Mapping):
        return
    if response.get("usage") is None:
        yield "response.usage"
    if response.get("status") != "completed" and response.get("status_details") is None:
        yield "response.status_details"
