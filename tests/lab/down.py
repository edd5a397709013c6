"""`make down`: end what `make up` started, and whatever a crash left of it."""

from tests.lab import namespace, topology, up_state
from tests.lab.program import stop_listed

PREFIX = "fl-"  # of the lab that `make up` builds
LOOPBACK = "up"  # name of its place on 127.0.0.1


def down() -> int:
    """How many programs ended."""
    ended = stop_listed(topology.directory_of(LOOPBACK)) + stop_listed(
        topology.directory_of(PREFIX)
    )
    if namespace.unavailable() is None:
        topology.clean(PREFIX)
    up_state.PATH.unlink(missing_ok=True)
    return ended


def main() -> None:
    ended = down()
    print(f"down: {ended} programs ended" if ended else "nothing was up")


if __name__ == "__main__":
    main()
