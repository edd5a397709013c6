import pytest

from tests.figures.measurement import Findings, Measurement, expect
from tests.figures.run import UnknownName, catalogue, make, select, targets
from tests.report import Target


def test_every_promise_has_one_target() -> None:
    names = [target.name for target in targets(catalogue())]
    assert len(names) == len(set(names))
    clients = ("chromium", "firefox", "aiortc")
    promised = {
        *(f"nat_move_gap_{which}_{client}" for which in ("p50", "max") for client in clients),
        *("muted_two_interfaces_moves", "muted_two_interfaces_spare_packets"),
        *(f"ice_restart_lost_{client}" for client in clients[:2]),
        *(
            f"handshake_loss_{datagram}_{client}"
            for datagram in ("up_1", "up_2", "down_1", "down_2")
            for client in clients[:2]
        ),
        "first_binding_answered_without_retransmission",
        *(f"daemon_kill_{what}" for what in ("lost_up", "lost_down", "flow_kept")),
        *("thirty_calls_media_sockets", "thirty_calls_left_over"),
        *(
            f"chromium_{what}"
            for what in ("concealed", "selected_remote", "data_channel", "audio_energy")
        ),
        *("kernel_share_up", "kernel_share_down"),
        *(f"hostile_{what}" for what in ("answered", "crashed", "counters_add_up")),
    }
    assert set(names) == promised


def test_bounds() -> None:
    bounds = {target.name: str(target) for target in targets(catalogue())}
    assert bounds["nat_move_gap_p50_firefox"] == "≤ 100"
    assert bounds["nat_move_gap_max_aiortc"] == "≤ 300"
    assert bounds["handshake_loss_down_1_chromium"] == "≤ 380"
    assert bounds["chromium_concealed"] == "< 1"
    assert bounds["first_binding_answered_without_retransmission"] == "= 20 of 20"
    assert bounds["kernel_share_up"] == "≥ 99.5"


def test_select_by_beginning() -> None:
    every = catalogue()
    chosen = [each.name for each in select(every, ["ice_restart", "hostile"])]
    assert chosen == ["ice_restart_chromium", "ice_restart_firefox", "hostile"]
    assert select(every, []) == every


def test_select_names_what_there_is() -> None:
    with pytest.raises(UnknownName, match=r"no measurement 'nat_mover'; there are .*hostile"):
        select(catalogue(), ["hostile", "nat_mover"])


def test_a_failure_is_an_outcome() -> None:
    def measure() -> Findings:
        expect(1 < 0, "nothing happened")
        return Findings({"gap": 1.0})

    made = make(Measurement("gap", (Target("gap", "≤", 2),), measure))
    assert made.error == "MeasurementError: nothing happened"
    assert made.values == {}


def test_values_and_detail() -> None:
    made = make(Measurement("gap", (), lambda: Findings({"gap": 1.0}, {"gaps": [1.0]})))
    assert (made.error, made.values, made.detail) == (None, {"gap": 1.0}, {"gaps": [1.0]})
