"""The flow table is full of flows that are in use: they go on, newcomers are refused and counted,
and get in when others have gone."""

import json
import time
from collections.abc import Sequence
from functools import partial

from relayctl.reason import Reason
from relayctl.wire.address import render
from tests.figures.measurement import Findings, Measurement, expect
from tests.report import Target
from tests.siege.newcomers import Echo, Newcomers
from tests.siege.stage import Stage, lost, stage, talk

CAPACITY = 64
LATE = 10  # newcomers to the full table
TARGETS = (
    Target("full_table_let_in", "=", 0, "newcomers"),
    Target("full_table_refusals_shown", "=", True),
    Target("full_table_lost", "=", 0, "packets"),
    Target("full_table_let_in_later", "=", LATE, "newcomers"),
)

_SILENT_S = 15.0  # a flow is over 10 s after its endpoint's last packet, at the next sweep
_ROUND_S = 2.0


def measurements(quick: bool) -> list[Measurement]:
    return [Measurement("full_table", TARGETS, partial(measure, LATE, fall_silent=not quick))]


def measure(late_ones: int, *, fall_silent: bool) -> Findings:
    """`fall_silent`: flows end because nobody talks; else an operator deletes them."""
    with stage(max_flows=CAPACITY) as scene, scene.calls(1) as lean:
        key, site = scene.services.setup.key, scene.site
        echo = Echo(site.transceiver, site.endpoint[0])
        with (
            echo,
            Newcomers(site, key, echo.address, CAPACITY - 1) as old,
            Newcomers(site, key, echo.address, late_ones) as late,
        ):
            expect(len(old.connect()) == CAPACITY - 1, "the table does not take what it should")
            expect(all(old.talk()), "a flow of the full table does not work")
            let_in = late.connect()
            time.sleep(1.0)
            leaving, staying = range(late_ones), range(late_ones, CAPACITY - 1)
            unheard = old.talk(staying).count(False)
            shown = _shown(scene)
            unheard += old.talk(staying).count(False)
            if fall_silent:
                unheard += _keep_talking(old, staying)
            else:
                unheard += _delete(scene, old, leaving, staying)
            let_in_later = late.connect()
            unheard += old.talk(staying).count(False)
        harm = lost(lean)
        heard = talk(lean)
    return Findings(
        {
            "full_table_let_in": len(let_in),
            "full_table_refusals_shown": shown >= late_ones,
            "full_table_lost": unheard + sum(harm.values()),
            "full_table_let_in_later": len(let_in_later),
        },
        {"capacity": CAPACITY, "refusals": shown, "lost": harm, "unheard": unheard, "talk": heard},
    )


def _shown(scene: Stage) -> int:
    """Refusals that the operator's tool shows."""
    records = json.loads(scene.services.relayctl("stats", "-o", "json").stdout)
    counts = {record["reason"]: record["count"] for record in records}
    return int(counts.get(Reason.SLOW_TABLE_FULL.label, 0))


def _keep_talking(some: Newcomers, chosen: Sequence[int]) -> int:
    """The others fall silent meanwhile; how many packets did not come back."""
    deadline, unheard = time.monotonic() + _SILENT_S, 0
    while time.monotonic() < deadline:
        unheard += some.talk(chosen).count(False)
        time.sleep(_ROUND_S)
    return unheard


def _delete(scene: Stage, some: Newcomers, chosen: Sequence[int], others: Sequence[int]) -> int:
    """The others talk between the commands, which on a busy machine together take longer than a
    flow may be silent; how many packets did not come back."""
    unheard = 0
    for number in chosen:
        client = render(some.addresses[number])
        scene.services.relayctl("flows", "delete", client, check=False)  # it may be over by now
        unheard += some.talk(others).count(False)
    return unheard
