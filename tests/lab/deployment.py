"""Services at one of the three places that tests run on, by name.

xdp       the lab, the kernel forwards
socket    the lab, the packet process forwards
loopback  127.0.0.1 without root, the packet process forwards
"""

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from tests.lab import namespace
from tests.lab.service_config import Backend, Echo
from tests.lab.services import Services
from tests.lab.site import LoopbackPlace, Site, in_lab
from tests.lab.topology import Lab

Place = Literal["xdp", "socket", "loopback"]

_LOOPBACK_PORTS = 24478


@dataclass(frozen=True)
class Deployment:
    place: Place
    services: Services
    lab: Lab | None

    @property
    def site(self) -> Site:
        return self.services.site


def unavailable(place: Place) -> str | None:
    """Why tests cannot run at `place`, or None if they can."""
    return None if place == "loopback" else namespace.unavailable()


@contextlib.contextmanager
def deploy(
    place: Place,
    prefix: str,
    *,
    echo: Echo = "audio",
    backend: Backend = "echo",
    model: Mapping[str, object] | None = None,
    capacity: int = 40,
    workers: int = 1,
    relays: int = 1,
    faults: bool = False,
    second_client: bool = False,
) -> Iterator[Deployment]:
    """Everything up, everything gone at the end. `faults`: with the fault hop in the lab. Two
    `relays` are for the lab alone.

    `prefix` tells deployments at the same time apart; on loopback there can be one."""
    with contextlib.ExitStack() as stack:
        lab = None
        if place == "loopback":
            site = stack.enter_context(LoopbackPlace(f"{prefix}loopback", _LOOPBACK_PORTS)).site()
        else:
            hop: Literal["fault", "switch"] = "fault" if faults else "switch"
            lab = stack.enter_context(
                Lab(prefix, hop=hop, second_client=second_client, relays=relays)
            )
            site = in_lab(lab)
        datapath: Literal["xdp", "socket"] = "xdp" if place == "xdp" else "socket"
        services = Services(
            site,
            datapath=datapath,
            echo=echo,
            backend=backend,
            model=model,
            capacity=capacity,
            workers=workers,
            relays=relays,
        )
        yield Deployment(place, stack.enter_context(services), lab)
