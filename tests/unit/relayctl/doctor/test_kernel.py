from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from relayctl.datapath.base import DatapathError
from relayctl.doctor import kernel
from relayctl.doctor.result import Result, Status
from tests.unit.relayctl.test_config import config


def write(root: Path, path: str, text: str) -> Path:
    """One file of a fake /proc or /sys; returns its root."""
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)
    return root


def judged(result: Result, status: Status, detail: str, mend: str = "") -> None:
    assert result.status is status, result
    assert detail in result.detail
    assert mend in result.mend
    assert bool(result.mend) is (status in (Status.WARN, Status.FAIL))


@pytest.mark.parametrize(
    ("effective", "status", "detail"),
    [
        ("000001ffffffffff", Status.OK, "CAP_BPF"),
        ("0000008000001000", Status.OK, "CAP_NET_ADMIN"),
        ("0000008000000000", Status.FAIL, "missing CAP_NET_ADMIN"),
        ("0000000000000000", Status.FAIL, "missing CAP_NET_ADMIN, CAP_BPF"),
    ],
)
def test_privileges(tmp_path: Path, effective: str, status: Status, detail: str) -> None:
    write(tmp_path, "self/status", f"Name:\tx\nCapPrm:\t{'f' * 16}\nCapEff:\t{effective}\n")
    judged(kernel.privileges(tmp_path), status, detail)


@pytest.mark.parametrize(
    ("release", "status"),
    [
        ("6.1.0-37-amd64", Status.OK),
        ("6.18.44", Status.OK),
        ("10.0", Status.OK),
        ("5.15.0-generic", Status.FAIL),
        ("6.0.12", Status.FAIL),
        ("unknown", Status.FAIL),
    ],
)
def test_kernel_version(tmp_path: Path, release: str, status: Status) -> None:
    write(tmp_path, "sys/kernel/osrelease", f"{release}\n")
    judged(kernel.kernel_version(tmp_path), status, release)


def bcc_at(place: Path) -> ModuleSpec:
    spec = ModuleSpec("bcc", None, is_package=True)
    assert spec.submodule_search_locations is not None
    spec.submodule_search_locations.append(str(place))
    return spec


def test_bcc_is_there(tmp_path: Path) -> None:
    write(tmp_path, "libbcc.py", "")
    judged(kernel.bcc(lambda _: bcc_at(tmp_path)), Status.OK, str(tmp_path))


def test_bcc_is_missing() -> None:
    judged(kernel.bcc(lambda _: None), Status.FAIL, "cannot import", "python3-bpfcc")


def test_bcc_of_pypi_is_another_package(tmp_path: Path) -> None:
    judged(kernel.bcc(lambda _: bcc_at(tmp_path)), Status.FAIL, "another", "pip uninstall bcc")


def test_uapi_headers(tmp_path: Path) -> None:
    judged(kernel.uapi_headers(tmp_path), Status.FAIL, "linux/bpf.h", "linux-libc-dev")
    write(tmp_path, "linux/bpf.h", "")
    judged(kernel.uapi_headers(tmp_path), Status.OK, str(tmp_path))


def test_libbpf() -> None:
    def missing(name: str) -> object:
        raise OSError(f"{name}: cannot open shared object file")

    judged(kernel.libbpf(lambda _: object()), Status.OK, "libbpf.so.1")
    judged(kernel.libbpf(missing), Status.FAIL, "cannot open", "apt-get install libbpf1")


def test_compiles() -> None:
    def refused() -> None:
        raise DatapathError("\nthe verifier says no\nand why")

    judged(kernel.compiles(lambda: None), Status.OK, "compiles")
    result = kernel.compiles(refused)
    judged(result, Status.FAIL, "the verifier says no")
    assert result.detail == "the verifier says no"


def test_adoption() -> None:
    def unreadable() -> list[str]:
        raise DatapathError("open pinned /x: Operation not permitted")

    judged(kernel.adoption(list), Status.OK, "takes over")
    faults = ["/x cannot be adopted: inner: pinned 1, wanted 2; give the old value"]
    judged(kernel.adoption(lambda: faults), Status.FAIL, "inner: pinned", "give the old value")
    judged(kernel.adoption(unreadable), Status.SKIP, "cannot tell: open pinned /x")


MOUNTS = """\
23 27 0:22 / /sys rw,relatime - sysfs sysfs rw
31 23 0:28 / /sys/fs/bpf rw shared:9 - {kind} {kind} rw,mode=700
"""


def test_bpffs_is_mounted(tmp_path: Path) -> None:
    write(tmp_path, "self/mountinfo", MOUNTS.format(kind="bpf"))
    judged(kernel.bpffs(tmp_path, Path("/sys/fs/bpf")), Status.OK, "/sys/fs/bpf")


def test_bpffs_is_hidden_behind_another_mount(tmp_path: Path) -> None:
    text = MOUNTS.format(kind="bpf") + "40 31 0:30 / /sys/fs/bpf rw - tmpfs tmpfs rw\n"
    write(tmp_path, "self/mountinfo", text)
    judged(kernel.bpffs(tmp_path, Path("/sys/fs/bpf")), Status.FAIL, "tmpfs")


def test_bpffs_is_not_mounted(tmp_path: Path) -> None:
    write(tmp_path, "self/mountinfo", MOUNTS.format(kind="bpf"))
    result = kernel.bpffs(tmp_path, Path("/run/bpf"))
    judged(result, Status.FAIL, "nothing mounted at /run/bpf", "mount -t bpf bpf /run/bpf")


def test_btf(tmp_path: Path) -> None:
    judged(kernel.btf(tmp_path), Status.WARN, "no type information")
    judged(kernel.btf(write(tmp_path, "kernel/btf/vmlinux", "")), Status.OK, "types")


@pytest.mark.parametrize(
    ("value", "status"), [("1", Status.OK), ("2", Status.OK), ("0", Status.WARN)]
)
def test_jit(tmp_path: Path, value: str, status: Status) -> None:
    write(tmp_path, "sys/net/core/bpf_jit_enable", f"{value}\n")
    judged(kernel.jit(tmp_path), status, "")


@pytest.mark.parametrize(
    ("text", "status", "detail"),
    [
        ("monotonic           0         0\nboottime            0         0\n", Status.OK, ""),
        (
            "monotonic       86400         0\nboottime            0         0\n",
            Status.FAIL,
            "86400",
        ),
        ("monotonic           0       500\n", Status.FAIL, "0 s off"),
        ("boottime         5 0\n", Status.OK, ""),
    ],
)
def test_time_namespace(tmp_path: Path, text: str, status: Status, detail: str) -> None:
    write(tmp_path, "self/timens_offsets", text)
    judged(kernel.time_namespace(tmp_path), status, detail, "nsenter" if detail else "")


def test_no_time_namespaces(tmp_path: Path) -> None:
    judged(kernel.time_namespace(tmp_path), Status.SKIP, "no time namespaces")


def test_jit_is_not_shown_in_a_network_namespace(tmp_path: Path) -> None:
    judged(kernel.jit(tmp_path), Status.SKIP, "does not say")


@pytest.mark.parametrize(
    ("available_kb", "status"),
    [(8_000_000, Status.OK), (250_000, Status.WARN), (100_000, Status.FAIL)],
)
def test_memory(tmp_path: Path, available_kb: int, status: Status) -> None:
    write(tmp_path, "meminfo", f"MemTotal: 9 kB\nMemAvailable:   {available_kb} kB\n")
    result = kernel.memory(tmp_path, config())
    judged(result, status, "48.2 MB for 262144 + 65536 flows")


def test_memory_unknown_is_not_enough(tmp_path: Path) -> None:
    judged(
        kernel.memory(write(tmp_path, "meminfo", ""), config()),
        Status.FAIL,
        "0.0 MB available",
        "lower max_flows",
    )
