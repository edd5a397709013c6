"""Configuration of a service: TOML, then environment, then flags; later ones win.

The text forms are pure input: whoever composes the service reads the file and the environment.
"""

import difflib
import tomllib
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, TypeVar, get_args

import pydantic

from relayctl.wire import address


class Settings(pydantic.BaseModel):
    """Base of every configuration section: immutable, and an unknown key is an error."""

    model_config = pydantic.ConfigDict(
        frozen=True,
        extra="forbid",
        arbitrary_types_allowed=True,
        hide_input_in_errors=True,
        allow_inf_nan=False,
    )


class SettingsError(ValueError):
    """The configuration cannot be used. `faults` has one line for each key at fault."""

    def __init__(self, faults: Iterable[str]) -> None:
        self.faults = tuple(faults)
        super().__init__("\n".join(self.faults))


def _to_address(value: object) -> address.Address:
    if isinstance(value, tuple):
        return value
    if not isinstance(value, str):
        raise ValueError("want text of the form <ip>:<port>")
    return address.parse(value)


Endpoint = Annotated[
    address.Address,
    pydantic.BeforeValidator(_to_address),
    pydantic.PlainSerializer(address.render, when_used="json"),
]
"""A field of a `Settings` written as `<ip>:<port>`, in JSON too."""

S = TypeVar("S", bound=Settings)


def load(
    model: type[S],
    *,
    toml: str = "",
    environ: Mapping[str, str] | None = None,
    prefix: str = "",
    flags: Mapping[str, Any] | None = None,
) -> S:
    """Build `model` from a TOML text, variables named `<prefix><KEY>` and flags.

    `__` in a variable's name goes into a section. Flags that are None were not given. Raises
    `SettingsError`.
    """
    try:
        values = tomllib.loads(toml)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError([f"configuration is no TOML: {error}"]) from None
    known = list(_sections(model))
    unknown = []
    for name, text in (environ or {}).items():
        if prefix and name.startswith(prefix):
            path = name.removeprefix(prefix).lower().split("__")
            if path[0] in known:
                _merge(values, path, _from_text(text), name)
            else:
                nearest = _nearest(path[0], known)
                mend = f"did you mean {prefix}{nearest.upper()}?" if nearest else f"unset {name}"
                unknown.append(f"{name}: unknown variable; {mend}")
    values |= {key: value for key, value in (flags or {}).items() if value is not None}
    try:
        loaded = model.model_validate(values)
    except pydantic.ValidationError as error:
        faults = [_fault(fault, values, model) for fault in error.errors()]
        raise SettingsError([*faults, *unknown]) from None
    if unknown:
        raise SettingsError(unknown)
    return loaded


def _sections(model: type[Settings]) -> dict[str, type[Settings] | None]:
    """The keys of a section, and what is below those that are sections or lists of them."""
    below: dict[str, type[Settings] | None] = {}
    for name, field in model.model_fields.items():
        kinds = (field.annotation, *get_args(field.annotation))
        sections = (k for k in kinds if isinstance(k, type) and issubclass(k, Settings))
        below[field.alias or name] = next(sections, None)
    return below


def _nearest(name: str, known: Iterable[str]) -> str | None:
    return next(iter(difflib.get_close_matches(name, known, n=1)), None)


def _from_text(text: str) -> Any:
    """A TOML value where it is one, else the text itself: addresses need no quotes."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _merge(values: dict[str, Any], path: list[str], value: Any, name: str) -> None:
    for key in path[:-1]:
        values = values.setdefault(key, {})
        if not isinstance(values, dict):
            raise SettingsError([f"{name}: {key!r} is a value, not a section"])
    values[path[-1]] = value


_SECRET = (
    "token",
    "secret",
    "password",
    "headers",
    "realtime.url",
    "redis",
    "credential",
    "sha256",
)

_INTEGER = "is no integer; write digits only"
_SECTION = "is no section; see docs/configuration.md for its keys"
_LIST = "is no list; write it in brackets"
_SAYS = {
    "int_parsing": _INTEGER,
    "int_type": _INTEGER,
    "int_from_float": _INTEGER,
    "float_parsing": "is no number; write digits and a point",
    "float_type": "is no number; write digits and a point",
    "finite_number": "is no finite number; write digits and a point",
    "bool_parsing": "is neither true nor false; write one of them",
    "bool_type": "is neither true nor false; write one of them",
    "string_type": "is no text; put it in quotes",
    "path_type": "is no path; put it in quotes",
    "literal_error": "is not {expected}; write one of these",
    "greater_than_equal": "is too small; write {ge} or more",
    "greater_than": "is too small; write more than {gt}",
    "less_than_equal": "is too large; write {le} or less",
    "less_than": "is too large; write less than {lt}",
    "tuple_type": _LIST,
    "list_type": _LIST,
    "model_type": _SECTION,
    "model_attributes_type": _SECTION,
    "too_long": "has {actual_length} entries; write {max_length}",
}
"""Our words, with the mend, for pydantic's types of error."""


def _fault(fault: Any, values: Any, model: type[Settings]) -> str:
    path = fault["loc"]
    key = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")
    message = fault["msg"].removeprefix("Value error, ")
    if fault["type"] in _SAYS:
        message = _SAYS[fault["type"]].format(**fault.get("ctx", {}))
    if fault["type"] == "extra_forbidden":
        section: type[Settings] | None = model
        for part in path[:-1]:
            if section and isinstance(part, str):  # else the number of a list's section
                section = _sections(section).get(part)
        nearest = _nearest(path[-1], _sections(section)) if section else None
        hint = f"did you mean {nearest}? " if nearest else ""
        return f"{key}: unknown key; {hint}check its spelling against docs/configuration.md"
    if fault["type"] == "missing":
        return f"{key}: missing; it has no default, so set it"
    if not path:
        return str(message)
    for part in path:
        try:
            values = values[part]
        except (KeyError, IndexError, TypeError):
            return f"{key}: {message}"
    shown = "<hidden>" if any(word in key for word in _SECRET) else repr(values)
    return f"{key} = {shown}: {message}"
