"""Standing on aiortc: private names checked at start, coroutines run without a task. Pure."""

from collections.abc import Coroutine, Iterable
from typing import Any


class AiortcError(RuntimeError):
    """The installed aiortc is not one that we can stand on."""


def require(version: str, owner: object, names: Iterable[str], kind: str) -> None:
    """Raises `AiortcError` if `owner`, a `kind` or an instance of it, lacks one of `names`."""
    missing = [f"{kind}.{name}" for name in names if not hasattr(owner, name)]
    if missing:
        raise AiortcError(
            f"aiortc {version} has no {', '.join(missing)}; install the one in requirements.lock"
        )


def run(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine of aiortc to its end: none of them waits on our transport."""
    try:
        coroutine.send(None)
    except StopIteration:
        return
    coroutine.close()
    raise AiortcError("a coroutine of aiortc waits: its transports cannot be run without a task")
