"""Is an event what OpenAI's Python package says that a server of the beta protocol sends?

Strictly, as `tests.judges.openai_types` asks it of general availability.
"""

import json
from collections.abc import Mapping
from functools import cache
from typing import Any, get_args

from openai import BaseModel
from openai.types.beta.realtime import RealtimeServerEvent
from pydantic import TypeAdapter, ValidationError

_OURS = {("session", "model")}  # only OpenAI's own names are in the type


def faults(event: Mapping[str, Any]) -> list[str]:
    """What is wrong with one server event; empty if nothing is."""
    kind = event.get("type")
    model = _models().get(str(kind))
    if model is None:
        return [f"{kind!r} is no server event of the beta protocol"]
    try:
        model.validate_json(json.dumps(event), strict=True)
    except ValidationError as error:
        return [
            f"{kind}: {each['loc']}: {each['msg']}"
            for each in error.errors()
            if each["loc"] not in _OURS
        ]
    return []


@cache
def _models() -> dict[str, TypeAdapter[BaseModel]]:
    """The type of each server event by the value of its `type`."""
    found = {}
    for model in get_args(get_args(RealtimeServerEvent)[0]):
        (kind,) = get_args(model.model_fields["type"].annotation)
        found[kind] = TypeAdapter[BaseModel](model)
    return found
