"""The wrapper around BPF maps, against the kernel's."""

import errno
from collections.abc import Iterator
from pathlib import Path

import pytest

from relayctl.datapath.bpf_map import Map
from relayctl.datapath.libbpf import BpfError, possible_cpus
from relayctl.datapath.maps import MapShape, MapType

HASH = MapShape("hash", MapType.HASH, 4, 8, 5000)
ARRAY = MapShape("array", MapType.ARRAY, 4, 8, 100)


def key(number: int) -> bytes:
    return number.to_bytes(4, "little")


def value(number: int) -> bytes:
    return number.to_bytes(8, "little")


@pytest.fixture
def table(bpffs: Path) -> Iterator[Map]:
    with Map.create(HASH) as made:
        yield made


def test_entries_come_and_go(table: Map) -> None:
    assert table.lookup(key(1)) is None
    table.update(key(1), value(5))
    table.update(key(1), value(6))
    assert table.lookup(key(1)) == value(6)
    assert table.delete(key(1))
    assert not table.delete(key(1))


def test_full_hash_says_so(bpffs: Path) -> None:
    with Map.create(MapShape("small", MapType.HASH, 4, 8, 2)) as table:
        with pytest.raises(BpfError, match=r"cannot write map small: .*errno 7") as caught:
            fill(table)
        assert caught.value.errno == errno.E2BIG


def fill(table: Map) -> None:
    for number in range(64):  # a CPU may hold a few free elements back
        table.update(key(number), value(0))


@pytest.mark.parametrize("size", [1, 2, 100, 4096, 10_000])
def test_batches_give_everything_once(table: Map, size: int) -> None:
    for number in range(4500):
        table.update(key(number), value(number * 3))
    seen: dict[bytes, bytes] = {}
    for keys, values in table.batches(size):
        for at in range(len(keys) // 4):
            found = keys[at * 4 : at * 4 + 4]
            assert found not in seen
            seen[found] = values[at * 8 : at * 8 + 8]
    assert seen == {key(number): value(number * 3) for number in range(4500)}


def test_batch_grows_for_a_bucket_larger_than_itself(bpffs: Path) -> None:
    with Map.create(MapShape("one", MapType.HASH, 4, 8, 512)) as table:
        for number in range(512):
            table.update(key(number), value(number))
        sizes = [len(keys) // 4 for keys, _ in table.batches(1)]
    assert sum(sizes) == 512
    assert max(sizes) > 1


def test_items_of_an_empty_hash(table: Map) -> None:
    assert list(table.items()) == []


def test_items_of_an_array(bpffs: Path) -> None:
    with Map.create(ARRAY) as array:
        array.update(key(99), value(1))
        items = list(array.items())
    assert [k for k, _ in items] == [key(number) for number in range(100)]
    assert items[-1] == (key(99), value(1))


def test_per_cpu_values(bpffs: Path) -> None:
    with Map.create(MapShape("cpus", MapType.PERCPU_ARRAY, 4, 8, 2)) as table:
        assert table.lookup_per_cpu(key(0)) == [value(0)] * possible_cpus()
        assert table.lookup_per_cpu(key(2)) == []


def test_description_survives_a_pin(bpffs: Path) -> None:
    path = bpffs / "described"
    with Map.create(ARRAY) as made:
        made.pin(path)
    with Map.open(path) as found:
        assert found.matches(ARRAY)
        assert not found.matches(MapShape("array", MapType.ARRAY, 4, 8, 101))
        assert not found.matches(MapShape("array", MapType.ARRAY, 4, 16, 100))
        assert found.name == "array"
    path.unlink()


def test_absent_pin_names_its_path(bpffs: Path) -> None:
    with pytest.raises(BpfError, match=f"cannot open {bpffs}/nothing: No such file") as caught:
        Map.open(bpffs / "nothing")
    assert caught.value.errno == errno.ENOENT


def test_impossible_map_is_an_error_that_names_it(bpffs: Path) -> None:
    with pytest.raises(BpfError, match=r"cannot create map huge \(array of 0 entries"):
        Map.create(MapShape("huge", MapType.ARRAY, 4, 8, 0))
