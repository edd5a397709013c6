"""Compile, make maps, adopt them after a restart, refuse those that mean something else."""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path

import pytest

from relayctl.datapath import maps, pins, xdp
from relayctl.datapath.base import DatapathError
from relayctl.datapath.bpf_map import Map
from relayctl.datapath.libbpf import Program, possible_cpus
from relayctl.datapath.spec import Spec, Vip
from relayctl.flow import Flow, FlowKey
from relayctl.wire.cluster import Cluster
from tests.kernel import rig

KEY = FlowKey(rig.CLIENT, 1)
FLOW = Flow(rig.ENDPOINT, 7, 5100, born=1)


@pytest.fixture
def spec(bpffs: Path, namespace: None) -> Iterator[Spec]:
    made = rig.spec(bpffs, "compiled")
    yield made
    xdp.unload(made.instance, made.bpffs)


def prepare_maps(spec: Spec) -> bool:
    """Adopt what is pinned (True), or make it: a start without its compiler."""
    pins.check(spec)
    if pins.adopt(spec):
        return True
    pins.make(spec)
    return False


def install_one(spec: Spec) -> None:
    datapath = xdp.XdpDatapath.open(spec.pins)
    assert datapath.flows.install(KEY, FLOW)
    datapath.close()


def has_it(spec: Spec) -> bool:
    datapath = xdp.XdpDatapath.open(spec.pins)
    found = datapath.flows.get(KEY) == FLOW
    datapath.close()
    return found


def test_first_start_pins_everything(spec: Spec) -> None:
    loaded = xdp.load(spec)
    assert not loaded.adopted
    shapes = (*maps.shapes(spec.max_flows, spec.max_flows_v6), maps.META)
    assert {path.name for path in spec.pins.iterdir()} == {s.name for s in shapes} | {"program"}
    with Program.open(spec.pins / "program") as program:
        assert (program.id, program.name) == (loaded.program_id, "ferryline_relay")
        assert loaded.instructions == program.verified_instructions > 0


def test_restart_adopts_maps_with_their_flows(spec: Spec) -> None:
    first = xdp.load(spec)
    install_one(spec)
    second = xdp.load(spec)
    assert second.adopted
    assert second.program_id != first.program_id
    assert has_it(spec)


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"vips": (Vip(1, rig.VIP, rig.VIP),)}, id="a_vip_went"),
        pytest.param(
            {"vips": (Vip(1, rig.VIP, rig.VIP), Vip(9, ("203.0.113.30", 1), ("203.0.113.30", 1)))},
            id="a_vip_came",
        ),
        pytest.param({"own": ()}, id="own_addresses"),
        pytest.param({"interfaces": ()}, id="interfaces"),
        pytest.param({"allow_inner_clients": True}, id="inner_clients"),
        pytest.param(
            {"clusters": (Cluster(7, (IPv4Network("10.0.0.0/8"),)),)}, id="a_cluster_went"
        ),
    ],
)
def test_changes_that_leave_flows_their_meaning_are_adopted(
    spec: Spec, changes: dict[str, object]
) -> None:
    prepare_maps(spec)
    install_one(spec)
    assert prepare_maps(replace(spec, **changes))  # type: ignore[arg-type]
    assert has_it(spec)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        pytest.param(
            {"vips": (Vip(1, ("203.0.113.11", 3478), rig.VIP),)},
            "VIP 1: pinned 203.0.113.10:3478 = 203.0.113.10:3478, wanted 203.0.113.11:3478",
            id="vip",
        ),
        pytest.param(
            {"inner_ports": 8}, r"inner: pinned \['10.2.0.1', 'fd00:2::1', 5100, 16\]", id="ports"
        ),
        pytest.param({"inner_addresses": ("10.2.0.7",)}, "inner: pinned", id="inner_address"),
        pytest.param({"inner_addresses": ("10.2.0.1",)}, "inner: pinned", id="inner_family"),
        pytest.param({"transparent": True}, "transparent: pinned False, wanted True", id="mode"),
        pytest.param(
            {"clusters": (Cluster(8, (IPv6Network("fd00:5::/112"),), IPv6Network("fd00:5::/96")),)},
            "cluster 8: pinned fd00:2::/96, wanted fd00:5::/96",
            id="cluster",
        ),
    ],
)
def test_maps_that_mean_something_else_are_refused(
    spec: Spec, changes: dict[str, object], message: str
) -> None:
    prepare_maps(spec)
    install_one(spec)
    with pytest.raises(DatapathError, match=f"{message}.*; give the old value, or .*rm -r"):
        prepare_maps(replace(spec, **changes))  # type: ignore[arg-type]
    assert has_it(spec)


@pytest.mark.parametrize("changes", [{"max_flows": 2048}, {"max_flows_v6": 512}], ids=str)
def test_tables_of_another_size_are_made_with_the_flows_of_the_old(
    spec: Spec, changes: dict[str, int]
) -> None:
    prepare_maps(spec)
    install_one(spec)
    grown = replace(spec, **changes)  # type: ignore[arg-type]
    assert not prepare_maps(grown)
    assert has_it(grown)
    for shape in maps.shapes(grown.max_flows, grown.max_flows_v6):
        with Map.open(grown.pins / shape.name) as pinned:
            assert pinned.matches(shape)


def test_tables_too_small_for_what_lives_are_refused(spec: Spec) -> None:
    prepare_maps(spec)
    datapath = xdp.XdpDatapath.open(spec.pins)
    for port in range(1, 10):
        assert datapath.flows.install(FlowKey((rig.CLIENT[0], port), 1), FLOW)
    datapath.close()
    with pytest.raises(DatapathError, match="max_flows = 8: 9 flows are alive; choose more"):
        prepare_maps(replace(spec, max_flows=8))


def test_a_refused_start_leaves_the_program_that_is_pinned(spec: Spec) -> None:
    loaded = xdp.load(spec)
    with pytest.raises(DatapathError, match="cannot be adopted"):
        xdp.load(replace(spec, inner_ports=8))
    with Program.open(spec.pins / "program") as program:
        assert program.id == loaded.program_id


def test_other_structures_are_refused(spec: Spec) -> None:
    prepare_maps(spec)
    with Map.open(spec.pins / "meta") as meta:
        content = maps.unpack_meta(meta.lookup(bytes(4)) or b"")
        meta.update(bytes(4), maps.pack_meta(content | {"structures": ["=8s"]}))
    with pytest.raises(DatapathError, match=r"structures: pinned \['=8s'\], wanted"):
        prepare_maps(spec)


def test_a_start_that_broke_off_is_begun_again(spec: Spec) -> None:
    prepare_maps(spec)
    install_one(spec)
    (spec.pins / "meta").unlink()
    assert not prepare_maps(spec)
    assert not has_it(spec)


def test_a_map_that_went_missing_is_made_again(spec: Spec) -> None:
    prepare_maps(spec)
    install_one(spec)
    (spec.pins / "budgets").unlink()
    assert prepare_maps(spec)
    assert (spec.pins / "budgets").exists()
    assert has_it(spec)


def test_more_flows_than_memory_is_refused_before_anything_is_made(spec: Spec) -> None:
    with pytest.raises(DatapathError, match=r"max_flows = 4000000000, .* MB are free; lower"):
        prepare_maps(replace(spec, max_flows=4_000_000_000))
    assert not spec.pins.exists()


def test_computed_memory_is_about_what_the_kernel_takes(spec: Spec) -> None:
    prepare_maps(spec)
    for shape in maps.shapes(spec.max_flows, spec.max_flows_v6):
        with Map.open(spec.pins / shape.name) as pinned:
            info = Path(f"/proc/self/fdinfo/{pinned.fd}").read_text()
        taken = int(info.partition("memlock:")[2].split()[0])
        assert 0 <= taken - shape.memory(possible_cpus()) <= 1024 + 16 * possible_cpus(), shape


def test_the_compiler_has_nothing_to_say(spec: Spec, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO"):
        xdp.load(spec)
    assert caplog.text == ""


def test_place_that_is_no_bpffs_is_refused(tmp_path: Path, namespace: None) -> None:
    with pytest.raises(DatapathError, match=f"{tmp_path} is no BPF file system: mount -t bpf"):
        xdp.load(rig.spec(tmp_path, "nowhere"))


def test_child_speaks_one_line_of_error(tmp_path: Path) -> None:
    child = subprocess.run(
        [sys.executable, "-m", "relayctl.datapath.compile"],
        input=json.dumps({"instance": "x"}),
        capture_output=True,
        text=True,
    )
    assert (child.returncode, child.stdout) == (1, "")
    assert child.stderr.startswith("the spec on stdin is unreadable: ")


def test_interpreter_that_is_not_there_is_a_clear_error(spec: Spec, tmp_path: Path) -> None:
    with pytest.raises(DatapathError, match="cannot start"):
        xdp.load(spec, python=str(tmp_path / "python"))
