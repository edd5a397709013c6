"""Faults of one relay: its daemon is killed, or upgraded, or its node comes back without memory."""

import dataclasses
import time
from concurrent.futures import ThreadPoolExecutor

from tests.chaos.scenario import Fault, Needs, Scenario
from tests.chaos.stage import Stage
from tests.lab.service_config import Vip
from tests.report import Target

DEAD_S = 3.0  # longer than the program waits for a heartbeat
# Between two checks of a connected client: RFC 7675 wants one each 5 s, 20 % more or less.
CHECK_INTERVAL_MS = {"lean": 2_500, "chromium": 2_500, "firefox": 6_000}

_EMPTY = Needs(redis=True, page_recovers=False)


def scenarios() -> list[Scenario]:
    return [
        Scenario("daemon_killed", _nothing_lost("daemon_killed"), daemon_killed),
        Scenario("daemon_upgraded", _nothing_lost("daemon_upgraded"), daemon_upgraded),
        Scenario(
            "wiped_agent_speaks",
            (
                Target("wiped_agent_speaks_gap_down_max", "≤", 40, "ms"),
                Target("wiped_agent_speaks_gap_up_max", "≤", 60, "ms"),
                Target("wiped_agent_speaks_calls_lost", "=", 0, "calls"),
            ),
            wiped_agent_speaks,
            Needs(agent="speaks", page_recovers=False),
        ),
        Scenario(
            "wiped_redis_up",
            (
                Target("wiped_redis_up_flows_missing", "=", 0, "flows"),
                Target("wiped_redis_up_lost_up", "=", 0, "packets"),
                Target("wiped_redis_up_calls_lost", "=", 0, "calls"),
            ),
            wiped_redis_up,
            _EMPTY,
        ),
        Scenario(
            "wiped_redis_down",
            (
                *(
                    Target(f"wiped_redis_down_gap_up_max_{kind}", "≤", interval, "ms")
                    for kind, interval in CHECK_INTERVAL_MS.items()
                ),
                Target("wiped_redis_down_calls_lost", "=", 0, "calls"),
            ),
            wiped_redis_down,
            _EMPTY,
            seconds=14.0,
        ),
    ]


def _nothing_lost(name: str) -> tuple[Target, ...]:
    return (
        Target(f"{name}_lost_up", "=", 0, "packets"),
        Target(f"{name}_lost_down", "=", 0, "packets"),
        Target(f"{name}_calls_lost", "=", 0, "calls"),
    )


def daemon_killed(stage: Stage) -> Fault:
    """SIGKILL for the control process; it starts again after 3 s."""
    stage.services.kill_relay()
    time.sleep(DEAD_S)
    stage.services.start_relay()
    stage.note("ready")
    return Fault()


def daemon_upgraded(stage: Stage) -> Fault:
    """Stopped and started with one VIP more, which makes another program of it, and with a flow
    table of another size, which moves every flow into new maps."""
    services = stage.services
    setup = services.setup
    number = len(setup.vips) + 1
    address = (stage.site.vip[0], stage.site.vip[1] + number)
    services.setup = dataclasses.replace(
        setup, vips=(*setup.vips, Vip(number, address, address)), max_flows=2 * setup.max_flows
    )
    services.relay.stop()
    stage.note("stopped")
    services.start_relay()
    stage.note("ready")
    return Fault()


def wiped_agent_speaks(stage: Stage) -> Fault:
    """Return packets bring the flows back. Counted from when the program is attached again: until
    then the node does not carry anything, whatever it remembers."""
    stage.services.kill_relay(wipe=True)
    return Fault(origin=_started_anew(stage)[0])


def wiped_redis_up(stage: Stage) -> Fault:
    """The flows are preloaded. Counted from when the relay is ready, which is when routers send
    again; `flows_missing` of those before are not there at that moment."""
    before = {flow["client"] for flow in stage.services.flows()}
    stage.services.kill_relay(wipe=True)
    _, ready = _started_anew(stage)
    after = {flow["client"] for flow in stage.services.flows()}
    missing = len(before - after)
    return Fault(origin=ready, values={"flows_missing": missing}, detail={"before": len(before)})


def wiped_redis_down(stage: Stage) -> Fault:
    """Nothing speaks unasked and nothing is remembered anywhere: the next check has to come, from
    the client or from the transceiver. Counted from when the program is attached again."""
    stage.redis.kill()
    stage.services.kill_relay(wipe=True)
    attached, _ = _started_anew(stage)
    time.sleep(max(CHECK_INTERVAL_MS.values()) / 1e3)
    stage.redis.start()
    return Fault(origin=attached)


def _started_anew(stage: Stage) -> tuple[float, float]:
    """Start the relay; when its program was attached, and when it was ready."""
    with ThreadPoolExecutor(1) as pool:
        attached = pool.submit(stage.attached)
        stage.services.start_relay()
    ready = stage.note("ready")
    stage.moments["attached"] = attached.result()
    return attached.result(), ready
