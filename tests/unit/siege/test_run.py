"""The catalogue of sieges."""

from tests.figures.run import targets
from tests.siege.run import catalogue, main

PROMISED = {
    *("forged_flood_lost", "forged_flood_connected", "forged_flood_read"),
    *("token_flood_lost", "token_flood_connected", "token_flood_flows"),
    *("spoofed_transceiver_delivered_xdp", "spoofed_transceiver_delivered_socket"),
    "spoofed_transceiver_read",
    *("odd_packets_read", "odd_packets_lost"),
    *(
        f"takeover_{what}_{datapath}"
        for what in ("spoofed_succeeded", "victim_lost")
        for datapath in ("xdp", "socket")
    ),
    *("port_reuse_repointed", "port_reuse_p50"),
    *("program_replaced", "program_replaced_lost", "program_replaced_load"),
    *("nexthop_changes_followed", "nexthop_followed_p50", "nexthop_lost_beyond_the_change"),
    *("hint_healed", "hint_gap_p50", "hint_gap_max"),
    *("ssrc_flood_lost", "ssrc_flood_misled"),
    *("daemon_killed_lost", "daemon_killed_flows_kept", "daemon_killed_connected"),
    *(f"full_table_{what}" for what in ("let_in", "refusals_shown", "lost", "let_in_later")),
    *(f"key_rotation_{what}" for what in ("lost", "connected", "refused")),
}


def test_every_promise_has_one_target() -> None:
    for quick in (False, True):
        names = [target.name for target in targets(catalogue(quick))]
        assert len(names) == len(set(names))
        assert set(names) == PROMISED


def test_bounds() -> None:
    bounds = {target.name: str(target) for target in targets(catalogue(quick=False))}
    assert bounds["forged_flood_connected"] == "= 100"
    assert bounds["token_flood_flows"] == "≤ 24"
    assert bounds["odd_packets_read"] == "≤ 200"
    assert bounds["port_reuse_p50"] == "≤ 10"
    assert bounds["program_replaced"] == "= 200"
    assert bounds["nexthop_changes_followed"] == "= 100"
    assert {bound for name, bound in bounds.items() if name.endswith("_lost")} == {"= 0"}


def test_a_name_that_there_is_not_is_refused() -> None:
    assert main(["--only", "flood"]) == 2
