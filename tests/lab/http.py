"""HTTP from inside a node."""

import json
import ssl
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any

from tests.lab.node import Node

_TIMEOUT_S = 5.0
_DIRECT = urllib.request.build_opener(
    urllib.request.ProxyHandler({}),
    # our own certificate, which nobody signed
    urllib.request.HTTPSHandler(context=ssl._create_unverified_context()),
)


@dataclass(frozen=True)
class Response:
    status: int
    text: str

    def json(self) -> Any:
        return json.loads(self.text)


def request(node: Node, url: str, method: str = "GET", token: str = "") -> Response:
    """Any status is a response. Raises `OSError` if nobody answers."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    asked = urllib.request.Request(url, method=method, headers=headers)

    def ask() -> Response:
        try:
            with _DIRECT.open(asked, timeout=_TIMEOUT_S) as response:
                return Response(response.status, response.read().decode())
        except urllib.error.HTTPError as error:
            with error:
                return Response(error.code, error.read().decode())

    return node.call(ask)
