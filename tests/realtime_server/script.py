"""What the test server does, in one value."""

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class Script:
    """Seconds, unless the name says otherwise. `times` of a fault: how often, then never again."""

    # replies
    reply_s: float = 2.0  # of sound
    sound: Literal["tone", "speech"] = "tone"
    pace: float = 10.0  # times real time; 0 = all at once
    chunk_ms: int = 100  # of sound in one delta; large ones are bursts
    think_s: float = 0.0  # before a response's first delta
    transcript: str = "The quick brown fox jumps over the lazy dog"
    heard: str | None = "hello there"  # transcript of spoken turns, where one is asked for
    dialect: Literal["ga", "beta"] = "ga"

    # faults
    refuse: int | None = None  # HTTP status of the handshake: 401, 429, 503
    location: str | None = None  # where a refusal sends the client
    never_answer: bool = False  # the handshake
    mute: bool = False  # connects, and says nothing
    fault_times: int = 1_000_000  # of the three above: so many connections, then it is well
    refuse_session: bool = False  # an error for each session.update
    ignore_session: bool = False  # no answer to a session.update
    stray: tuple[str, ...] = ()  # messages said just after session.created, as they are
    die_after_s: float | None = None  # of a reply's sound: the connection breaks
    die_times: int = 1
    hang_up_after_s: float | None = None  # of a reply's sound: closed with code 1000
    deaf_after_s: float | None = None  # of the connection: it reads no more
    deaf_s: float = 1.0  # for so long

    @classmethod
    def of(cls, values: dict[str, Any]) -> "Script":
        """From a JSON object. Raises `ValueError` naming a key that there is not."""
        known = {field.name for field in dataclasses.fields(cls)}
        if unknown := values.keys() - known:
            raise ValueError(f"script: no {sorted(unknown)}; there are {sorted(known)}")
        made: Any = {key: tuple(v) if isinstance(v, list) else v for key, v in values.items()}
        return cls(**made)
