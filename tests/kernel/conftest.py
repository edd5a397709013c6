"""What the kernel tests stand on: a network namespace, a BPF file system and one loaded program.

Everything is made here and goes with the tests; where it cannot be made, they are skipped and say
why.
"""

import contextlib
import ctypes
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from relayctl.datapath import xdp
from relayctl.datapath.base import DatapathError
from relayctl.datapath.bpf_map import Map
from relayctl.datapath.maps import MapShape, MapType
from relayctl.datapath.spec import Spec
from tests.kernel import rig, transparent

_CLONE_NEWNET = 0x40000000


def missing() -> str | None:
    """What this machine lacks, or None."""
    if os.geteuid() != 0:
        return "needs root"
    try:
        import bcc  # noqa: F401

        Map.create(MapShape("probe", MapType.ARRAY, 4, 4, 1)).close()
    except (ImportError, DatapathError) as error:
        return str(error)
    return None


@pytest.fixture(scope="package")
def bpffs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A BPF file system of our own."""
    if reason := missing():
        pytest.skip(reason)
    path = tmp_path_factory.mktemp("bpffs")
    mounted = subprocess.run(["mount", "-t", "bpf", "bpf", path], capture_output=True, text=True)
    if mounted.returncode:
        pytest.skip(f"cannot mount a BPF file system: {mounted.stderr.strip()}")
    yield path
    subprocess.run(["umount", path], check=True)


@pytest.fixture(scope="package")
def namespace(bpffs: Path) -> Iterator[None]:
    with own_namespace():
        yield


@contextlib.contextmanager
def own_namespace() -> Iterator[None]:
    """This thread moves into a network namespace without a name and back in the end."""
    libc = ctypes.CDLL(None, use_errno=True)
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    if libc.unshare(_CLONE_NEWNET):
        pytest.skip(f"cannot make a network namespace: {os.strerror(ctypes.get_errno())}")
    for scope in ("all", "default"):  # neighbour discovery would be counted among our packets
        Path(f"/proc/sys/net/ipv6/conf/{scope}/disable_ipv6").write_text("1")
    for interface in (rig.OUTER, rig.INNER_SIDE, rig.BOTH):
        veth(interface)
    yield
    assert libc.setns(home, _CLONE_NEWNET) == 0
    os.close(home)


def veth(name: str) -> None:
    """A pair of interfaces, `name` and `name` with a `-`."""
    peer = f"{name}-"
    for command in (
        f"link add {name} type veth peer name {peer}",
        f"link set {name} up",
        f"link set {peer} up",
    ):
        subprocess.run(["ip", *command.split()], check=True)


@contextlib.contextmanager
def in_place(spec: Spec) -> Iterator[rig.Rig]:
    """The program of `spec`, loaded and attached."""
    xdp.load(spec)
    datapath = xdp.XdpDatapath.open(spec.pins)
    datapath.attach(spec.interfaces)
    yield rig.Rig(datapath, spec.pins)
    datapath.close()
    xdp.unload(spec.instance, spec.bpffs)


@pytest.fixture(scope="package")
def loaded(bpffs: Path, namespace: None) -> Iterator[rig.Rig]:
    with in_place(rig.spec(bpffs, "tested")) as made:
        yield made


@pytest.fixture
def relay(loaded: rig.Rig) -> rig.Rig:
    """The program with an empty flow table and a live daemon."""
    loaded.reset()
    return loaded


@pytest.fixture
def one_cpu() -> Iterator[None]:
    """Budgets are per CPU: stay on one, and in one unit of time."""
    home = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(home)})
    rig.fresh_unit()
    yield
    os.sched_setaffinity(0, home)


@pytest.fixture(scope="package")
def loaded_transparent(bpffs: Path, namespace: None) -> Iterator[rig.Rig]:
    """A second program, on interfaces of its own."""
    for name in (transparent.OUTER, transparent.INNER_SIDE, transparent.BOTH):
        veth(name)
    with in_place(transparent.spec(bpffs)) as made:
        yield made


@pytest.fixture
def plain(loaded_transparent: rig.Rig) -> rig.Rig:
    """The relay without SPP, with an empty flow table and a live daemon."""
    loaded_transparent.reset()
    return loaded_transparent
