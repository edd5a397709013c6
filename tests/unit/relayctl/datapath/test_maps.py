from typing import Any

import pytest

from relayctl.datapath import maps
from relayctl.datapath.maps import META, MapShape, MapType
from tests.unit.relayctl.datapath.test_spec import SPEC

WANTED = maps.meta(SPEC)


def test_every_map_has_a_name_of_its_own() -> None:
    names = [shape.name for shape in (*maps.shapes(1024, 256), META)]
    assert len(names) == len(set(names))
    assert all(len(name) < 16 for name in names)  # BPF_OBJ_NAME_LEN with its zero


@pytest.mark.parametrize(
    ("shape", "size"),
    [
        pytest.param(MapShape("h", MapType.HASH, 8, 72, 1024), 1024 * 16 + 1026 * 128, id="hash"),
        pytest.param(MapShape("h", MapType.HASH, 8, 72, 1025), 2048 * 16 + 1027 * 128, id="odd"),
        pytest.param(MapShape("h", MapType.HASH, 5, 1, 1), 16 + 3 * 64, id="aligned"),
        pytest.param(MapShape("a", MapType.ARRAY, 4, 28, 10), 320, id="array"),
        pytest.param(MapShape("p", MapType.PERCPU_ARRAY, 4, 8, 10), 240, id="per_cpu"),
    ],
)
def test_memory(shape: MapShape, size: int) -> None:
    assert shape.memory(cpus=2) == size


def test_shape_reads_well() -> None:
    assert str(MapShape("h", MapType.HASH, 8, 72, 1024)) == (
        "hash of 1024 entries, 8-byte keys, 72-byte values"
    )


def test_meta_round_trip() -> None:
    packed = maps.pack_meta(WANTED)
    assert len(packed) == META.value_size
    assert maps.unpack_meta(packed) == WANTED


def test_meta_that_was_never_written_is_empty() -> None:
    assert maps.unpack_meta(bytes(META.value_size)) == {}


def test_meta_holds_the_most_vips() -> None:
    vips = {str(id): ["255.255.255.255:65535"] * 2 for id in range(4088, 4096)}
    assert len(maps.pack_meta(WANTED | {"vips": vips})) == META.value_size


def pinned(**changes: object) -> dict[str, Any]:
    return WANTED | changes


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(WANTED, id="the_same"),
        pytest.param(pinned(vips={"1": WANTED["vips"]["1"]}), id="a_vip_came"),
        pytest.param(pinned(vips=WANTED["vips"] | {"9": ["a", "b"]}), id="a_vip_went"),
    ],
)
def test_agreement(found: dict[str, Any]) -> None:
    assert maps.disagreement(found, WANTED) is None


@pytest.mark.parametrize(
    ("found", "message"),
    [
        pytest.param({}, "layout: pinned None, wanted 2", id="nothing"),
        pytest.param(pinned(layout=3), "layout: pinned 3, wanted 2", id="layout"),
        pytest.param(
            pinned(structures=["=8s"]),
            f"structures: pinned ['=8s'], wanted {WANTED['structures']}",
            id="structures",
        ),
        pytest.param(
            pinned(inner=["10.2.0.1", 5100, 8]),
            "inner: pinned ['10.2.0.1', 5100, 8], wanted ['10.2.0.1', 'fd00:2::1', 5100, 16]",
            id="inner",
        ),
        pytest.param(
            pinned(vips={"2": ["203.0.113.99:443", "10.9.8.8:3478"]}),
            "VIP 2: pinned 203.0.113.99:443 = 10.9.8.8:3478, "
            "wanted 203.0.113.99:443 = 10.9.8.7:3478",
            id="vip",
        ),
        pytest.param(
            pinned(clusters={"8": "fd00:3::/96"}),
            "cluster 8: pinned fd00:3::/96, wanted fd00:2::/96",
            id="cluster",
        ),
        pytest.param(
            pinned(transparent=True),
            "transparent: pinned True, wanted False",
            id="transparent",
        ),
    ],
)
def test_disagreement(found: dict[str, Any], message: str) -> None:
    assert maps.disagreement(found, WANTED) == message


def test_another_layout_may_lack_what_came_later() -> None:
    before = {key: WANTED[key] for key in ("vips", "inner")} | {"layout": 1}
    assert maps.disagreement(before, WANTED, same_layout=False) is None
    other = before | {"inner": ["10.2.0.9", 5100, 16]}
    assert "inner: pinned" in (maps.disagreement(other, WANTED, same_layout=False) or "")


def test_prefixes_of_pinned_clusters() -> None:
    assert maps.prefixes(WANTED) == SPEC.prefixes
    assert maps.prefixes({}) == {}
