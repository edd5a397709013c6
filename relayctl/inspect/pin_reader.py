"""Reads a relay through its pinned maps, for when no daemon runs. Never writes them."""

from collections.abc import Callable, Iterable, Iterator

from relayctl.flow import Flow, FlowKey
from relayctl.inspect import census, records
from relayctl.inspect.census import FAMILIES, STATES, Census
from relayctl.inspect.pinned import Pinned
from relayctl.inspect.records import ReadError, Record
from relayctl.wire.address import Address


class PinReader:
    source = "pins"

    def __init__(self, instance: str, pinned: Pinned, now: Callable[[], int]) -> None:
        """`now` gives the present stamp in units."""
        self._instance, self._pinned, self._now = instance, pinned, now
        self._datapath = pinned.datapath

    def status(self) -> Record:
        found = self.census()
        counts = {reason.label: n for reason, n in self._datapath.reasons().items() if n}
        alive = self._datapath.alive()
        return {
            "instance": self._instance,
            "running": False,
            "datapath": self._pinned.name,
            # a stamp of 0: it ended in order, or never ran
            "packet_process_silent_s": records.seconds(max(0, self._now() - alive))
            if alive
            else None,
            "vips": [{"id": id, "public": vip} for id, vip in sorted(self._pinned.vips.items())],
            "interfaces": [
                {"name": each["name"], "role": each["role"]} for each in self._pinned.interfaces()
            ],
            "flows": {
                **{state: found.of_state(state) for state in STATES},
                "max": self._datapath.flows.capacity,
            },
            "ready": False,
            "not_ready": ["the daemon is not running"],
            "kernel": kernel_record(self._pinned, found),
            "reasons": counts,
        }

    def census(self) -> Census:
        return census.of_batches(self._pinned.batches())

    def flows(self) -> Iterator[Record]:
        return self._records(self._datapath.flows.items())

    def flow(self, client: Address, vip: str | None) -> list[Record]:
        keys = [
            FlowKey(client, id)
            for id, public in sorted(self._pinned.vips.items())
            if vip in (None, public, str(id))
        ]
        found = [(key, flow) for key in keys if (flow := self._datapath.flows.get(key))]
        return list(self._records(found))

    def _records(self, flows: Iterable[tuple[FlowKey, Flow]]) -> Iterator[Record]:
        now, nexthops = self._now(), self._datapath.nexthops()
        vips, kernel = self._pinned.vips, bool(self._pinned.attached)
        for key, flow in flows:
            yield records.flow_record(
                key, flow, now=now, vips=vips, nexthops=nexthops, kernel=kernel
            )

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

    def drain(self, on: bool) -> None:
        raise ReadError(f"{self._instance}: only a running daemon drains; nobody is told ready now")

    def close(self) -> None:
        self._datapath.close()


def kernel_record(pinned: Pinned, found: Census) -> Record:
    """What the kernel holds, whether or not a daemon runs."""
    return {
        "layout": pinned.meta.get("layout"),
        "program": pinned.program,
        "instructions": pinned.instructions,
        "interfaces": pinned.interfaces(),
        "keys": list(pinned.keys),
        "flows": {
            family: {
                **{state: found.flows[family, state] for state in STATES},
                "max": pinned.capacity.get(family, 0),
            }
            for family in FAMILIES
        },
        "memory_mb": round(pinned.memory / 1e6, 1),
    }
