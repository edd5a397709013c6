"""STUN and TURN servers that clients are told of: `[[ice_server]]`, as JSON and as Link headers.

Nobody needs them to reach a VIP, which is a public address; a TURN server helps clients whose
network lets no UDP out. Username and credential go to whoever may begin a call. Pure.
"""

import re
from collections.abc import Iterable
from typing import Annotated, Any

import pydantic

from relayctl.wire.settings import Settings

# RFC 7064 and 7065: scheme, host, port, transport. Fit for a header between < and >.
_URL = re.compile(r"(stun|turn)s?:[A-Za-z0-9.\[\]:_-]{1,255}(\?transport=(udp|tcp))?")
_HEADER_TEXT = re.compile(r"[ !#-\[\]-~]{1,512}")  # of a quoted string: no quote, no backslash


def _to_urls(value: object) -> object:
    return (value,) if isinstance(value, str) else value


def _is_url(value: str) -> str:
    if not _URL.fullmatch(value):
        raise ValueError("is no ICE server; write 'turn:turn.example.org:3478?transport=udp'")
    return value


def _is_header_text(value: str | None) -> str | None:
    if value is not None and not _HEADER_TEXT.fullmatch(value):
        raise ValueError("goes into a header; use visible ASCII without quotes and backslashes")
    return value


Url = Annotated[str, pydantic.AfterValidator(_is_url)]
Text = Annotated[str | None, pydantic.AfterValidator(_is_header_text)]


class IceServerSection(Settings):
    """One server, under one or more URLs. A TURN server has a username and a credential."""

    urls: Annotated[
        tuple[Url, ...], pydantic.BeforeValidator(_to_urls), pydantic.Field(min_length=1)
    ]
    username: Text = None
    credential: Text = pydantic.Field(default=None, repr=False, validate_default=True)

    @pydantic.field_validator("credential")
    @classmethod
    def _goes_with_username(cls, value: str | None, info: pydantic.ValidationInfo) -> str | None:
        if (value is None) != (info.data.get("username") is None):
            raise ValueError("username and credential stand together; a TURN server takes both")
        return value


IceServers = tuple[IceServerSection, ...]


def ice_config(servers: Iterable[IceServerSection]) -> dict[str, Any]:
    """As the first argument of `RTCPeerConnection` has it."""
    return {"iceServers": [server.model_dump(exclude_none=True) for server in servers]}


def links(servers: Iterable[IceServerSection]) -> dict[str, str]:
    """As a `Link` header (RFC 9725 section 4.6); none without servers."""
    values = [_link(url, server) for server in servers for url in server.urls]
    return {"Link": ", ".join(values)} if values else {}


def _link(url: str, server: IceServerSection) -> str:
    link = f'<{url}>; rel="ice-server"'
    if server.username is None:
        return link
    account = f'username="{server.username}"; credential="{server.credential}"'
    return f'{link}; {account}; credential-type="password"'
