"""What a transceiver writes about itself into Redis, for signaling: key and value.

Key `transceiver:{<address>:<port>}`, value JSON, renewed each second, gone after five. Redis is
data, not trust: whatever is there is read without harm, and is no more than a hint that there may
be a transceiver. Pure.
"""

import json
import math
from dataclasses import asdict, dataclass

from relayctl.wire import address
from relayctl.wire.address import Address, AddressError

PREFIX = "transceiver:"
EVERY_S = 1.0
EXPIRES_S = 5
MAX_SIZE = 1024  # bytes of a value
MAX_KEY = 100  # characters
MAX_VERSION = 64
_MOST = 1_000_000  # calls, slots or milliseconds: more are no figures of a transceiver


class RegistrationError(ValueError):
    """Key or value is not of this form."""


@dataclass(frozen=True, slots=True)
class Registration:
    """One process. `lateness_ms`: what 99 of 100 deadlines are kept by."""

    cluster: int
    calls: int
    capacity: int
    lateness_ms: float = 0.0
    draining: bool = False
    version: str = ""

    @property
    def load(self) -> float:
        return self.calls / self.capacity

    def render(self) -> str:
        return json.dumps(asdict(self), separators=(",", ":"))


def key_of(endpoint: Address) -> str:
    """The braces keep what belongs to one endpoint on one node of a Redis cluster."""
    return f"{PREFIX}{{{address.render(endpoint)}}}"


def parse_key(text: bytes | str) -> Address:
    """The endpoint of a key. Raises `RegistrationError`."""
    try:
        key = text.decode("ascii") if isinstance(text, bytes) else text
        endpoint = address.parse(key.removeprefix(f"{PREFIX}{{").removesuffix("}"))
    except (UnicodeDecodeError, AddressError):
        raise RegistrationError("is no key of a transceiver") from None
    if len(key) > MAX_KEY or key != key_of(endpoint):  # one endpoint has one key
        raise RegistrationError("is no key of a transceiver")
    return endpoint


def parse(text: bytes) -> Registration:
    """Read a value; more fields than ours are left alone. Raises `RegistrationError`."""
    if len(text) > MAX_SIZE:
        raise RegistrationError(f"has more than {MAX_SIZE} bytes")
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        raise RegistrationError("is no JSON object")
    return Registration(
        cluster=_integer(values, "cluster", 0, 65535),
        calls=_integer(values, "calls", 0, _MOST),
        capacity=_integer(values, "capacity", 1, _MOST),
        lateness_ms=_number(values, "lateness_ms"),
        draining=_boolean(values, "draining"),
        version=_text(values, "version"),
    )


def _integer(values: dict[str, object], name: str, low: int, high: int) -> int:
    value = values.get(name)
    if type(value) is not int or not low <= value <= high:
        raise RegistrationError(f"{name}: want an integer of {low}-{high}")
    return value


def _number(values: dict[str, object], name: str) -> float:
    value = values.get(name)
    if type(value) is int and 0 <= value <= _MOST:
        return float(value)
    if type(value) is not float or not math.isfinite(value) or not 0 <= value <= _MOST:
        raise RegistrationError(f"{name}: want a number of 0-{_MOST}")
    return value


def _boolean(values: dict[str, object], name: str) -> bool:
    value = values.get(name)
    if type(value) is not bool:
        raise RegistrationError(f"{name}: want true or false")
    return value


def _text(values: dict[str, object], name: str) -> str:
    value = values.get(name)
    if not isinstance(value, str) or len(value) > MAX_VERSION:
        raise RegistrationError(f"{name}: want text of at most {MAX_VERSION} characters")
    return value
