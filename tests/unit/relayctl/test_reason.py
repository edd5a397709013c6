from relayctl.reason import COUNTERS, PUNTS, Reason


def test_numbers_fit_the_counter_maps() -> None:
    assert all(0 <= reason < COUNTERS for reason in Reason)


def test_program_and_packet_process_do_not_share_numbers() -> None:
    assert all((reason >= 64) == reason.name.startswith("SLOW_") for reason in Reason)


def test_labels_are_names() -> None:
    assert Reason.PUNT_FIRST.label == "punt_first"


def test_odd_packets_are_not_promised_to_the_packet_process() -> None:
    assert Reason.PUNT_ODD not in PUNTS
    assert {r for r in Reason if r.name.startswith("PUNT_")} == PUNTS | {Reason.PUNT_ODD}
