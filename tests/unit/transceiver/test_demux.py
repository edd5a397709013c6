"""Calls are letters, paths are numbers."""

import pytest

from transceiver.demux import MAX_CLAIMS, MAX_OFFERED, Demux

TID, OTHER_TID = b"t" * 12, b"u" * 12


@pytest.fixture
def table() -> Demux[str]:
    return Demux()


def test_requests_go_by_ufrag_whatever_the_path(table: Demux[str]) -> None:
    table.add("aaaa", "A")
    table.add("bbbb", "B")
    table.proven(1, "A")
    assert table.request(b"bbbb") == "B"
    assert table.request(b"aaa") is None  # the whole of it counts


def test_both_tokens_of_a_restart_are_valid_until_one_retires(table: Demux[str]) -> None:
    table.add("old", "A")
    table.add("new", "A")
    assert table.request(b"old") == table.request(b"new") == "A"
    table.retire("old")
    assert table.request(b"old") is None
    assert table.request(b"new") == "A"


def test_responses_go_by_path_and_transaction(table: Demux[str]) -> None:
    table.asked(1, TID, "A")
    table.asked(1, OTHER_TID, "B")
    assert table.response(1, TID) == "A"
    assert table.response(1, OTHER_TID) == "B"
    assert table.response(2, TID) is None
    table.settled(1, TID)
    assert table.response(1, TID) is None


def test_asking_takes_no_path_from_its_owner(table: Demux[str]) -> None:
    table.proven(1, "A")
    table.asked(1, TID, "B")
    assert table.owner(1) == "A"
    assert table.suitor(1) is None


def test_proof_takes_the_path_and_names_who_lost_it(table: Demux[str]) -> None:
    assert table.proven(1, "A") is None
    assert table.proven(1, "A") is None
    assert table.proven(1, "B") == "A"
    assert table.owner(1) == "B"


def test_who_lost_a_path_cannot_give_it_away(table: Demux[str]) -> None:
    table.proven(1, "A")
    table.proven(1, "B")
    table.forgotten(1, "A")
    assert table.owner(1) == "B"
    table.forgotten(1, "B")
    assert table.owner(1) is None


def test_who_asked_a_free_path_may_get_early_dtls(table: Demux[str]) -> None:
    table.asked(1, TID, "A")
    assert table.suitor(1) == "A"
    table.proven(1, "A")
    assert table.suitor(1) is None
    table.asked(2, TID, "A")
    table.forgotten(2, "A")
    assert table.suitor(2) is None


def test_authentic_sources_come_before_claims(table: Demux[str]) -> None:
    table.claims(9, "A", proven=False)
    table.claims(9, "B", proven=False)
    table.claims(9, "B", proven=True)
    assert table.candidates(9) == ("B", "A")
    assert table.candidates(8) == ()


def test_claims_cannot_push_an_authentic_source_out(table: Demux[str]) -> None:
    table.claims(9, "victim", proven=True)
    for n in range(10):
        table.claims(9, f"thief {n}", proven=False)
    assert table.candidates(9)[0] == "victim"
    assert len(table.candidates(9)) == MAX_CLAIMS


def test_an_authentic_source_gets_in_before_a_full_list_of_claims(table: Demux[str]) -> None:
    for n in range(10):
        table.claims(9, f"thief {n}", proven=False)
    table.claims(9, "victim", proven=True)
    assert table.candidates(9)[0] == "victim"


def test_a_call_claims_so_many_sources_and_no_more_unless_they_are_authentic(
    table: Demux[str],
) -> None:
    for ssrc in range(MAX_OFFERED + 5):
        table.claims(ssrc, "A", proven=False)
    assert len(table) == MAX_OFFERED
    table.claims(999, "A", proven=True)
    table.claims(998, "B", proven=False)
    assert (table.candidates(999), table.candidates(998)) == (("A",), ("B",))


def test_nothing_is_left_of_a_removed_call(table: Demux[str]) -> None:
    for call in ("A", "B"):
        table.add(f"ufrag{call}", call)
        table.asked(1, call.encode() * 12, call)
        table.asked(2, call.encode() * 12, call)
        table.proven(call, call)
        table.claims(9, call, proven=True)
    table.remove("A")
    assert table.candidates(9) == ("B",)
    assert table.owner("B") == "B"
    table.remove("B")
    assert len(table) == 0


def test_nothing_is_left_of_calls_that_were_too_many_for_a_source(table: Demux[str]) -> None:
    calls = [f"call {n}" for n in range(MAX_CLAIMS + 2)]
    for call in calls:
        table.claims(9, call, proven=False)
    for call in calls:
        table.remove(call)
    assert len(table) == 0
    assert not table._ssrcs


class Comparing:
    """A call that counts how often it is looked at."""

    looks = 0

    def __eq__(self, other: object) -> bool:
        Comparing.looks += 1
        return self is other

    def __hash__(self) -> int:
        return id(self)


def test_whoever_goes_costs_what_he_holds() -> None:
    table: Demux[Comparing] = Demux()
    calls = [Comparing() for _ in range(500)]
    for n, call in enumerate(calls):
        table.add(f"ufrag{n}", call)
        table.asked(n, TID, call)
        table.proven(n, call)
        table.claims(n, call, proven=True)
    Comparing.looks = 0
    table.remove(calls[250])
    assert Comparing.looks < 10
    assert len(table) == 4 * 499
