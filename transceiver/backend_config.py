"""Sections of the configuration that are about the model: which it is, and its sessions. Pure."""

import re
from typing import Annotated, Literal
from urllib.parse import parse_qs, urlsplit

import pydantic

from relayctl.wire.fields import AbsolutePath
from relayctl.wire.settings import Settings
from transceiver.backends.echo import Mode

_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110 section 5.6.2
_HEADER_VALUE = re.compile(r"[\x20-\x7e]*")


class EchoSection(Settings):
    """Backend `echo`; the modes are told in `backends/echo.py`."""

    mode: Mode = Mode.AUDIO


class ParrotSection(Settings):
    """Backend `parrot`. `think_ms`: from the end of a turn to the first sample of its answer;
    `interruption_ms`: speech in a row that it falls silent for."""

    vad: Literal["silero", "webrtc"] = "silero"
    think_ms: Annotated[int, pydantic.Field(ge=0, le=60_000)] = 0
    interruption_ms: Annotated[int, pydantic.Field(ge=20, le=5000)] = 60
    transcribe: bool = False


class RealtimeSection(Settings):
    """Backend `realtime`: the server, and what it wants to see."""

    url: str = ""
    model: str | None = None
    key_file: AbsolutePath | None = None
    headers: dict[str, str] = pydantic.Field(default_factory=dict)
    dialect: Literal["ga", "beta"] = "ga"
    connect_s: Annotated[float, pydantic.Field(gt=0, le=60)] = 5.0

    @pydantic.field_validator("url")
    @classmethod
    def _is_websocket(cls, value: str) -> str:
        if value and (fault := _fault(value)):
            raise ValueError(fault)
        return value

    @pydantic.field_validator("model")
    @classmethod
    def _is_some(cls, value: str | None) -> str | None:
        if value is not None and not value.strip():
            raise ValueError("is empty; leave it out and the client's is asked for")
        return value

    @pydantic.field_validator("headers")
    @classmethod
    def _are_headers(cls, value: dict[str, str]) -> dict[str, str]:
        for name, text in value.items():
            if not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(text):
                raise ValueError("has what HTTP does not allow in a header; want printable ASCII")
        return value


class SessionSection(Settings):
    """Sessions of any backend. Without `warning_s` a short one is warned of at its half."""

    length_s: Annotated[float, pydantic.Field(gt=0, le=86_400)] = 3600.0
    warning_s: Annotated[float, pydantic.Field(ge=0, le=86_400)] = pydantic.Field(
        default_factory=lambda data: min(60.0, data.get("length_s", 3600.0) / 2)
    )
    client_buffer_ms: Annotated[float, pydantic.Field(ge=0, le=1000)] = 40.0
    echo_guard: bool = True


def _fault(url: str) -> str | None:
    """What is wrong with a server's address."""
    wanted = "is no ws:// or wss:// address; write 'wss://<host>/v1/realtime'"
    if any(c.isspace() or not c.isprintable() for c in url):
        return "has a space or what cannot be printed in it; write %20 where one is meant"
    try:
        parts = urlsplit(url)
    except ValueError:
        return wanted
    if parts.scheme not in ("ws", "wss") or not parts.hostname:
        return wanted
    if "@" in parts.netloc:
        return "has a user in it; put the key into key_file"
    try:
        good = parts.port is None or parts.port > 0
    except ValueError:
        good = False
    if not good:
        return "has a port that there is not; choose one of 1-65535"
    if "#" in url:
        return "has a #fragment, which no server gets; leave it out"
    if "" in parse_qs(parts.query, keep_blank_values=True).get("model", ()):
        return "has an empty model in its query; leave it out or name one"
    return None
