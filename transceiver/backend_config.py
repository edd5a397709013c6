"""Sections of the configuration that are about the model: which it is, and its sessions. Pure."""

import re
from typing import Annotated, Literal
from urllib.parse import urlsplit

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
        try:
            parts = urlsplit(value)
            good = parts.scheme in ("ws", "wss") and bool(parts.hostname)
            good = good and (parts.port is None or parts.port > 0)
        except ValueError:
            good = False
        if value and not good:
            raise ValueError("is no ws:// or wss:// address; write 'wss://<host>/v1/realtime'")
        if value and "@" in parts.netloc:
            raise ValueError("has a user in it; put the key into key_file")
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
