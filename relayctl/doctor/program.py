"""Asks the kernel about XDP programs: whose are attached, and would ours be accepted? I/O only."""

import os
from dataclasses import replace

from relayctl.config import RelayConfig
from relayctl.datapath import pins, xdp
from relayctl.datapath.base import DatapathError
from relayctl.datapath.libbpf import Program
from relayctl.datapath.spec import Interface, Role, Spec, Vip

TRIAL_FLOWS = 16


def name_of(id: int) -> str:
    """Empty when this process may not ask."""
    try:
        with Program.by_id(id) as program:
            return program.name
    except DatapathError:
        return ""


def try_compile(config: RelayConfig) -> None:
    """Compile and verify the program with tiny maps under a name of its own; remove all of it.

    Raises `DatapathError`.
    """
    spec = trial_spec(config, f"doctor-{os.getpid()}")
    try:
        xdp.load(spec)
    finally:
        xdp.unload(spec.instance, spec.bpffs)


def adoption_faults(config: RelayConfig) -> list[str]:
    """Why the next start would refuse what an earlier one pinned."""
    wanted = replace(
        trial_spec(config, config.instance),
        max_flows=config.max_flows,
        max_flows_v6=config.max_flows_v6,
    )
    return pins.adoption_faults(wanted)


def trial_spec(config: RelayConfig, instance: str) -> Spec:
    """The program of `config`, for the loopback interface, which every host has."""
    return Spec(
        instance=instance,
        vips=tuple(Vip(vip.id, vip.public, vip.local) for vip in config.vips),
        interfaces=(Interface("lo", 1, 1, Role.BOTH),),
        inner_addresses=() if config.inner == "transparent" else config.inner_addresses,
        clusters=tuple(section.cluster() for section in config.clusters),
        inner_port_base=config.inner_port_base,
        inner_ports=config.inner_ports,
        max_flows=TRIAL_FLOWS,
        max_flows_v6=TRIAL_FLOWS,
        transparent=config.inner == "transparent",
        bpffs=str(config.bpffs),
    )
