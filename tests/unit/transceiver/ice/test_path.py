"""The table of paths: who goes first when it is full."""

from transceiver.ice.path import MAX_PATHS, NEVER, Path, Paths, Round
from transceiver.ice.stun import Credentials

CREDENTIALS = Credentials("a" * 24, "p" * 22, "bbbb", "q" * 22)


def full() -> tuple[Paths, list[Path]]:
    paths = Paths()
    known = [paths.add(number) for number in range(MAX_PATHS)]
    for path in known:
        path.heard = 100.0 + float(str(path.key))
    return paths, known


def running() -> Round:
    return Round(CREDENTIALS, consent=False, began=1.0, due=2.0)


def test_nobody_has_to_go_while_there_is_room() -> None:
    paths, _ = full()
    paths.pop(3)
    assert paths.surplus(None) is None


def test_the_unproven_one_unheard_for_longest_goes_first() -> None:
    paths, known = full()
    known[0].proof = "a"
    known[2].heard = 1.0
    assert paths.surplus(None) is known[2]


def test_a_path_that_is_being_asked_stays() -> None:
    paths, known = full()
    known[0].round = running()
    assert paths.surplus(None) is known[1]


def test_among_proven_paths_the_oldest_goes_but_never_the_selected_one() -> None:
    paths, known = full()
    for path in known:
        path.proof = "a"
    known[1].round = running()
    assert paths.surplus(known[0]) is known[1]


def test_asking_ends_with_the_round() -> None:
    path = Path("p")
    assert not path.asking
    path.round = running()
    assert path.asking
    path.round.due = float("inf")
    assert not path.asking


def test_unproven_paths_that_are_asked_are_counted() -> None:
    paths, known = full()
    for path in known[:3]:
        path.round = running()
    known[0].proof = "a"
    assert paths.unproven_asked() == 2


def test_media_after_the_loss_means_not_lost() -> None:
    path = Path("p", media=5.0)
    assert not path.is_lost
    path.lost = 6.0
    assert path.is_lost
    path.media = 7.0
    assert not path.is_lost
    assert Path("q").lost == NEVER
