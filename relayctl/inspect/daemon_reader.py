"""Reads a relay through its daemon: HTTP over the unix socket."""

import contextlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote

import httpx

from relayctl.inspect.census import Census, of_records
from relayctl.inspect.records import ReadError, Record
from relayctl.wire.address import Address, render

_BETWEEN = re.compile(r"[\s,]*")


class DaemonReader:
    """Asks the daemon over its unix socket."""

    source = "daemon"

    def __init__(self, http: httpx.Client) -> None:
        self._http = http

    def status(self) -> Record:
        found: Record = self._get("/v1/status")
        return found

    def flows(self) -> Iterator[Record]:
        """One after the other as they arrive: the whole table may be some 500 MB of JSON."""
        try:
            with self._http.stream("GET", "/v1/flows") as answer:
                if not answer.is_success:
                    answer.read()
                    _raise_for(answer)
                yield from entries(answer.iter_text())
        except httpx.HTTPError as error:
            raise ReadError(f"the daemon did not answer GET /v1/flows: {error}") from None

    def census(self) -> Census:
        return of_records(self.flows())

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

    def drain(self, on: bool) -> None:
        _raise_for(self._request("PUT" if on else "DELETE", "/v1/drain", {}))

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


def entries(pieces: Iterable[str]) -> Iterator[Record]:
    """The entries of `{"<name>":[...]}` that comes in pieces. Raises `ReadError`."""
    decode, text, begun = json.JSONDecoder().raw_decode, "", False
    for piece in pieces:
        text += piece
        if not begun:
            _, bracket, rest = text.partition("[")
            if not bracket:
                continue
            text, begun = rest, True
        at = _skip(text, 0)
        while (text[at : at + 1] or "]") != "]":
            try:
                entry, end = decode(text, at)
            except ValueError:  # the rest of it is still to come
                break
            yield entry
            at = _skip(text, end)
        text = text[at:]
    if text.strip() != "]}":
        raise ReadError("the daemon's answer to GET /v1/flows broke off")


def _skip(text: str, at: int) -> int:
    """Where the next entry begins."""
    match = _BETWEEN.match(text, at)
    return match.end() if match else at


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
