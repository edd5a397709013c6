from relayctl.doctor import program
from tests.unit.relayctl.test_config import V6, config


def test_trial_is_the_configured_program_under_another_name() -> None:
    spec = program.trial_spec(config(inner_port_base=5200, bpffs="/run/bpf"), "doctor-1")
    assert spec.instance == "doctor-1"
    assert [vip.public for vip in spec.vips] == [("203.0.113.10", 3478)]
    assert [cluster.id for cluster in spec.clusters] == [7]
    assert (spec.inner_addresses, spec.inner_port_base) == (("10.2.0.1",), 5200)
    assert not spec.transparent
    assert str(spec.pins).startswith("/run/bpf/ferryline/doctor-1/")


def test_trial_takes_little_memory() -> None:
    spec = program.trial_spec(config(max_flows=1 << 24, max_flows_v6=1 << 24), "doctor-1")
    assert (spec.max_flows, spec.max_flows_v6) == (16, 16)


def test_trial_of_ipv6_and_of_transparent_mode() -> None:
    spec = program.trial_spec(config(**V6, inner="transparent"), "doctor-1")
    assert spec.transparent
    assert list(spec.prefixes) == [9]


def test_name_of_a_program_that_is_not_there_is_empty() -> None:
    assert program.name_of(0xFFFFFFFF) == ""
