"""A node in transparent mode, on interfaces of its own, beside that of `rig`."""

from pathlib import Path
from typing import Any

import pytest

from relayctl.datapath.spec import Interface, Role, Spec, Vip
from relayctl.flow import FlowKey
from tests.kernel import rig
from tests.kernel.packets import Address
from tests.kernel.rig import (
    CLIENT,
    CLIENT_MACS,
    CLIENT_V6,
    ENDPOINT,
    ENDPOINT_MACS,
    ENDPOINT_V6,
    NATTED_LOCAL,
    NATTED_LOCAL_V6,
    NATTED_PUBLIC,
    NATTED_PUBLIC_V6,
    Rig,
)

OUTER, INNER_SIDE, BOTH = "outer1", "inner1", "both1"
families = pytest.mark.parametrize(
    ("client", "vip", "local", "endpoint"),
    [
        pytest.param(CLIENT, 2, NATTED_LOCAL, ENDPOINT, id="v4"),
        pytest.param(CLIENT_V6, 4, NATTED_LOCAL_V6, ENDPOINT_V6, id="v6"),
    ],
)
there = ENDPOINT_MACS[1], ENDPOINT_MACS[0]
back = CLIENT_MACS[1], CLIENT_MACS[0]


def spec(bpffs: Path) -> Spec:
    """Its interfaces have to exist."""
    roles = {OUTER: Role.OUTER, INNER_SIDE: Role.INNER, BOTH: Role.BOTH}
    interfaces = (
        *(
            Interface(name, rig.ifindex(name), port, role)
            for port, (name, role) in enumerate(roles.items(), 1)
        ),
        Interface("outer1.5", 9004, 4, Role.OUTER, rig.ifindex(OUTER), (5, 0)),
        Interface("inner1.6.7", 9005, 5, Role.INNER, rig.ifindex(INNER_SIDE), (6, 7)),
    )
    vips = (Vip(2, NATTED_PUBLIC, NATTED_LOCAL), Vip(4, NATTED_PUBLIC_V6, NATTED_LOCAL_V6))
    changes = {"vips": vips, "interfaces": interfaces, "inner_addresses": ()}
    return rig.spec(bpffs, "transparent", transparent=True, **changes)


def install(relay: Rig, client: Address, vip: int, endpoint: Address, **changes: Any) -> FlowKey:
    return relay.install(client, vip, endpoint=endpoint, **changes)
