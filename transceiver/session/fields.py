"""Read the fields of a client's event: right, or a `Refusal` that names field, value and mend."""

import json
from collections.abc import Mapping
from typing import Any, TypeGuard

_SHOWN = 64  # characters of a wrong value


class Refusal(ValueError):
    """What the client asks is not done; all of it becomes its `error` event."""

    def __init__(self, code: str, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.param = param


def invalid(param: str, value: object, want: str) -> Refusal:
    """The refusal of a field that is not as it should be."""
    shown = repr(value)
    shown = shown if len(shown) <= _SHOWN else shown[:_SHOWN] + "…"
    return Refusal("invalid_value", f"{param} is {shown}: want {want}", param)


def text(of: Mapping[str, Any], name: str, prefix: str = "") -> str:
    """A string that has to be there."""
    value = of.get(name)
    if not isinstance(value, str):
        raise invalid(prefix + name, value, "a string")
    return value


def number(of: Mapping[str, Any], name: str, default: int | None = None) -> int:
    """An integer from 0; `default` if it is absent."""
    value = of.get(name, default)
    if not is_number(value):
        raise invalid(name, value, "an integer from 0")
    return int(value)


def mapping(value: object, param: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise invalid(param, value, "an object")
    return value


def is_number(value: object) -> TypeGuard[int]:
    """An integer from 0; true and false are none."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def size(value: object, param: str) -> int:
    """Characters of JSON. Refuses what JSON cannot say, and what is nested too deep."""
    try:
        return len(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError, RecursionError):
        raise Refusal("invalid_value", f"{param} is no plain JSON", param) from None
