"""Preflight: is this host ready to run a relay of this configuration?

Leaves the host as it found it. Checks are small functions on paths and plain values; only
`host_reader` and `program` touch the world, and `examine` gets their answers handed in.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from relayctl.config import Interface, RelayConfig
from relayctl.doctor import kernel, links, network, program, service
from relayctl.doctor.host import Host
from relayctl.doctor.result import Result, Status, skip
from relayctl.inspect.pinned import program_ids

XDP_ONLY = "datapath = 'socket' needs none of it"


def examine(
    config: RelayConfig,
    host: Host,
    *,
    own_programs: frozenset[int],
    program_name: Callable[[int], str],
    compile_program: Callable[[], object],
    proc: Path = Path("/proc"),
    sys: Path = Path("/sys"),
    cpus: int = 1,
) -> Iterator[Result]:
    """Every result in reading order. `own_programs` are ids of XDP programs that we attached."""
    yield from _service(config, proc)
    yield kernel.kernel_version(proc)
    if config.datapath == "xdp":
        yield from _kernel(config, compile_program, proc, sys, cpus)
        for interface in config.interfaces:
            yield from _interface(interface, config, host, own_programs, program_name, cpus)
    else:
        yield skip("xdp", XDP_ONLY)
    yield from _network(config, host, proc)


def _service(config: RelayConfig, proc: Path) -> Iterator[Result]:
    yield service.keys_file(config.keys_file)
    yield service.run_dir(config.run_dir)
    yield service.second_daemon(config, proc)


def _kernel(
    config: RelayConfig, compile_program: Callable[[], object], proc: Path, sys: Path, cpus: int
) -> Iterator[Result]:
    needed = (
        kernel.privileges(proc),
        kernel.bcc(),
        kernel.uapi_headers(),
        kernel.libbpf(),
        kernel.bpffs(proc, config.bpffs),
    )
    yield from needed
    if any(result.status is Status.FAIL for result in needed):
        yield skip("compile", "needs what failed above")
    else:
        yield kernel.compiles(compile_program)
    yield kernel.btf(sys)
    yield kernel.jit(proc)
    yield kernel.memory(proc, config, cpus)


def _interface(
    interface: Interface,
    config: RelayConfig,
    host: Host,
    own: frozenset[int],
    program_name: Callable[[int], str],
    cpus: int,
) -> Iterator[Result]:
    yield links.exists(interface, host)
    link = host.link(interface.name)
    if link is None:
        return
    yield links.foreign_program(link, own, program_name(link.program) if link.program else "")
    yield links.mtu(link, config.xdp_mode)
    yield links.receive_merging(link)
    yield links.gro_forwarding(link)
    yield links.veth_peer(link, host)
    yield links.veth_checksums(link, host)
    yield links.vlan_tags(link)
    yield links.queues(link, cpus)


def _network(config: RelayConfig, host: Host, proc: Path) -> Iterator[Result]:
    yield from network.vip_present(config, host)
    yield network.inner_address(config, host)
    for interface in config.interfaces:
        if interface.role != "inner" and host.link(interface.name):
            yield from network.arp(interface, config, host, proc)
            yield network.reverse_path(interface, proc)
    yield network.inner_ports(config, proc)
    yield from network.routes(config, host)


def examine_host(config: RelayConfig) -> Iterator[Result]:
    """`examine` with this host's own answers."""
    from relayctl.doctor import host_reader  # netlink takes 0.2 s to import

    yield from examine(
        config,
        host_reader.read(config),
        own_programs=program_ids(config.pins),
        program_name=program.name_of,
        compile_program=lambda: program.try_compile(config),
        cpus=os.cpu_count() or 1,
    )
