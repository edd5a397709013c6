"""A hundred scripted conversations with the whole core: every event the client is told is judged.

By OpenAI's Python types, by the union that @openai/agents-realtime accepts, by the order that any
conversation keeps, and by the script itself: which events, how often, and when there was sound.
"""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from tests.conversations import beta_types
from tests.conversations.backends import Backends
from tests.conversations.effort import Effort
from tests.conversations.scripts.table import Plan, plans
from tests.conversations.stage import Stage, SteppedLoop
from tests.conversations.talk import SERVER_VAD, Missed, Talk
from tests.figures.measurement import Findings, Measurement
from tests.judges import agents_union, openai_types, order
from tests.report import Target
from transceiver.dialects.choice import DialectName
from transceiver.events import Event


@dataclass(frozen=True)
class Played:
    """What became of one conversation. `missed` is empty if it went as its script says."""

    plan: Plan
    events: Sequence[Event]
    missed: str = ""


def measurements(effort: Effort) -> list[Measurement]:
    targets = (
        Target("events_valid", "=", "all"),
        Target("conversations_in_order", "=", effort.conversations),
    )
    return [Measurement("scripted", targets, partial(measure, effort))]


def measure(effort: Effort) -> Findings:
    every = plans()
    chosen = every[:: max(1, len(every) // effort.conversations)][: effort.conversations]
    found = [play(plan) for plan in chosen]
    faults = invalid(found)
    disordered = {each.plan.name: why for each in found if (why := disorder(each))}
    count = sum(len(each.events) for each in found)
    return Findings(
        {
            "events_valid": f"all but {len(faults)}" if faults else "all",
            "conversations_in_order": len(found) - len(disordered),
        },
        {
            "events": count,
            "kinds": sorted({event["type"] for each in found for event in each.events}),
            "invalid": faults[:50],
            "out_of_order": disordered,
        },
    )


def play(plan: Plan) -> Played:
    """One conversation, from the offer to its end."""
    backends = Backends(plan, lambda: stage.now)
    stage = Stage(
        backends.make,
        DialectName.REALTIME_BETA if plan.beta else DialectName.REALTIME,
        _session(plan),
    )
    loop = SteppedLoop(lambda: stage.now)
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        missed = runner.run(_play(plan, stage, backends))
    return Played(plan, stage.heard.events, missed)


def invalid(played: Iterable[Played]) -> list[str]:
    """What the published types say against any event, with the conversation it is of."""
    faults: list[str] = []
    ours: list[tuple[str, Event]] = []
    for each in played:
        judge = beta_types if each.plan.beta else openai_types
        for event in each.events:
            faults += [f"{each.plan.name}: {fault}" for fault in judge.faults(event)]
            if not each.plan.beta:
                ours.append((each.plan.name, event))
    read = agents_union.faults([event for _, event in ours])
    for (name, _), found in zip(ours, read, strict=True):
        faults += [f"{name}: {fault}" for fault in found]
    return faults


def disorder(played: Played) -> str:
    """Why the conversation did not go in its order; empty if it did."""
    if played.missed:
        return played.missed
    if played.plan.beta:  # its script has looked at each event
        return ""
    voice_first = played.plan.backend != "realtime"
    try:
        return "; ".join(order.faults(played.events, voice_first=voice_first))
    except (KeyError, TypeError) as error:  # it reads events that are valid
        return f"an event cannot be read: {error!r}"


async def _play(plan: Plan, stage: Stage, backends: Backends) -> str:
    talk = Talk(stage, plan.seed, beta=plan.beta, detection=plan.detection or SERVER_VAD)
    async with backends.behind():
        stage.connect()
        try:
            await talk.open()
            await plan.script(talk)
        except Missed as error:
            return str(error)
        finally:
            await stage.end()
    return ""


def _session(plan: Plan) -> dict[str, Any]:
    """What the call's maker asks for."""
    if plan.detection is None:
        return {}
    return {"type": "realtime", "audio": {"input": {"turn_detection": dict(plan.detection)}}}
