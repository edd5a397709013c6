import dataclasses
from pathlib import Path

import pytest

from relayctl.datapath.base import DatapathError
from relayctl.inspect import pinned as module
from relayctl.inspect.pinned import Own, open_pinned, own_programs
from tests.unit.relayctl.inspect.pins import META, pinned
from tests.unit.relayctl.memory_datapath import MemoryDatapath


def test_names_come_from_the_meta() -> None:
    found = pinned(MemoryDatapath())
    assert found.vips == {1: "203.0.113.10:3478"}
    assert found.ports == {1: "outer0", 2: "eth0.20"}
    assert found.interfaces() == [
        {"name": "outer0", "role": "outer", "port": 1, "tags": [], "mode": "native"},
        {"name": "eth0.20", "role": "inner", "port": 2, "tags": [20], "mode": "native"},
    ]


def test_mode_is_that_of_the_carrier() -> None:
    found = pinned(MemoryDatapath(), attached=frozenset({12}))
    assert [each["mode"] for each in found.interfaces()] == [None, "native"]


@pytest.mark.parametrize(
    ("attached", "mode", "name"),
    [
        ({11, 12}, "native", "xdp-native"),
        ({11, 12}, "generic", "xdp-generic"),
        ((), "native", "xdp-detached"),
    ],
)
def test_name_does_not_depend_on_where_we_look_from(
    attached: set[int], mode: str, name: str
) -> None:
    found = pinned(MemoryDatapath(name="xdp-detached"), attached=frozenset(attached))
    assert dataclasses.replace(found, meta=META | {"mode": mode}).name == name


def test_memory_counts_both_tables() -> None:
    small = pinned(MemoryDatapath())
    large = dataclasses.replace(small, capacity={"v4": 1000, "v6": 100_024})
    assert large.memory - small.memory == pytest.approx(100_000 * 160, rel=0.1)


def test_no_pins(tmp_path: Path) -> None:
    with pytest.raises(DatapathError, match="does not exist"):
        open_pinned("relay-a", tmp_path)


def test_programs_without_bpf_file_system(tmp_path: Path) -> None:
    found = own_programs(tmp_path, "relay-a")
    assert found == Own(unknown=f"no BPF file system is visible at {tmp_path}")


def test_programs_of_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "is_bpffs", lambda _: True)
    assert own_programs(tmp_path, "relay-a") == Own()


def test_programs_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "is_bpffs", lambda _: True)
    pins = tmp_path / "ferryline/relay-a"
    pins.mkdir(parents=True)
    (pins / "link-11").touch()
    assert str(pins / "link-11") in own_programs(tmp_path, "relay-a").unknown
