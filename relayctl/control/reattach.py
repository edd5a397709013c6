"""Puts the program back on an interface that was made anew.

The program knows interfaces by their number, and a new one has a new number: so it is compiled
again, and swapped in where it runs already. Flows stay in their maps all the while.
"""

import asyncio
import logging

from relayctl.config import RelayConfig
from relayctl.control.kernel_side import KernelSide, spec_of
from relayctl.datapath import xdp
from relayctl.datapath.base import DatapathError

LOOK_S = 1.0
MAX_PAUSE_S = 10.0

log = logging.getLogger(__name__)


async def keep_attached(config: RelayConfig, kernel: KernelSide) -> None:
    """Look for lost interfaces until cancelled. Each fault is logged once while it lasts."""
    pause, said = LOOK_S, ""
    while True:
        await asyncio.sleep(pause)
        lost = kernel.nexthops.lost()
        if not lost:
            pause, said = LOOK_S, ""
            continue
        try:
            await reattach(config, kernel)
            log.warning("%s: the program is on it again", "; ".join(lost))
        except DatapathError as error:
            pause = min(2 * pause, MAX_PAUSE_S)
            if str(error) != said:
                said = str(error)
                log.error("%s: %s", "; ".join(lost), said)


async def reattach(config: RelayConfig, kernel: KernelSide) -> None:
    """Compile for the interfaces as they are now, and attach. Raises `DatapathError`."""
    spec = await spec_of(config, kernel.kernel)
    await asyncio.to_thread(xdp.load, spec)
    kernel.interfaces = spec.interfaces
    kernel.attach()
    kernel.nexthops.rebind(kernel.ports, {each.port: each.tags for each in spec.interfaces})
