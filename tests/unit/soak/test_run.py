from tests.soak import run


def test_every_series_has_a_target_and_a_plot() -> None:
    named = {target.name for target in run.TARGETS}
    assert {f"{name}_flat" for name in run.BOUNDS} <= named
    assert {name for _, _, names in run.PLOTS.values() for name in names} == set(run.BOUNDS)


def test_plots_have_a_line_for_each_series() -> None:
    series = {name: [(5.0 * n, 10.0) for n in range(20)] for name in run.BOUNDS}
    found = run.plots(series)
    assert set(found) == set(run.PLOTS)
    assert found["memory"].count("<polyline") == 3


def test_plots_do_without_a_series() -> None:
    assert run.plots({}) == {}
