import asyncio
from collections.abc import Awaitable, Callable

from transceiver.drain import Drain


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(30):
            await scenario()

    asyncio.run(main())


async def settle() -> None:
    """Let the tasks that can go on do so."""
    for _ in range(5):
        await asyncio.sleep(0)


def test_ends_with_the_last_call() -> None:
    async def scenario() -> None:
        calls, told = ["one"], list[str]()
        drain = Drain(calls, 3600, lambda: told.append("begin"), never)
        over = asyncio.create_task(drain.over())
        await settle()
        assert not over.done()
        drain.begin()
        drain.begin()
        await asyncio.sleep(0.3)
        assert not over.done()
        assert told == ["begin"]
        calls.clear()
        await over

    run(scenario)


def never() -> None:
    raise AssertionError("not the time for last words")


def test_ends_when_the_time_is_over_with_last_words_before() -> None:
    async def scenario() -> None:
        told: list[str] = []
        drain = Drain(["one"], 0.02, lambda: told.append("begin"), lambda: told.append("goodbye"))
        drain.begin()
        await drain.over()
        assert told == ["begin", "goodbye"]

    run(scenario)


def test_ends_when_the_last_words_are_said() -> None:
    async def scenario() -> None:
        calls = ["one"]
        drain = Drain(calls, 0.5, lambda: None, calls.clear)
        drain.begin()
        await drain.over()
        assert calls == []

    run(scenario)


def test_the_second_sigterm_ends_at_once() -> None:
    async def scenario() -> None:
        drain = Drain(["one"], 3600, lambda: None, never)
        over = asyncio.create_task(drain.over())
        drain.begin()
        drain.terminate()  # the first, though it drained already
        await settle()
        assert not over.done()
        drain.terminate()
        await over

    run(scenario)


def test_may_end_without_draining_before() -> None:
    async def scenario() -> None:
        told = list[str]()
        drain = Drain(["one"], 3600, lambda: told.append("begin"), never)
        drain.end()
        await drain.over()
        assert told == ["begin"]

    run(scenario)
