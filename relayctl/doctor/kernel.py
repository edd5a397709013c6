"""Preflight checks of the kernel and of what compiles and loads the XDP program.

Every check reads from the paths it is given, so that tests bring trees of their own. None of them
changes anything.
"""

import ctypes
import importlib.util
import re
from collections.abc import Callable
from pathlib import Path

from relayctl.config import RelayConfig, flow_table_bytes, flow_tables, megabytes
from relayctl.doctor.result import Result, fail, ok, skip, warn

FLOOR = (6, 1)  # oldest kernel that the program was proved on
COMPILER_BYTES = 130_000_000  # what LLVM takes in the process that compiles
CAPABILITIES = {"CAP_NET_ADMIN": 12, "CAP_BPF": 39}  # bits, capability.h

_RELEASE = re.compile(r"(\d+)\.(\d+)")


def privileges(proc: Path) -> Result:
    """The capabilities that loading and attaching need, in this process's effective set."""
    status = (proc / "self/status").read_text()
    match = re.search(r"^CapEff:\s*([0-9a-f]+)", status, re.MULTILINE)
    effective = int(match[1], 16) if match else 0
    missing = [name for name, bit in CAPABILITIES.items() if not effective >> bit & 1]
    if missing:
        return fail("privileges", f"missing {', '.join(missing)}", "run it again with sudo")
    return ok("privileges", ", ".join(CAPABILITIES))


def kernel_version(proc: Path) -> Result:
    release = (proc / "sys/kernel/osrelease").read_text().strip()
    match = _RELEASE.match(release)
    version = (int(match[1]), int(match[2])) if match else (0, 0)
    if version < FLOOR:
        return fail(
            "kernel", f"{release} is older than {FLOOR[0]}.{FLOOR[1]}", "install a newer kernel"
        )
    return ok("kernel", release)


def bcc(find: Callable[[str], object | None] = importlib.util.find_spec) -> Result:
    """Debian's bcc, not the unrelated package of that name on PyPI."""
    spec = find("bcc")
    places = getattr(spec, "submodule_search_locations", None) or []
    if spec is None:
        return fail(
            "bcc",
            "this interpreter cannot import bcc",
            "apt-get install python3-bpfcc, and make the virtual environment with "
            "/usr/bin/python3 -m venv --system-site-packages",
        )
    if not any((Path(place) / "libbcc.py").exists() for place in places):
        return fail("bcc", f"the package in {places} is another one", "pip uninstall bcc")
    return ok("bcc", str(places[0]))


def uapi_headers(include: Path = Path("/usr/include")) -> Result:
    """The system's own copy of the kernel's UAPI; headers of the running kernel are not needed."""
    if not (include / "linux/bpf.h").exists():
        return fail("headers", f"no {include}/linux/bpf.h", "apt-get install linux-libc-dev")
    return ok("headers", f"{include}/linux")


def libbpf(load: Callable[[str], object] = ctypes.CDLL) -> Result:
    try:
        load("libbpf.so.1")
    except OSError as error:
        return fail("libbpf", str(error), "apt-get install libbpf1")
    return ok("libbpf", "libbpf.so.1")


def compiles(compile_program: Callable[[], object]) -> Result:
    """Compile the program as `serve` would, without loading it."""
    try:
        compile_program()
    except Exception as error:
        return fail("compile", _first_line(error), "see the checks bcc and headers")
    return ok("compile", "the program compiles")


def _first_line(error: Exception) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


def bpffs(proc: Path, path: Path) -> Result:
    """A bpf file system at `path`. `ip netns exec` hides it: that mounts a /sys of its own."""
    mounts = [line.split() for line in (proc / "self/mountinfo").read_text().splitlines()]
    here = [mount[mount.index("-") + 1] for mount in mounts if mount[4] == str(path)]
    if here[-1:] == ["bpf"]:
        return ok("bpffs", str(path))
    found = here[-1] if here else "nothing"
    return fail("bpffs", f"{found} mounted at {path}", f"mount -t bpf bpf {path}")


def adoption(faults: Callable[[], list[str]]) -> Result:
    """Whether the next start takes over what an earlier one pinned, with the flows in it."""
    try:
        found = faults()
    except Exception as error:  # pins that this process may not read
        return skip("pins", f"cannot tell: {_first_line(error)}")
    if not found:
        return ok("pins", "none, or such as the next start takes over")
    detail, _, mend = "; ".join(found).rpartition("; ")
    return fail("pins", detail or mend, mend)


def btf(sys: Path) -> Result:
    if (sys / "kernel/btf/vmlinux").exists():
        return ok("btf", "the kernel describes its types")
    return warn("btf", "the kernel has no type information", "boot a kernel with DEBUG_INFO_BTF=y")


def jit(proc: Path) -> Result:
    path = proc / "sys/net/core/bpf_jit_enable"
    if not path.exists():
        return skip("jit", "the kernel does not say (compiled in, or hidden in a namespace)")
    if path.read_text().strip() == "0":
        return warn("jit", "BPF programs are interpreted", "sysctl -w net.core.bpf_jit_enable=1")
    return ok("jit", "on")


def time_namespace(proc: Path) -> Result:
    """The program reads the host's clock; a shifted one would make every flow look dead."""
    path = proc / "self/timens_offsets"
    if not path.exists():
        return skip("clock", "the kernel knows no time namespaces")
    offsets = {name: (seconds, rest) for name, seconds, rest in map(str.split, _lines(path))}
    if offsets.get("monotonic", ("0", "0")) == ("0", "0"):
        return ok("clock", "that of the host")
    return fail(
        "clock",
        f"the monotonic clock of this time namespace is {offsets['monotonic'][0]} s off",
        "nsenter --time=/proc/1/ns/time relayctl ...",
    )


def _lines(path: Path) -> list[str]:
    return [line for line in path.read_text().splitlines() if line.strip()]


def memory(proc: Path, config: RelayConfig) -> Result:
    """Room for the flow tables, which are allocated whole, and for the compiler."""
    tables = flow_table_bytes(config.max_flows, config.max_flows_v6)
    match = re.search(r"^MemAvailable:\s*(\d+) kB", (proc / "meminfo").read_text(), re.MULTILINE)
    available = int(match[1]) * 1024 if match else 0
    detail = (
        f"{flow_tables(config)}, {megabytes(COMPILER_BYTES)} for the compiler; "
        f"{megabytes(available)} available"
    )
    mend = "lower max_flows or max_flows_v6, or give the machine more memory"
    if tables + COMPILER_BYTES > available:
        return fail("memory", detail, mend)
    if 2 * (tables + COMPILER_BYTES) > available:
        return warn("memory", detail, mend)
    return ok("memory", detail)
