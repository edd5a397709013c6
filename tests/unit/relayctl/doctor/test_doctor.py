from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest

from relayctl.config import RelayConfig
from relayctl.doctor import examine, obstacles
from relayctl.doctor.host import Host, Link, Route
from relayctl.doctor.result import Result, Status, fail, ok, warn
from relayctl.inspect.pinned import Own
from tests.unit.relayctl.doctor.test_kernel import write
from tests.unit.relayctl.test_config import config
from tests.unit.relayctl.test_config_rules import LOCAL

LINKS = (
    Link(index=4, name="outer0", queues=2, program=17, mode="native"),
    Link(index=5, name="inner0", queues=2),
)
HOST = Host(
    links=LINKS,
    addresses={"203.0.113.10": "lo", "10.2.0.1": "inner0"},
    routes={ip_network("10.2.0.0/24"): Route("inner0")},
)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A /proc on which every check can look."""
    write(tmp_path, "sys/kernel/osrelease", "6.1.0\n")
    write(tmp_path, "sys/net/ipv4/ip_local_port_range", "32768 60999\n")
    write(tmp_path, "self/status", "CapEff:\t000001ffffffffff\n")
    write(tmp_path, "self/mountinfo", "31 23 0:28 / /sys/fs/bpf rw - bpf bpf rw\n")
    write(tmp_path, "meminfo", "MemAvailable: 8000000 kB\n")
    write(tmp_path, "locks", "")
    return tmp_path


def run(found: RelayConfig, host: Host, tree: Path, **answers: Any) -> dict[str, Result]:
    defaults: dict[str, Any] = {
        "own": Own(frozenset({17})),
        "program_name": lambda id: f"program{id}",
        "compile_program": lambda: None,
        "adoption_faults": list,
    }
    results = examine(found, host, proc=tree, sys=tree, cpus=2, **defaults | answers)
    return {result.name: result for result in results}


def test_a_ready_host_fails_nothing_that_it_can_mend(tree: Path) -> None:
    found = run(config(run_dir=str(tree), keys_file=str(tree / "keys")), HOST, tree)
    assert {name for name, each in found.items() if each.status is Status.FAIL} == {"keys"}


def test_each_interface_is_examined(tree: Path) -> None:
    found = run(config(), HOST, tree)
    names = "link", "xdp", "mtu", "lro", "udp-gro", "promiscuous", "veth-peer", "rxvlan", "queues"
    for name in names:
        assert {f"{name}:outer0", f"{name}:inner0"} <= found.keys()


def test_arp_matters_on_outer_interfaces_only(tree: Path) -> None:
    found = run(config(), HOST, tree)
    assert "rp_filter:outer0" in found
    assert "rp_filter:inner0" not in found


def test_what_lies_below_vlan_devices_is_examined_once(tree: Path) -> None:
    trunk = Link(index=4, name="eth0", features=frozenset({"rx-vlan-hw-parse"}))
    vlans = [Link(index=n, name=f"eth0.{n}", kind="vlan", peer=4) for n in (10, 20)]
    interfaces = [
        {"name": "eth0.10", "role": "outer"},
        {"name": "eth0.20", "role": "inner"},
    ]
    found = run(config(interface=interfaces), Host(links=(trunk, *vlans)), tree)
    assert {"link:eth0.10", "link:eth0.20", "xdp:eth0"} <= found.keys()
    assert "xdp:eth0.10" not in found
    assert found["rxvlan:eth0"].status is Status.FAIL


def test_without_a_compiler_nothing_is_said_of_it(tree: Path) -> None:
    assert "compile" not in run(config(), HOST, tree, compile_program=None)


def test_obstacles_are_what_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    def examined(_: RelayConfig, *, compiling: bool) -> list[Result]:
        assert not compiling
        return [ok("a", "x"), fail("b", "x", "y"), warn("c", "x", "y")]

    monkeypatch.setattr("relayctl.doctor.examine_host", examined)
    assert [each.name for each in obstacles(config())] == ["b"]


def test_missing_interface_is_told_once(tree: Path) -> None:
    found = run(config(), Host(links=LINKS[1:]), tree)
    assert [name for name in found if name.endswith(":outer0")] == ["link:outer0"]


def test_foreign_program_is_asked_for_its_name(tree: Path) -> None:
    found = run(config(), HOST, tree, own=Own())
    assert "program17" in found["xdp:outer0"].detail


def test_nothing_is_compiled_where_the_means_are_missing(tree: Path) -> None:
    def compile_program() -> None:
        raise AssertionError("tried to compile")

    write(tree, "self/mountinfo", "")
    assert run(config(), HOST, tree, compile_program=compile_program)["compile"].status == "skip"


def test_socket_datapath_needs_no_kernel_support(tree: Path) -> None:
    write(tree, "self/status", "CapEff:\t0000000000000000\n")
    found = run(config(**LOCAL), Host(), tree)
    assert found["xdp"].status is Status.SKIP
    assert "privileges" not in found
    assert found["vip:1"].status is Status.OK


def test_every_fault_has_a_mend(tree: Path) -> None:
    found = run(config(), Host(), tree)
    for result in found.values():
        assert bool(result.mend) is (result.status in (Status.WARN, Status.FAIL)), result
