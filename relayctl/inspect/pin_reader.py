"""Reads a relay through its pinned maps, for when no daemon runs. Never writes them."""

from collections.abc import Callable, Iterator

from relayctl.inspect import records
from relayctl.inspect.pinned import Pinned
from relayctl.inspect.records import ReadError, Record, is_flow_of
from relayctl.wire.address import Address


class PinReader:
    source = "pins"

    def __init__(self, instance: str, pinned: Pinned, now: Callable[[], int]) -> None:
        """`now` gives the present stamp in units."""
        self._instance, self._pinned, self._now = instance, pinned, now
        self._datapath = pinned.datapath

    def status(self) -> Record:
        states = {"new": 0, "confirmed": 0}
        for record in self.flows():
            states[record["state"]] += 1
        counts = {reason.label: n for reason, n in self._datapath.reasons().items() if n}
        alive = self._datapath.alive()
        return {
            "instance": self._instance,
            "running": False,
            "datapath": self._datapath.name,
            # a stamp of 0: it ended in order, or never ran
            "packet_process_silent_s": records.seconds(max(0, self._now() - alive))
            if alive
            else None,
            "vips": [{"id": id, "public": vip} for id, vip in sorted(self._pinned.vips.items())],
            "interfaces": [{"name": name} for name in self._pinned.attached],
            "flows": {**states, "max": self._datapath.flows.capacity},
            "ready": False,
            "not_ready": ["the daemon is not running"],
            "reasons": counts,
        }

    def flows(self) -> Iterator[Record]:
        now, nexthops = self._now(), self._datapath.nexthops()
        for key, flow in self._datapath.flows.items():
            yield records.flow_record(
                key,
                flow,
                now=now,
                vips=self._pinned.vips,
                nexthops=nexthops,
                kernel=bool(self._pinned.attached),
            )

    def flow(self, client: Address, vip: str | None) -> list[Record]:
        return [each for each in self.flows() if is_flow_of(each, client, vip)]

    def reasons(self) -> list[Record]:
        return records.reason_records(self._datapath.reasons())

    def nexthops(self) -> list[Record]:
        found = sorted(self._datapath.nexthops().items())
        return [records.nexthop_record(index, hop, self._pinned.ports) for index, hop in found]

    def delete(self, client: Address, vip: str | None) -> bool:
        raise ReadError(
            f"{self._instance}: only the daemon deletes a flow, since its return packets would "
            "bring it back; start it, or end all of them with `relayctl unload`"
        )

    def close(self) -> None:
        self._datapath.close()
