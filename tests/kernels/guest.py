"""What a guest does: controls, load, attach, the kernel tests, VLAN; then one line of JSON.

    python -m tests.kernels.guest <file for the line> <step>…

Each step's failure is its own finding and hinders no other.
"""

import ctypes
import dataclasses
import functools
import json
import logging
import os
import platform
import subprocess
import sys
import time
import traceback
import xml.etree.ElementTree as xml
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from relayctl.datapath import links, xdp
from relayctl.datapath.base import DatapathError
from relayctl.datapath.libbpf import BpfError, call
from relayctl.datapath.spec import Mode, Spec
from tests.kernel import rig
from tests.kernel.conftest import veth
from tests.kernels import guest_vlan, judge, patience
from tests.kernels.controls import CONTROLS

_BPFFS = Path("/sys/fs/bpf")
_XDP = 6  # enum bpf_prog_type
_TESTS_S = 1200  # what a fault may cost, not what an idle machine takes
LEFT_OUT = (
    # They compile again and again, half a minute each time, and ask the kernel nothing new.
    "test_compile.py",
    "test_migrate.py",
    "test_pinned.py",
    "test_outer_leg.py::test_labs_may_have_clients_among_the_transceivers",
    # Arithmetic by the hundred, which is the same on every kernel.
    "test_oracle.py",
    "test_checksums.py::test_random_flows_and_payloads",
    "test_checksums.py::test_sums_at_the_ends",
    "test_token_gate.py::test_every_bit_of_a_token_matters",
    # They do more than emulation can do before their heartbeat is stale.
    "test_budgets.py::test_all_tokens_together_have_a_budget_of_the_cpu",
    "test_token_gate.py::test_agrees_with_python_on_random_requests",
)
# They take head room away as metadata, and before 6.9 a test run takes no more than 32 bytes of it.
LEFT_OUT_BEFORE_6_9 = (
    "test_outer_leg.py::test_no_head_room_drops",
    "test_transparent.py::test_growth_takes_exactly_the_head_room_it_needs",
    "test_vlan.py::test_growth_takes_exactly_the_head_room_it_needs",
)
_PYTEST = (
    *("-m", "pytest", "-q", "--color=no", "--durations=10", "-p", "no:cacheprovider"),
    *("-p", "tests.kernels.patience", "tests/kernel"),
)


def selection(release: str) -> list[str]:
    """Arguments for pytest: what is left out on a kernel of that release, such as `6.1.0-57`."""
    major, minor = (int(part) for part in release.split(".")[:2])
    left_out = LEFT_OUT if (major, minor) >= (6, 9) else LEFT_OUT + LEFT_OUT_BEFORE_6_9
    return [
        f"--{'deselect' if '::' in name else 'ignore'}=tests/kernel/{name}" for name in left_out
    ]


def controls() -> dict[str, bool]:
    """Which control programs this kernel accepts."""
    return {control.name: _accepts(control.program) for control in CONTROLS}


def _accepts(program: bytes) -> bool:
    instructions = ctypes.create_string_buffer(program, len(program))
    count = ctypes.c_size_t(len(program) // 8)
    try:
        os.close(call("load", "bpf_prog_load", _XDP, b"control", b"GPL", instructions, count, None))
    except BpfError:
        return False
    return True


def load() -> dict[str, Any]:
    """Compile and load with the product's own loader."""
    spec = _spec()
    began = time.monotonic()
    said = _Lines()
    logging.getLogger(xdp.__name__).addHandler(said)
    try:
        loaded = xdp.load(spec)
    except DatapathError as error:
        raise DatapathError(f"{error}: {judge.refusal(said.lines)}") from error
    return dataclasses.asdict(loaded) | {"wall_seconds": round(time.monotonic() - began, 1)}


class _Lines(logging.Handler):
    """What the loader logs: after a refusal, the verifier's walk."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


def attach() -> dict[str, str]:
    """The name under which the datapath goes in each mode, on veth."""
    spec, found = _spec(), {}
    for mode in Mode:
        datapath = xdp.XdpDatapath.open(spec.pins)
        try:
            datapath.attach(spec.interfaces, mode)
            found[mode.value] = datapath.name
        except DatapathError as error:
            found[mode.value] = str(error)
        finally:
            datapath.close()
            links.detach(spec.pins.parent)
    return found


def tests() -> dict[str, Any]:
    """The packet tests of the program, as they run on any machine."""
    junit = Path("/tmp/ferryline-kernel-tests.xml")
    # An interrupted pytest still tells what it did until then.
    guard = ("timeout", "--signal=INT", "--kill-after=20", str(_TESTS_S))
    began = time.monotonic()
    arguments = *_PYTEST, f"--junitxml={junit}", *selection(platform.release())
    done = subprocess.run([*guard, sys.executable, *arguments])
    cases = list(xml.parse(junit).getroot().iter("testcase"))
    failed = [_name(case) for case in cases if {"failure", "error"} & {child.tag for child in case}]
    skipped = [_name(case) for case in cases if case.find("skipped") is not None]
    return {
        "status": done.returncode,
        "passed": len(cases) - len(failed) - len(skipped),
        "failed": failed,
        "skipped": skipped,
        "seconds": round(time.monotonic() - began, 1),
    }


def _name(case: xml.Element) -> str:
    return f"{case.get('classname', '')}::{case.get('name', '')}"


def vlan() -> dict[str, str]:
    """Traffic between VLAN devices."""
    spec = _spec()
    datapath = xdp.XdpDatapath.open(spec.pins)
    try:
        datapath.attach(spec.interfaces)
        return guest_vlan.exchange(rig.Rig(datapath, spec.pins))
    finally:
        datapath.close()
        links.detach(spec.pins.parent)


@functools.cache
def _spec() -> Spec:
    """One node for all steps, so that it is compiled once; makes its interfaces."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    for interface in (rig.OUTER, rig.INNER_SIDE, rig.BOTH):
        veth(interface)
    spec = rig.spec(_BPFFS, "kernels")
    interfaces = *spec.interfaces, *guest_vlan.make_lab()
    return dataclasses.replace(spec, interfaces=interfaces)


STEPS: dict[str, Callable[[], Any]] = {
    step.__name__: step for step in (controls, load, attach, vlan, tests)
}


def main(closing: Path, steps: Sequence[str]) -> int:
    logging.basicConfig(format="%(message)s")
    patience.be_patient()
    findings: dict[str, Any] = {
        "kernel": platform.release(),
        "boot_seconds": float(Path("/proc/uptime").read_text().split()[0]),
    }
    for name in steps:
        print(f"guest: {name}", flush=True)
        try:
            findings[name] = STEPS[name]()
        except Exception as error:
            traceback.print_exc()
            findings[name] = {"error": f"{type(error).__name__}: {error}"}
        print(f"guest: {name}: {findings[name]}", flush=True)
    closing.write_text(json.dumps(findings) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
