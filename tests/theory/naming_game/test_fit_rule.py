"""Rules are recovered from policies and from counts, and what is no rule is told."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from scipy.stats import binom

import meanfield
from _policies import random_policy
from theory.naming_game import fit_rule, rule_policy, summary
from theory.naming_game._rules import RULES

pytestmark = pytest.mark.usefixtures("unchecked_types")
WORDS = ["A", "B"]
RANGES = {
    "empty": (-1, 1),
    "bias": (-0.8, 0.8),
    "strength": (1.0, 2.0),
    "recency": (0.4, 0.7),
    "inverse_temperature": (1.0, 2.5),
    "stay": (0.8, 2.0),
    "shift": (0.8, 2.0),
    "sharpness": (2.0, 4.0),
    "threshold": (0.6, 0.9),
    "exponent": (1.5, 3.0),
    "prior": (0.5, 1.5),
    "own": (0.7, 1.4),
    "heard": (1.5, 2.2),
}


def drawn(rule: str, random: np.random.Generator) -> dict[str, float]:
    return {name: random.uniform(*RANGES[name]) for name in RULES[rule].parameters}


def counted(policy: xr.Dataset, choices: int, seed: int) -> xr.DataArray:
    """So many choices in each memory."""
    first = np.random.default_rng(seed).binomial(choices, policy["q"].sel(word="A").values)
    return policy["q"].copy(data=np.stack([first, choices - first], -1))


@pytest.mark.parametrize("rule", RULES)
def test_a_policy_that_is_a_rule_is_recovered(rule):
    parameters = drawn(rule, np.random.default_rng(1))
    policy = rule_policy(rule, parameters, WORDS, memory_length=2)
    fit = fit_rule(policy, collective=False)
    found = fit.sel(rule=rule)
    assert found["divergence"] < 1e-14
    assert fit["best"] == rule
    np.testing.assert_allclose(found["q"], policy["q"].sel(word="A"), atol=1e-8)
    for name, value in parameters.items():
        np.testing.assert_allclose(found["estimate"].sel(parameter=name), value, atol=1e-5)
    likelier = np.maximum(found["q"], 1 - found["q"])
    np.testing.assert_allclose(found["accuracy"], (found["weight"] * likelier).sum(), rtol=1e-8)
    assert found["accuracy"] == fit["accuracy"].max() or rule == "constant"
    assert (summary(fit.sel(rule=[rule]))["status"] == "determined").all()
    assert np.isnan(found["explained"]) if rule == "constant" else found["explained"] > 1 - 1e-12


def test_populations_that_play_the_fitted_rule_are_those_of_the_policy():
    parameters = {"empty": 0.1, "bias": 0.05, "own": 3.4, "heard": 3.4, "recency": 0.7}
    fit = fit_rule(rule_policy("counts", parameters, WORDS, memory_length=2), rule=["counts", "imitation"])
    same, other = fit.sel(rule="counts"), fit.sel(rule="imitation")
    for name in ("kappa", "critical_mass"):
        assert 0 < fit[f"table_{name}"] < 1
        np.testing.assert_allclose(same[name], fit[f"table_{name}"], rtol=1e-6)
    assert same["strong_word"] == fit["table_strong_word"] == "A"
    assert same["conventions"] == fit["table_conventions"] == "A; B"
    assert same["reason"] == ""
    # The control: imitation has no second convention, so nothing to flip
    assert ";" not in other["conventions"].item() and np.isnan(other["critical_mass"])
    assert "critical mass: " in other["reason"].item()


def test_intervals_cover_and_the_true_rule_wins():
    """Over all rules with random parameters; seeded, and by chance it fails with probability 1e-4.

    The control are intervals of a third of the width, which cover half of the parameters.
    """
    random, wins, covered, narrow = np.random.default_rng(7), 0, [], []
    names = [name for name in RULES for _ in range(2)]
    for seed, rule in enumerate(names):
        parameters = drawn(rule, random)
        counts = counted(rule_policy(rule, parameters, WORDS, memory_length=2), 300, seed)
        fit = fit_rule(counts, collective=False)
        wins += fit["best"].item() == rule
        found = fit.sel(rule=rule, parameter=list(parameters))
        values, ends = np.array(list(parameters.values())), found["interval"].values
        covered += list((ends[:, 0] < values) & (values < ends[:, 1]))
        narrow += list(np.abs(values - found["estimate"].values) < np.diff(ends)[:, 0] / 6)
    low, high = binom.ppf([5e-5, 1 - 5e-5], len(covered), 0.95)
    assert sum(narrow) < low <= sum(covered) <= high
    assert wins >= 0.8 * len(names)


def test_what_is_no_rule_is_not_explained():
    """The parity of the first words heard, beside a rule with as much information."""

    def parity(memory):
        return 0.5 if not memory else 0.9 if sum(pair.count("A") for pair in memory) % 2 else 0.1

    fit = fit_rule(meanfield.make_policy(parity, WORDS, memory_length=2), weights="uniform", collective=False)
    rule = rule_policy("imitation", {"empty": 0, "bias": 0, "strength": 2.0}, WORDS, memory_length=2)
    assert fit["explained"].max() < 0.3
    assert fit_rule(rule, weights="uniform", collective=False)["explained"].sel(rule="imitation") > 0.99
    lost = fit.sel(rule="counts")
    assert lost["missed_memory"].values[0].count("/") in (1, 2, 3)
    assert (np.diff(lost["missed_share"]) <= 0).all()
    wide = np.abs(lost["missed_q"] - lost["missed_rule_q"])
    assert (wide > 0.4).all()


@pytest.mark.parametrize("seed", range(3))
def test_larger_rules_fit_no_worse(seed):
    lost = fit_rule(random_policy(seed, memory_length=2), weights="uniform", collective=False)["divergence"].to_series()
    for larger, smaller in (
        *(("imitation", "constant"), ("majority", "imitation"), ("counts", "majority")),
        *(("win_stay_lose_shift", "imitation"), ("counts", "win_stay_lose_shift"), ("primacy", "constant")),
        *(("best_response", "constant"), ("threshold", "best_response"), ("luce", "constant")),
    ):
        assert lost[larger] <= lost[smaller] + 1e-6  # some limits are reached at infinity only


def test_a_rule_is_what_its_formula_says():
    parameters = {"empty": 0.3, "bias": 0.2, "own": 0.5, "heard": 1.1, "recency": 0.6}
    policy = rule_policy("counts", parameters, WORDS, memory_length=2)
    q = policy["q"].sel(word="A", state=meanfield.MemorySpace(2, 2).state([(0, 1), (1, 1)])).item()
    assert np.log(q / (1 - q)) == pytest.approx(0.2 + (-0.5 - 1.1 + 0.6 * (0.5 - 1.1)) / 1.6)
    primacy = rule_policy("primacy", {"empty": 0, "bias": 0.2, "own": 0.5, "heard": 1.1}, WORDS, memory_length=2)
    for memory in ([(0, 1)], [(0, 1), (1, 1)]):
        q = primacy["q"].sel(word="A", state=meanfield.MemorySpace(2, 2).state(memory)).item()
        assert np.log(q / (1 - q)) == pytest.approx(0.2 + 0.5 - 1.1)
    luce = rule_policy("luce", {"empty": 0, "bias": 0.4, "exponent": 2, "prior": 0.7}, WORDS, memory_length=2)
    q = luce["q"].sel(word="A", state=meanfield.MemorySpace(2, 2).state([(0, 0), (1, 0)])).item()
    assert q / (1 - q) == pytest.approx((4 + 0.7 * np.exp(0.2)) / (0.7 * np.exp(-0.2)))
    steep = rule_policy("luce", {"empty": 0, "bias": 0, "exponent": 2000, "prior": 1}, WORDS, memory_length=4)
    heard = [[(0, 0)] * 4, [(0, 0), (0, 0), (0, 1), (0, 1)], [(0, 0), (0, 1), (0, 1), (0, 1)]]
    states = [meanfield.MemorySpace(2, 4).state(memory) for memory in heard]
    np.testing.assert_array_equal(steep["q"].sel(word="A", state=states), [1, 0.5, 0])


def test_memories_count_by_how_many_agents_have_them():
    """Without influence of memories the fraction with an empty one falls as exp(-t), and the rest is a product."""
    policy = meanfield.make_policy(np.full(21, 0.7), WORDS)
    weight = fit_rule(policy, collective=False)["weight"].values
    assert weight.sum() == pytest.approx(1)
    assert weight[0] == pytest.approx(0.5 * np.exp(-np.arange(61.0)).mean(), rel=1e-6)
    assert weight[5] / weight[20] == pytest.approx((0.7 / 0.3) ** 4, rel=1e-6)
    uniform = fit_rule(policy, weights="uniform", collective=False)
    np.testing.assert_allclose(uniform["weight"], 1 / 21)
    given = xr.DataArray(np.arange(21.0)[::-1], dims="state", coords={"state": np.arange(21)[::-1]})
    np.testing.assert_allclose(fit_rule(policy, weights=given, collective=False)["weight"], np.arange(21) / 210)


def test_what_agents_without_influence_cannot_tell_is_not_determined():
    policy = meanfield.make_policy(np.full(21, 0.7), WORDS)
    for data in (policy, counted(policy, 50, 1)):
        table = summary(fit_rule(data, rule=["majority", "threshold"], collective=False))
        assert table.loc[("threshold", "threshold"), "status"] == "not determined"
        assert table.loc[("majority", "bias"), "status"] == "determined"
        assert table["low"].isna().all() == (data is policy)


def test_runs_are_held_out_as_a_whole():
    policy = rule_policy("imitation", {"empty": 0, "bias": 0.2, "strength": 1.0}, WORDS, memory_length=2)
    runs = xr.concat([counted(policy, 30, seed) for seed in range(12)], "run")
    fit, pooled = (fit_rule(data, collective=False) for data in (runs, runs.sum("run")))
    xr.testing.assert_allclose(fit["estimate"], pooled["estimate"])
    xr.testing.assert_allclose(fit["log_likelihood"], pooled["log_likelihood"])
    assert not np.allclose(fit["held_out_log_likelihood"], pooled["held_out_log_likelihood"])
    assert fit["best"] == "imitation"
    # A rule's score of runs that it has not seen, by hand
    logit = np.log(policy["q"].values)
    true = (runs.values * logit).sum() / runs.values.sum()
    assert fit["held_out_log_likelihood"].sel(rule="imitation") == pytest.approx(true, abs=0.01)


def test_runs_without_choices_are_in_no_fold():
    counts = np.zeros((12, 21, 2))
    counts[:5] = np.arange(5, 10)[:, None, None]
    data = xr.DataArray(counts, dims=("run", "state", "word"))
    known = fit_rule(data[:5], rule="imitation", collective=False)
    for seed in range(6):  # of folds of all runs most would have one that is empty
        fit = fit_rule(data, seed=seed, rule="imitation", collective=False)
        np.testing.assert_allclose(fit["held_out_log_likelihood"], known["held_out_log_likelihood"])
        assert np.isfinite(fit["held_out_loss_error"]).all()


def test_the_best_of_equally_small_rules_is_the_one_of_the_least_loss():
    firsts = 0
    for seed in range(4):
        policy = rule_policy("majority", drawn("majority", np.random.default_rng(seed)), WORDS, memory_length=2)
        fit = fit_rule(counted(policy, 20, seed), collective=False)
        rules = fit[["n_parameters", "held_out_loss", "held_out_loss_error"]].to_dataframe()
        near = rules[rules["held_out_loss"] <= rules["held_out_loss_error"]]
        least = near[near["n_parameters"] == near["n_parameters"].min()]["held_out_loss"]
        assert fit["best"] == least.idxmin()
        firsts += least.idxmin() == least.index[0]
    assert firsts < 4  # the control: the first of them is another one


def test_labels_count_and_stacks_are_fitted_one_by_one():
    policies = [random_policy(seed, memory_length=2).assign_coords(model=f"m{seed}") for seed in (1, 2)]
    stack = xr.concat(policies, "model")
    both = fit_rule(
        stack.isel(word=[1, 0], state=slice(None, None, -1)), rule="counts", collective=False, progress=True
    )
    assert both["estimate"].sizes["model"] == 2
    for policy in policies:
        alone = fit_rule(policy, rule="counts", collective=False)
        one = both.sel(model=policy["model"].item())
        for name in ("estimate", "weight", "missed_memory", "best", "identified", "held_out_loss"):
            plain = [result[name].drop_vars(["model", "pair"]) for result in (one, alone)]
            xr.testing.assert_identical(*plain)
            assert plain[0].dtype.kind == plain[1].dtype.kind
    assert summary(both).index.names == ["model", "rule", "parameter"]


def test_wrong_input_is_refused_in_one_message():
    policy = random_policy(1)
    with pytest.raises(meanfield.InputError) as told:
        fit_rule(policy, rule=["majority", "vote"], weights="seen", folds=1, level=2.0)
    assert str(told.value).count("; ") == 3
    for part in ("rule = 'vote': expected one of constant", "weights = 'seen'", "folds = 1", "level = 2"):
        assert part in str(told.value)


COUNTS = counted(meanfield.make_policy(np.full(5, 0.5), WORDS), 5, 1)
POLICY = random_policy(1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"data": COUNTS.isel(word=0)}, "dims state"),
        ({"data": COUNTS + 0.5}, "whole numbers"),
        ({"data": COUNTS.where(COUNTS["state"] == 0, 0)}, "fewer than 2 memories"),
        ({"data": COUNTS.expand_dims("run")}, "fewer than 2 runs"),
        ({"data": random_policy(1, 3, 1)}, "3 words"),
        ({"data": np.ones(5)}, "expected a Dataset"),
        ({"data": COUNTS, "weights": "uniform"}, "expected with a policy only"),
        ({"data": POLICY, "weights": np.ones(21)}, "one for each of 5 memories"),
        ({"data": POLICY, "weights": np.zeros(5)}, "above 0 for 2 that are not empty"),
        ({"data": POLICY, "weights": np.eye(5)[1]}, "above 0 for 2 that are not empty"),
        ({"data": meanfield.make_policy(np.ones(5), WORDS)}, "weights = 'visited': agents have fewer than 2 memories"),
        ({"data": POLICY, "rule": [], "folds": 1}, r"rule = \[\]: expected names of rules; folds = 1"),
    ],
)
def test_wrong_input_is_named(arguments, message):
    with pytest.raises(meanfield.InputError, match=message):
        fit_rule(**arguments)


def test_wrong_input_of_other_functions_is_named():
    with pytest.raises(meanfield.InputError, match="a mapping of empty, bias, strength to numbers"):
        rule_policy("imitation", {"strength": 1.0}, WORDS, memory_length=1)
    with pytest.raises(meanfield.InputError, match=r"expected the result of theory\.naming_game\.fit_rule"):
        summary(POLICY)
