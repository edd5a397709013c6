"""API keys: who has one is a subject that may begin calls, and end and watch its own. Pure.

A configuration holds digests only. Keys are random enough that one round of SHA-256 keeps them.
"""

import base64
import hashlib
import hmac
from collections.abc import Iterable
from dataclasses import dataclass

PREFIX = "sk-fl-"
RANDOM_BYTES = 32


@dataclass(frozen=True, slots=True)
class ApiKey:
    """`digest`: SHA-256 of the key's text. `offers_per_minute`: of the subject; 0 is no limit."""

    subject: str
    digest: bytes
    offers_per_minute: int


class ApiKeys:
    """Those of the configuration."""

    def __init__(self, keys: Iterable[ApiKey]) -> None:
        self._keys = tuple(keys)
        self._rates = {key.subject: key.offers_per_minute for key in self._keys}

    def find(self, text: str) -> ApiKey | None:
        """The key of this text. Takes as long for every text: none is left out after a match."""
        digest = digest_of(text)
        found = None
        for key in self._keys:
            if hmac.compare_digest(key.digest, digest):
                found = key
        return found

    def offers_per_minute(self, subject: str) -> int | None:
        """None for a subject that has no key (any more)."""
        return self._rates.get(subject)


def digest_of(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def render(randomness: bytes) -> str:
    """The text of a new key, of `RANDOM_BYTES` unpredictable bytes."""
    if len(randomness) != RANDOM_BYTES:
        raise ValueError(f"{len(randomness)} random bytes; a key takes {RANDOM_BYTES}")
    return PREFIX + base64.urlsafe_b64encode(randomness).decode().rstrip("=")
