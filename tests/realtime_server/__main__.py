"""`python -m tests.realtime_server --port 8090 --script '{"pace": 1.0}'`: serve until a signal."""

import asyncio
import json
import signal

import click

from tests.realtime_server.script import Script
from tests.realtime_server.server import RealtimeServer


async def run(script: Script, host: str, port: int) -> None:
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    async with RealtimeServer(script, host=host, port=port) as server:
        print(server.url, flush=True)
        await stopped.wait()


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True)
@click.option("--port", default=0, show_default="any")
@click.option("--script", "text", default="{}", help="A JSON object: the fields of Script.")
def main(host: str, port: int, text: str) -> None:
    """A Realtime server without a model. Prints its URL."""
    try:
        script = Script.of(json.loads(text))
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--script") from error
    asyncio.run(run(script, host, port))


if __name__ == "__main__":
    main()
