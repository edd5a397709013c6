"""How flows, nexthops and counters look in JSON: one shape, from the daemon or from the pins.

Pure. The control API, the CLI and the tests use these, so that an answer does not depend on who
gave it.
"""

import enum
from collections.abc import Mapping
from typing import Any

from relayctl.datapath.base import Nexthop
from relayctl.flow import UNIT_NS, Flow, FlowKey, expiry, idle
from relayctl.reason import Reason
from relayctl.wire.address import render

Record = dict[str, Any]

CONTEST = 5  # units that another endpoint's claim on a flow stays open
FIRST_SLOW_REASON = 64  # from here on the packet process counts


class ReadError(Exception):
    """A relay cannot be read or changed; the message says what was tried and what to do."""


class Path(enum.StrEnum):
    """Who carries a flow's packets."""

    KERNEL = "kernel"
    USER = "user"


class UserPath(enum.StrEnum):
    """Why a flow is not carried by the kernel."""

    SOCKET_DATAPATH = "socket_datapath"
    NO_NEXTHOP_IN = "no_nexthop_in"  # the way to the endpoint is not resolved
    NO_NEXTHOP_OUT = "no_nexthop_out"  # the way to the client is not resolved


def seconds(units: int) -> float:
    """A span in stamp units as seconds."""
    return round(units * UNIT_NS / 1e9, 1)


def user_path(flow: Flow, nexthops: Mapping[int, Nexthop], kernel: bool) -> UserPath | None:
    """Why user space carries `flow`, or None if the kernel does."""
    if not kernel:
        return UserPath.SOCKET_DATAPATH
    for index, reason, by_peer in (
        (flow.nexthop_in, UserPath.NO_NEXTHOP_IN, flow.slot),
        (flow.nexthop_out, UserPath.NO_NEXTHOP_OUT, flow.back),
    ):
        if by_peer:
            continue
        nexthop = nexthops.get(index)
        if nexthop is None or not nexthop.valid:
            return reason
    return None


def flow_record(
    key: FlowKey,
    flow: Flow,
    *,
    now: int,
    vips: Mapping[int, str],
    nexthops: Mapping[int, Nexthop],
    kernel: bool,
) -> Record:
    """`now` is a stamp; `vips` gives the public address of each id; `kernel`: XDP is attached.

    `contended_s`: since another endpoint last claimed the client; `takeover`: the claim is open."""
    why = user_path(flow, nexthops, kernel)
    ended = expiry(flow, now)
    return {
        "client": render(key.client),
        "vip": vips.get(key.vip, str(key.vip)),
        "vip_id": key.vip,
        "endpoint": f"peer {flow.slot}" if flow.slot else render(flow.endpoint),
        "back": flow.back or None,
        "cluster": flow.cluster,
        "state": str(flow.state),
        "expired": None if ended is None else str(ended),
        "packets": {"up": flow.packets_up, "down": flow.packets_down},
        "bytes": {"up": flow.bytes_up, "down": flow.bytes_down},
        "ssrc": flow.ssrc or None,
        "contended_s": seconds(max(0, now - flow.contended)) if flow.contended else None,
        "takeover": bool(flow.contended) and now - flow.contended <= CONTEST,
        "age_s": seconds(max(0, now - flow.born)),
        "idle_s": seconds(idle(flow, now)),
        "path": str(Path.KERNEL if why is None else Path.USER),
        "reason": None if why is None else str(why),
    }


def nexthop_record(index: int, nexthop: Nexthop, ports: Mapping[int, str]) -> Record:
    """`ports` names the interface of an egress port."""
    return {
        "index": index,
        "valid": nexthop.valid,
        "gateway": nexthop.gateway,
        "interface": ports.get(nexthop.port, str(nexthop.port)),
        "mtu": nexthop.mtu,
        "source_mac": nexthop.source_mac.hex(":"),
        "destination_mac": nexthop.destination_mac.hex(":"),
        "tags": [tag for tag in nexthop.tags if tag],
    }


def reason_records(counts: Mapping[Reason, int]) -> list[Record]:
    """Every reason in the order of its number, zeros too."""
    return [
        {
            "reason": reason.label,
            "counted_by": "program" if reason < FIRST_SLOW_REASON else "packet_process",
            "count": counts.get(reason, 0),
        }
        for reason in Reason
    ]
