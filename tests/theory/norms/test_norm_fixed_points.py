"""Fixed points of norm emergence, against linearisations written out by hand and the ends of solutions."""

from __future__ import annotations

from itertools import product, takewhile

import numpy as np
import pytest
import xarray as xr
from scipy.optimize import bisect

import meanfield
from _norm_societies import emergence, ordinary, random_table
from _paths import ROOT
from meanfield import solve
from theory import norms
from theory.norms import AGENTS, NormAgent, NormRates, default_operations
from theory.norms._states import starting_fractions

SIDES = ("for", "against")
MIXED = {("ordinary", "for"): 0.3, ("ordinary", "against"): 0.7}
NO_SYNTHESIS = NormRates(syntheses_per_day=0)


def fixed_points(behaviour: str, operations=None, agents=AGENTS, fractions=None, rates=None, **search) -> xr.Dataset:
    """Fixed points of the model with these agents, and the norm that holds there."""
    model = norms.reaction_model(default_operations() if operations is None else operations, behaviour, rates)
    start = norms.initial_composition(behaviour if fractions is None else fractions, agents)
    points = meanfield.fixed_points(model, initial=start, **search)
    points = points.merge(norms.observables(model, points["composition"]))
    reached, total = points["reached"], points["reached"].sum("standard")
    held = [reached.sel(standard=side) >= 0.95 for side in SIDES]
    cases = [*held, total <= 0.05, reached.min("standard") > 0.05]
    regime = np.select([case.values for case in cases], [*SIDES, "no norm", "coexistence"], "partial")
    return points.assign(regime=("fixed_point", regime))


class Chance:
    """Named probabilities of ordinary agents about one kind of norm."""

    def __init__(self, operations: xr.Dataset, kind: str) -> None:
        self.table, self.kind = operations, kind

    def __call__(self, name: str, **labels: str) -> float:
        known = {"kind": self.kind, "type": "ordinary", **labels}
        values = self.table[name]
        return float(values.sel({dim: known[str(dim)] for dim in values.dims}))

    def passes(self, likes: str, standard: str, held: str) -> float:
        willing = "willing" if likes == standard else "unwilling"
        steps = self("consistent") * self("unique", held=held) * self("correct_type")
        return steps * self("conflict_free", willing=willing, held=held)

    def talks(self, likes: str, standard: str) -> float:
        return self("decide_to_talk", willing="willing" if likes == standard else "unwilling")

    def plans(self, likes: str, standard: str) -> float:
        return self("comply_in_plan", willing="willing" if likes == standard else "unwilling")

    def acts(self, likes: str, standard: str) -> float:
        return self("comply_in_action", willing="willing" if likes == standard else "unwilling")


def growth_from_nothing(p: Chance, standard: str, shares: dict[str, float], rates: NormRates) -> np.ndarray:
    """d/dt of few holders, (preference, qualified or complying), among agents without norms who follow their habits."""
    cells = list(product(SIDES, ("qualified", "complying")))
    M = np.zeros((4, 4))
    for (n, (likes, level)), (m, (learner, reached)) in product(enumerate(cells), enumerate(cells)):
        if reached == "qualified":
            conflict = p("false_conflict") if learner == standard else p("detect_conflict")
            talk = conflict * p.talks(likes, standard) * p("identify_chat", reminded="first")
            seen = p("generate_thought", held="none") * p.acts(likes, standard) * p("identify_thought")
            taught = talk + (seen if level == "complying" else 0)
            M[m, n] = rates.encounters_per_day * shares[learner] * taught * p.passes(learner, standard, "none")
    for likes in SIDES:
        planned = rates.plans_per_day * p.plans(likes, standard)
        M[cells.index((likes, "complying")), cells.index((likes, "qualified"))] += planned
        M[cells.index((likes, "qualified")), cells.index((likes, "qualified"))] -= planned
    return M


def test_no_norm_grows_as_the_linearisation_says() -> None:
    operations = random_table(1, identify_habit=0.0)
    p = Chance(operations, "injunctive")
    model = norms.reaction_model(operations, "smoking", NO_SYNTHESIS)
    jacobian = model.jacobian(norms.initial_composition(MIXED).values)
    for side in SIDES:
        held = [f"ordinary/{likes}/{level}/{side}" for likes, level in product(SIDES, ("qualified", "complying"))]
        places = [model.index(state) for state in held]
        shares = {likes: MIXED["ordinary", likes] for likes in SIDES}
        grows = growth_from_nothing(p, side, shares, NO_SYNTHESIS)
        np.testing.assert_allclose(jacobian[np.ix_(places, places)], grows, atol=1e-12)
    alike = {("ordinary", "for"): 1.0}
    points = fixed_points("smoking", operations, fractions=alike, rates=NO_SYNTHESIS, starts=2)
    nobody = points.sel(fixed_point=(points["regime"] == "no norm") & (points["informed"].sum("standard") == 0))
    assert nobody.sizes["fixed_point"] == 1
    spectra = [
        np.linalg.eigvals(growth_from_nothing(p, side, {"for": 1, "against": 0}, NO_SYNTHESIS)) for side in SIDES
    ]
    assert float(nobody["eigenvalue"].item()) == pytest.approx(np.max(np.real(spectra)), rel=1e-6)
    # Agents who only know of a norm tell nobody, so any share of them stands still; and few holders of an abstract norm
    # do not leave it, which makes two more directions in which the linearised drift vanishes
    assert bool(nobody["continuum"].item()) and nobody["zero_modes"].item() == 4
    assert nobody["stability"].item() == "unstable"


def end_of_compliance(
    operations: xr.Dataset, behaviour: str, side: str, rates: NormRates | None = None
) -> xr.DataArray:
    """The composition to which everybody's compliance with one standard leads."""
    start = xr.zeros_like(norms.initial_composition(behaviour))
    for (kind, likes), fraction in starting_fractions(behaviour).items():
        start.loc[f"{kind}/{likes}/complying/{side}"] = fraction
    model = norms.reaction_model(operations, behaviour, rates)
    return solve(model, initial=start, times=[400.0])["composition"].isel(time=0, drop=True)


def assert_in_the_document(points: xr.Dataset, label: str) -> None:
    """The row with this label and those below it without one."""
    lines = iter((ROOT / "docs" / "results" / "norms.md").read_text().splitlines())
    rows = [next(line for line in lines if line.startswith(f"| {label} | ")).removeprefix(f"| {label} ")]
    rows += [line.removeprefix("| ") for line in takewhile(lambda line: line.startswith("| | "), lines)]
    expected = {
        f"| {one['regime'].item()} | {one['reached'].item():.3f} | {one['eigenvalue'].item():.3f} |"
        for _, one in points.sel(standard="for").groupby("fixed_point", squeeze=False)
    }
    assert len(rows) == points.sizes["fixed_point"] and set(rows) == expected


@pytest.mark.slow
@pytest.mark.parametrize(
    ("label", "behaviour", "agents"),
    [("no smoking", "smoking", AGENTS), ("tipping, nobody an entrepreneur", "tipping", ordinary(AGENTS))],
)
def test_the_document_has_the_fixed_points(label: str, behaviour: str, agents: tuple[NormAgent, ...]) -> None:
    assert_in_the_document(fixed_points(behaviour, agents=agents, starts=4), label)


@pytest.mark.slow
def test_quiet_has_a_stable_opposite_where_plans_are_slow() -> None:
    """Hardly anybody holds the norm there. Not where agents plan twice as often."""
    points = fixed_points("noise", starts=4)
    assert_in_the_document(points, "quiet")
    opposite = points.sel(fixed_point=points["stable"] & (points["reached"].sel(standard="for", drop=True) < 0.1))
    assert opposite.sizes["fixed_point"] == 1
    assert 0.4 < opposite["complying"].sum("standard").item() < 0.6
    operations = default_operations()
    for rates, holds in ((NormRates(), False), (NormRates(plans_per_day=2.2), True)):
        end = end_of_compliance(operations, "noise", "against", rates)
        reached = norms.observables(norms.reaction_model(operations, "noise", rates), end)["reached"]
        assert (reached.sel(standard="for").item() > 0.95) == holds


@pytest.mark.slow
def test_solutions_end_in_stable_fixed_points() -> None:
    points = fixed_points("tipping", starts=4)
    stable = points.sel(fixed_point=points["stable"])
    model = norms.reaction_model(default_operations(), "tipping")
    start = norms.initial_composition("tipping")
    end = solve(model, initial=start, times=[300.0])["composition"].isel(time=0)
    distance = abs(stable["composition"] - end.drop_vars("time")).max("state")
    assert float(distance.min()) < 1e-6
    nearest = stable.isel(fixed_point=int(distance.values.argmin()))
    assert nearest["regime"] == "for"
    assert_in_the_document(points, "tipping")


@pytest.mark.slow
def test_thresholds_are_those_of_the_document() -> None:
    """Beside one opponent in ten, one entrepreneur in ten is too few and two are enough, as in [003]."""

    def beyond(leading: float, opposing: float, day: float) -> float:
        """Ordinary agents as in [003]: of seven, three are for tips."""
        rest = 1 - leading - opposing
        start = {("entrepreneur", "for"): leading, ("entrepreneur", "against"): opposing}
        start |= {("ordinary", "for"): rest * 3 / 7, ("ordinary", "against"): rest * 4 / 7}
        curves = emergence(["tipping"], start=start, times=np.array([0.0, day]))
        return float(curves["reached"].sel(standard="for").isel(behaviour=0, time=1)) - 0.5

    document = (ROOT / "docs" / "results" / "norms.md").read_text()
    for opposing, text in ((0.0, "more than {:.2f} % of them work for it"), (0.1, "against 10 % it takes {:.1f} %")):
        assert text.format(100 * bisect(beyond, 0, 0.5, (opposing, 2.0), xtol=1e-5)) in document
    assert 0.1 < bisect(beyond, 0, 0.5, (0.1, 60.0), xtol=1e-5) < 0.12
