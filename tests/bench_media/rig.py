"""The rig: one namespace, a link of its own, the server on CPU 1 and its callers on CPU 0.

Both addresses are on one link, so what goes from one to the other crosses the loopback device. The
link is there because aiortc and Pion leave loopback's own addresses out of their candidates.
"""

import contextlib
import os
import types
from typing import Any

from tests.bench.rig import GENERATOR_CPU, RELAY_CPU
from tests.figures.measurement import expect
from tests.lab import namespace
from tests.lab.node import REPOSITORY, Node
from tests.lab.program import Program, Programs, stop_listed

NAMESPACE = "bm-media"
DIRECTORY = REPOSITORY / "build" / "bench-media"
CALLER_CPU, SERVER_CPU = GENERATOR_CPU, RELAY_CPU
SERVER_HOST, CALLER_HOST = "10.99.0.1", "10.99.0.2"
SERVER_PORT = 5000

_SYSCTLS = {"net.ipv4.ip_local_port_range": "10000 65000"}
_NICE = ["nice", "-n", "-15"]  # what else the machine does is not to be measured


class Rig:
    """A context manager. One at a time on a machine."""

    def __init__(self) -> None:
        self._open = contextlib.ExitStack()

    def __enter__(self) -> "Rig":
        clean()
        for log in DIRECTORY.glob("*.log"):
            log.unlink()
        expect({CALLER_CPU, SERVER_CPU} <= os.sched_getaffinity(0), "want CPU 0 and CPU 1")
        with contextlib.ExitStack() as stack:
            stack.callback(clean)
            self.programs = Programs(DIRECTORY)
            stack.callback(self.programs.stop_all)
            namespace.create(NAMESPACE)
            self.node = Node(NAMESPACE, self.programs)
            self.node.sysctl(_SYSCTLS)
            self.node.set_link("lo", up=True)
            self.node.netlink(_add_link)
            self._open = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: types.TracebackType | None,
    ) -> None:
        self._open.close()

    def popen(self, name: str, argv: list[str], *, cpu: int, piped: bool = False) -> Program:
        """Start a program that stays on `cpu`, ahead of ordinary ones."""
        return self.node.popen(
            name, [*_NICE, "taskset", "-c", str(cpu), *argv], environ=_ENVIRON, piped=piped
        )


_ENVIRON = {"PYTHONPATH": str(REPOSITORY)}


def clean() -> None:
    """Remove whatever an earlier rig left behind."""
    stop_listed(DIRECTORY)
    if namespace.exists(NAMESPACE):
        namespace.remove(NAMESPACE)


def _add_link(ip: Any) -> None:
    ip.link("add", ifname="media0", kind="veth", peer={"ifname": "media1"})
    for name in ("media0", "media1"):  # the second only so that the first has a carrier
        ip.link("set", index=ip.link_lookup(ifname=name)[0], state="up")
    for host in (SERVER_HOST, CALLER_HOST):
        ip.addr("add", index=ip.link_lookup(ifname="media0")[0], address=host, prefixlen=24)
