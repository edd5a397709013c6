"""The record of a call: what of it another transceiver can carry on, sealed. Pure.

A record is `version (1 byte) | nonce (12) | AES-256-GCM`. The key is HKDF-SHA256 of the second half
of the call's id, which only its client has; the text within is JSON. It is found by the SHA-256 of
the whole id, which is authenticated with it, so no record passes for another call's.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from relayctl.wire.call_id import CallId
from transceiver.session.items import Item

VERSION = 1
MAX_RECORD = 256 * 1024  # bytes, sealed
MAX_ITEMS = 500  # each is two events of the new call
KEEP_S = 600  # after the last sign of life of the call
CLAIM_S = 2 * KEEP_S  # longer than any record: its call may be hung, and come back to life

_NONCE = 12
_OVERHEAD = 1 + _NONCE + 16
_INFO = b"ferryline call record"


class RecordError(ValueError):
    """These bytes are no record of this call. The message has nothing of it."""


@dataclass(frozen=True, slots=True)
class Record:
    """`subject`: on whose behalf the call was. `items` as `remembered.as_text` makes them."""

    subject: str
    session: Mapping[str, Any]
    items: Sequence[Item]


def key_of(call_id: CallId) -> str:
    """Where the record is. Braces: on a cluster all keys of a call are in one place."""
    return f"call:{{{_digest(call_id).hex()}}}"


def claim_of(call_id: CallId) -> str:
    """The key that is there once somebody has resumed the call."""
    return f"{key_of(call_id)}:resumed"


def render(record: Record) -> tuple[bytes, int]:
    """As JSON in ASCII, and how many of the oldest items had to go to make it fit.

    Raises `RecordError` if the settings alone are too large."""
    head = json.dumps({"subject": record.subject, "session": record.session})[:-1] + ', "items": ['
    room = MAX_RECORD - _OVERHEAD - len(head) - len("]}")
    if room < 0:
        raise RecordError(f"the settings take more than {MAX_RECORD} bytes")
    kept: list[str] = []
    for item in reversed(record.items):
        text = json.dumps(item)
        room -= len(text) + len(", ")
        if room < 0 or len(kept) == MAX_ITEMS:
            break
        kept.append(text)
    return f"{head}{', '.join(reversed(kept))}]}}".encode(), len(record.items) - len(kept)


def seal(text: bytes, call_id: CallId, random_bytes: Callable[[int], bytes]) -> bytes:
    """Only who has the call's id can read it."""
    nonce, version = random_bytes(_NONCE), bytes([VERSION])
    cipher = AESGCM(_key(call_id))
    return version + nonce + cipher.encrypt(nonce, text, version + _digest(call_id))


def unseal(sealed: bytes, call_id: CallId) -> Record:
    """The inverse of `render` and `seal`. Raises `RecordError`."""
    if len(sealed) > MAX_RECORD or len(sealed) < _OVERHEAD or sealed[0] != VERSION:
        raise RecordError(f"{len(sealed)} bytes, no record of version {VERSION}")
    nonce, version = sealed[1 : 1 + _NONCE], sealed[:1]
    try:
        text = AESGCM(_key(call_id)).decrypt(
            nonce, sealed[1 + _NONCE :], version + _digest(call_id)
        )
    except InvalidTag:
        raise RecordError("not sealed for this call") from None
    return _read(text)


def _read(text: bytes) -> Record:
    try:
        values = json.loads(text)
        record = Record(values["subject"], values["session"], values["items"])
    except (ValueError, KeyError, TypeError, RecursionError):
        raise RecordError("sealed, and not readable") from None
    is_right = (
        isinstance(record.subject, str)
        and isinstance(record.session, dict)
        and isinstance(record.items, list)
        and all(isinstance(item, dict) and isinstance(item.get("id"), str) for item in record.items)
    )
    if not is_right:
        raise RecordError("sealed, and not as we write it")
    return record


def _key(call_id: CallId) -> bytes:
    return HKDF(SHA256(), 32, salt=None, info=_INFO).derive(call_id.secret.encode())


def _digest(call_id: CallId) -> bytes:
    return hashlib.sha256(call_id.render().encode()).digest()
