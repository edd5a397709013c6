"""Where the upstream server is, and how soon it is tried again. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import parse_qs, quote, urlsplit

from relayctl.wire.address import render

MIN_RETRY_S = 0.5
MAX_RETRY_S = 8.0

_SHARE = 1 / 16  # of the outage: for us it becomes no more than so much longer
_JITTER = 0.25  # of the pause: calls that lost a server together come back one by one


@dataclass(frozen=True, slots=True)
class Target:
    """Of all calls. `key` goes into an `Authorization` header; it and `headers` are never shown."""

    url: str = field(repr=False)  # ws:// or wss://; may have a query
    model: str | None = None  # None: what the client asks for
    key: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    dialect: Literal["ga", "beta"] = "ga"
    connect_s: float = 5.0  # until the server's first word

    @property
    def endpoint(self) -> str:
        """As much of the URL as may be shown: host and port."""
        parts = urlsplit(self.url)
        return render((parts.hostname or "", parts.port or (443 if self.is_secure else 80)))

    @property
    def is_secure(self) -> bool:
        return urlsplit(self.url).scheme == "wss"

    def address(self, asked: object) -> str:
        """The URL with the model in its query, unless there is one; `asked` by the client."""
        model = self.model or asked
        parts = urlsplit(self.url)
        if not isinstance(model, str) or "model" in parse_qs(parts.query):
            return self.url
        query = f"{parts.query}&" if parts.query else ""
        return parts._replace(query=f"{query}model={quote(model, safe='')}").geturl()

    def all_headers(self) -> dict[str, str]:
        """Of the handshake; `headers` goes before what we would say."""
        ours = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        beta = {"OpenAI-Beta": "realtime=v1"} if self.dialect == "beta" else {}
        return {**ours, **beta, **self.headers}


def retry_s(outage_s: float, random: float) -> float:
    """Seconds to wait, so long after the server was lost; `random` in 0..1."""
    pause = max(MIN_RETRY_S, outage_s * _SHARE)
    return min(MAX_RETRY_S, pause * (1 + _JITTER * random))
