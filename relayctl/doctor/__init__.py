"""Preflight: is this host ready to run a relay of this configuration?

Leaves the host as it found it. Checks are small functions on paths and plain values; only
`host_reader` and `program` touch the world, and `examine` gets their answers handed in.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from relayctl.config import RelayConfig
from relayctl.doctor import drivers, kernel, links, network, program, service
from relayctl.doctor.host import Host, Link
from relayctl.doctor.result import Result, Status, skip
from relayctl.inspect.pinned import Own, own_programs

XDP_ONLY = "datapath = 'socket' needs none of it"


def examine(
    config: RelayConfig,
    host: Host,
    *,
    own: Own,
    program_name: Callable[[int], str],
    compile_program: Callable[[], object] | None,
    adoption_faults: Callable[[], list[str]],
    proc: Path = Path("/proc"),
    sys: Path = Path("/sys"),
    cpus: int = 1,
) -> Iterator[Result]:
    """Every result in reading order. `own` are XDP programs that we attached; nothing is compiled
    without `compile_program`."""
    yield from _service(config, proc)
    yield kernel.kernel_version(proc)
    if config.datapath == "xdp":
        yield from _kernel(config, compile_program, adoption_faults, proc, sys)
        for interface in config.interfaces:
            yield links.exists(interface, host)
        for link, vlan in _carriers(config, host):
            yield from _carrier(link, vlan, config, host, own, program_name, cpus)
    else:
        yield skip("xdp", XDP_ONLY)
    yield from _network(config, host, proc)


def _service(config: RelayConfig, proc: Path) -> Iterator[Result]:
    yield service.keys_file(config.keys_file)
    yield service.run_dir(config.run_dir)
    yield service.second_daemon(config, proc)


def _kernel(
    config: RelayConfig,
    compile_program: Callable[[], object] | None,
    adoption_faults: Callable[[], list[str]],
    proc: Path,
    sys: Path,
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
        yield skip("pins", "needs what failed above")
    else:
        if compile_program:
            yield kernel.compiles(compile_program)
        yield kernel.adoption(adoption_faults)
    yield kernel.btf(sys)
    yield kernel.jit(proc)
    yield kernel.time_namespace(proc)
    yield kernel.memory(proc, config)


def _carriers(config: RelayConfig, host: Host) -> Iterator[tuple[Link, bool]]:
    """Each link that carries the program, and whether a configured VLAN device lies above it."""
    found: dict[str, tuple[Link, bool]] = {}
    for interface in config.interfaces:
        if link := host.link(interface.name):
            carrier = host.carrier(link)
            _, vlan = found.get(carrier.name, (carrier, False))
            found[carrier.name] = carrier, vlan or link.kind == "vlan"
    yield from found.values()


def _carrier(
    link: Link,
    vlan: bool,
    config: RelayConfig,
    host: Host,
    own: Own,
    program_name: Callable[[int], str],
    cpus: int,
) -> Iterator[Result]:
    program = program_name(link.program) if link.program else ""
    yield links.foreign_program(link, own, program, config.xdp_mode)
    yield links.mtu(link, host, config.xdp_mode)
    yield links.receive_merging(link, config.xdp_mode)
    yield links.gro_forwarding(link, config.xdp_mode)
    yield links.promiscuous(link)
    yield links.veth_peer(link, host)
    yield links.veth_checksums(link, host)
    yield links.vlan_tags(link, host, vlan)
    yield drivers.channels(link, config, cpus)
    yield drivers.headroom(link, config)
    yield drivers.queues(link, cpus)


def _network(config: RelayConfig, host: Host, proc: Path) -> Iterator[Result]:
    yield from network.vip_present(config, host)
    yield from network.inner_addresses(config, host)
    for interface in config.interfaces:
        if interface.role != "inner" and host.link(interface.name):
            yield from network.arp(interface, config, host, proc)
            yield network.reverse_path(interface, proc)
    yield network.inner_ports(config, proc)
    yield from network.routes(config, host)


def examine_host(config: RelayConfig, *, compiling: bool = True) -> Iterator[Result]:
    """`examine` with this host's own answers."""
    from relayctl.doctor import host_reader  # netlink takes 0.2 s to import

    yield from examine(
        config,
        host_reader.read(config),
        own=own_programs(config.bpffs, config.instance),
        program_name=program.name_of,
        compile_program=(lambda: program.try_compile(config)) if compiling else None,
        adoption_faults=lambda: program.adoption_faults(config),
        cpus=os.cpu_count() or 1,
    )


def obstacles(config: RelayConfig) -> Iterator[Result]:
    """What would keep `serve` from serving on this host. Nothing is compiled or touched."""
    results = examine_host(config, compiling=False)
    return (result for result in results if result.status is Status.FAIL)
