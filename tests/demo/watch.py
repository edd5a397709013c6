"""Look at the relay's counters before, in and after a call.

I/O: the operator's tool for what goes into the report, the relay's API to catch the moment at
which the flow is confirmed.
"""

import json
import threading
import time
from types import TracebackType
from typing import Any

from tests.demo import ledger
from tests.demo.ledger import Counted
from tests.lab import http
from tests.lab.services import Services

_EVERY_S = 0.05


class WatchError(RuntimeError):
    """The relay knows no flow of the call."""


class RelayWatch:
    """A context manager around one call. Nobody else may use the relay meanwhile."""

    def __init__(self, services: Services, datapath: str) -> None:
        self._services = services
        self._xdp = datapath.startswith("xdp")
        self._confirmed: dict[str, int] | None = None
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._await_confirmed, name="relay-watch")

    def __enter__(self) -> "RelayWatch":
        self._before = self._reasons()
        self._known = {flow["client"] for flow in self._flows()}
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._done.set()
        self._thread.join()

    def count(self, client: str) -> Counted:
        """The call of `client` (address:port), once it is over. Raises `WatchError`."""
        after, flows = self._reasons(), self._flows()
        found = [flow for flow in flows if flow["client"] == client]
        if not found:
            seen = ", ".join(flow["client"] for flow in flows) or "none"
            raise WatchError(f"the relay has no flow of {client}; it has {seen}")
        confirmed = self._confirmed
        return Counted(
            flow=found[0],
            whole=ledger.between(self._before, after, xdp=self._xdp),
            since_confirmed=None
            if confirmed is None
            else ledger.between(confirmed, after, xdp=self._xdp),
        )

    def _reasons(self) -> dict[str, int]:
        return ledger.reasons(json.loads(self._services.relayctl("stats", "-o", "json").stdout))

    def _flows(self) -> list[dict[str, Any]]:
        done = self._services.relayctl("flows", "list", "-o", "json")
        flows: list[dict[str, Any]] = json.loads(done.stdout)
        return flows

    def _await_confirmed(self) -> None:
        site = self._services.site
        while not self._done.is_set():
            flows = self._services.flows()
            if any(flow["state"] == "confirmed" for flow in self._new(flows)):
                answer = http.request(site.relay, f"{site.admin_url}/v1/reasons")
                self._confirmed = ledger.reasons(answer.json()["reasons"])
                return
            time.sleep(_EVERY_S)

    def _new(self, flows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [flow for flow in flows if flow["client"] not in self._known]
