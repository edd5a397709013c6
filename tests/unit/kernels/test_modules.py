import pytest

from tests.kernels.modules import loading_order, name_of, needs


def module(*needed: str) -> bytes:
    return b"\x7fELF\0license=GPL\0depends=" + ",".join(needed).encode() + b"\0name=x\0"


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("./lib/modules/6.1/kernel/net/8021q/8021q.ko", "8021q"),
        ("./usr/lib/modules/6.18/kernel/fs/fuse/virtiofs.ko.xz", "virtiofs"),
        ("a/virtio-pci.ko", "virtio_pci"),
        ("a/modules.builtin", None),
        ("a/vmlinuz-6.1", None),
    ],
)
def test_name(path: str, name: str | None) -> None:
    assert name_of(path) == name


def test_needs() -> None:
    assert needs(module("garp", "mac-80211")) == ["garp", "mac_80211"]
    assert needs(module()) == []
    assert needs(b"no module") == []


def test_each_comes_after_what_it_needs_and_once() -> None:
    found = {
        "vlan": module("garp", "mrp"),
        "garp": module("stp"),
        "mrp": module(),
        "stp": module("llc"),
        "llc": module(),
        "unwanted": module(),
        "dummy": module("llc"),
    }
    order = loading_order(["vlan", "dummy"], found)
    assert order == ["llc", "stp", "garp", "mrp", "vlan", "dummy"]


def test_what_is_built_in_is_left_out() -> None:
    assert loading_order(["fuse", "overlay"], {"overlay": module("fuse")}) == ["overlay"]
