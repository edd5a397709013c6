"""Reads a relay through its daemon: HTTP over the unix socket."""

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

import httpx

from relayctl.inspect.records import ReadError, Record
from relayctl.wire.address import Address, render


class DaemonReader:
    """Asks the daemon over its unix socket."""

    source = "daemon"

    def __init__(self, http: httpx.Client) -> None:
        self._http = http

    def status(self) -> Record:
        found: Record = self._get("/v1/status")
        return found

    def flows(self) -> Iterator[Record]:
        yield from self._get("/v1/flows")["flows"]

    def flow(self, client: Address, vip: str | None) -> list[Record]:
        vips = [vip] if vip else [str(each["id"]) for each in self.status()["vips"]]
        path = f"/v1/flows/{quote(render(client))}"
        answers = (self._request("GET", path, {"vip": each}) for each in vips)
        return [found for answer in answers if (found := _json_if_found(answer)) is not None]

    def reasons(self) -> list[Record]:
        found: list[Record] = self._get("/v1/reasons")["reasons"]
        return found

    def nexthops(self) -> list[Record]:
        found: list[Record] = self._get("/v1/nexthops")["nexthops"]
        return found

    def delete(self, client: Address, vip: str | None) -> bool:
        path = f"/v1/flows/{quote(render(client))}"
        answer = self._request("DELETE", path, {} if vip is None else {"vip": vip})
        if answer.status_code == httpx.codes.NOT_FOUND:
            return False
        _raise_for(answer)
        return True

    def close(self) -> None:
        self._http.close()

    def _get(self, path: str) -> Any:
        answer = self._request("GET", path, {})
        _raise_for(answer)
        return answer.json()

    def _request(self, method: str, path: str, params: Mapping[str, str]) -> httpx.Response:
        try:
            return self._http.request(method, path, params=dict(params))
        except httpx.HTTPError as error:
            raise ReadError(f"the daemon did not answer {method} {path}: {error}") from None


def _json_if_found(answer: httpx.Response) -> Any:
    if answer.status_code == httpx.codes.NOT_FOUND:
        return None
    _raise_for(answer)
    return answer.json()


def _raise_for(answer: httpx.Response) -> None:
    if answer.is_success:
        return
    with contextlib.suppress(ValueError, KeyError, TypeError):
        raise ReadError(str(answer.json()["error"]["message"]))
    raise ReadError(f"the daemon answered {answer.status_code} to {answer.request.url.path}")
