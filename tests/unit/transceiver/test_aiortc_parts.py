import asyncio

import pytest

from transceiver.aiortc_parts import AiortcError, require, run


def test_require_names_what_is_missing() -> None:
    require("1.0", "text", ("upper", "lower"), "str")
    with pytest.raises(AiortcError, match=r"aiortc 1\.0 has no str\.nope, str\.nor"):
        require("1.0", "text", ("upper", "nope", "nor"), "str")


def test_run_runs_to_the_end_without_a_loop() -> None:
    done: list[int] = []

    async def inner() -> None:
        done.append(1)

    async def outer() -> None:
        await inner()
        done.append(2)

    run(outer())
    assert done == [1, 2]


def test_run_refuses_to_wait() -> None:
    async def waits() -> None:
        await asyncio.sleep(0)

    with pytest.raises(AiortcError):
        run(waits())
