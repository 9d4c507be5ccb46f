"""Runs predicted from other runs: blind tests of a true policy reject as rarely as they say, of a wrong one they do."""

from __future__ import annotations

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, kstest

import meanfield
from _real_populations import WORDS, N, joined, ordered_populations, real_log, truth
from meanfield import InputError, MemorySpace
from meanfield.datasets import RealPopulations, from_events
from validation.populations import choice_scores, cross_validate, report
from validation.populations._choice_scores import LAWS
from validation.populations._choices import Choices
from validation.populations._conditions import conditions, read_runs, with_lengths
from validation.populations._experiment import Experiment

QUICK = {"draws": 5, "runs": 60}


@pytest.fixture(scope="module")
def real():
    return ordered_populations()


@pytest.fixture(scope="module")
def blind(real):
    return cross_validate(real, **QUICK)


@pytest.fixture(scope="module")
def scores(real):
    return choice_scores(real)


def test_true_policy_is_not_rejected_and_a_line_says_so(real, blind):
    assert set(blind["fold"]) == {"1 of 2", "2 of 2"}
    tested = blind[blind["quantity"].isin(["majority word", "flips"]) & (blind["n_committed"] < 0)]
    assert tested["runs"].sum() == len(real.runs)
    assert not (blind["verdict"] == "disagrees").any()
    assert blind.groupby("fold")["known_choices"].first().sum() == real.choice_counts["count"].sum()
    assert blind["unfamiliar"].between(0, 0.2).all() and "hardly known" not in report(blind)[0]
    last = report(blind)[-1]
    assert last.startswith("summary: 2 agrees, 0 disagrees, 0 too few data, of 2 combinations")
    assert "0 of 8 single tests disagree, up to 0.08 by chance" in last


def test_choices_with_memories_that_other_runs_hardly_have_are_told():
    """In one run agents say A only, in the other B only: no memory of one is known from the other but the empty one."""
    rows = [
        (run, step, *(("a", "b") if step % 2 else ("c", "d")), *(2 * "AB"[run])) for run in (0, 1) for step in range(20)
    ]
    table = cross_validate(real_log(rows, 1), **QUICK)
    np.testing.assert_array_equal(table["unfamiliar"], 1.0)  # four choices with empty memories are few, too
    assert "100 % of the choices with memories hardly known" in report(table)[0]


def test_tests_of_too_few_data_are_not_counted_among_the_decided(blind):
    table = blind.copy()
    table.loc[[0, 1], "verdict"] = "disagrees", "too few data"
    left = (table["n_committed"] < 0).sum() - 1
    last = report(table)[-1]
    assert f"1 of {left} single tests disagree, up to {0.01 * left:.2g} by chance; 1 more have too few data" in last
    # Single tests that disagree may be too many for Holm's correction; none of them agrees either.
    table["verdict"], table["p_value"] = "disagrees", 0.009
    assert report(table)[-1].startswith("summary: 0 agrees, 0 disagrees, 2 too few data, of 2 combinations")


def test_experiments_of_another_policy_are_told_from_those_that_foretell_them(real):
    """Control: agents with committed ones are those of another policy."""
    other = ordered_populations(seed=4, q=truth(0.3, -1.0))
    mixed = [real.runs["experiment"] == "from_empty", other.runs["experiment"] == "committed"]
    parts = [
        part._replace(runs=part.runs[kept], events=part.events[part.events["run"].isin(part.runs["run"][kept])])
        for part, kept in zip((real, other), mixed, strict=True)
    ]
    table = cross_validate(joined(*parts, apart=1000), by="experiment", **QUICK)
    assert set(table["fold"]) == {"from empty, N = 12", "committed A to B, N = 12"}
    assert {"disagrees"} <= set(table.loc[table["experiment"] == "committed", "verdict"])
    same = cross_validate(real, by="experiment", **QUICK)
    assert not (same["verdict"] == "disagrees").any()


def test_each_run_has_the_rule_that_its_end_shows(real):
    """Half of the runs stopped after 3N successes in a row, half after 30."""
    short = ordered_populations(seed=2, committed=())
    ends = []
    for rows in [rows for _, rows in short.events.groupby("run")]:
        success = (rows["said"].astype(str) == rows["heard"].astype(str)).astype(int)
        first = np.flatnonzero(success.rolling(30).sum() == 30)[0]
        ends.append(rows.iloc[: first + 1])
    cut = from_events(pd.concat(ends), memory_length=2, words=WORDS, n_agents=N)
    runs = read_runs(joined(ordered_populations(committed=()), cut, apart=1000).runs)
    (condition,) = conditions(with_lengths(runs), None, runs.index)
    assert condition.runs["rule"].map(lambda rule: rule.window).tolist() == [36] * 20 + [30] * 20
    assert condition.runs["stopped"].all()
    late = runs.assign(agreed_at_end=[7, *runs["agreed_at_end"][1:]], agreed_at_most=[40, *runs["agreed_at_most"][1:]])
    (condition,) = conditions(with_lengths(late), None, late.index)
    assert condition.runs["rule"].iloc[0].text == "never"
    assert not condition.runs["stopped"].iloc[0]


@pytest.mark.parametrize(("n_runs", "seed"), [(10, 0), (30, 1)])
def test_runs_of_a_fixed_length_have_no_rule(n_runs, seed):
    """They end when they end, long after all agreed, so that some streaks are equal by chance."""
    random = np.random.default_rng(seed)
    rows = []
    for run in range(n_runs):
        agreed = random.integers(20, 60)
        for step in range(200):
            pair = random.choice(10, 2, replace=False)
            words = random.choice(["A", "B"], 2) if step < agreed or random.random() < 2e-3 else ["A", "A"]
            rows.append((run, step, *map(int, pair), *map(str, words)))
    runs = read_runs(real_log(rows, words=WORDS).runs)
    (condition,) = conditions(with_lengths(runs), None, runs.index)
    assert not condition.runs["stopped"].any()
    assert {rule.text for rule in condition.runs["rule"]} == {"never"}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda r: {"runs": pd.concat([r.runs, r.runs.assign(model="b")])}, "run: a number occurs twice in runs"),
        (lambda r: {"events": r.events[r.events["run"] < 3]}, "run = 3 has no events"),
        (
            lambda r: {"runs": r.runs.assign(committed_agents="")},
            "committed_agents = '': expected n_committed = 1 numb",
        ),
        (lambda r: {"events": None}, "populations has no events: expected runs in order, as in"),
    ],
)
def test_tables_that_do_not_fit_are_refused(real, change, told):
    with pytest.raises(InputError, match=told):
        choice_scores(real._replace(**change(real)))


def test_runs_out_of_a_file_are_the_same(real, scores, tmp_path):
    real.runs.to_csv(tmp_path / "runs.csv", index=False)
    again = real._replace(runs=pd.read_csv(tmp_path / "runs.csv"))
    pd.testing.assert_frame_equal(choice_scores(again), scores)


def known_choices(q=None, runs=30, seed=1) -> Choices:
    (one,) = Experiment.all_of(ordered_populations(seed, q, runs, committed=()))
    return one.choices


def test_laws_are_those_that_a_person_would_write():
    choices = known_choices(runs=4)
    share = (np.bincount(choices.chosen) + 0.5) / (len(choices.chosen) + 1)
    assert LAWS["constant frequencies"](choices)(choices) == pytest.approx(np.log(share[choices.chosen]))
    states = choices.states()
    policy = LAWS["policy"](choices)
    same = [policy(choices)[(states == s) & (choices.chosen == w)] for s in np.unique(states) for w in (0, 1)]
    assert max(np.ptp(one) for one in same if len(one)) == 0
    for law, certain in (("majority", by_majority), ("minimal naming game", by_inventory)):
        plain = np.array(list(certain(choices)))
        chances = np.exp(LAWS[law](choices)(choices))
        # p = (1 - ε) plain + ε/2 for one ε
        error = np.linalg.lstsq((0.5 - plain)[:, None], chances - plain, rcond=None)[0].item()
        assert 0 < error < 1
        assert chances == pytest.approx((1 - error) * plain + error / 2)


def by_majority(choices):
    for memory, chosen in zip(choices.memory.tolist(), choices.chosen, strict=True):
        said = [word for pair in memory for word in pair if word >= 0]
        most = [w for w in (0, 1) if said.count(w) == max(said.count(0), said.count(1))]
        yield (chosen in most) / len(most)


def by_inventory(choices):
    inventories = {}
    for agent, memory, chosen in zip(choices.agent, choices.memory.tolist(), choices.chosen, strict=True):
        own, partner = memory[-1]
        held = inventories.get(agent, set())
        if own >= 0:
            held = {own} if own == partner else held | {own, partner}
        inventories[agent] = held
        yield (chosen in held) / len(held) if held else 0.5


def test_scores_tell_what_the_agents_go_by(scores):
    table = scores.set_index("law")
    laws = ["policy", "constant frequencies", "last interaction", "minimal naming game", "majority"]
    assert table.index.tolist() == laws
    assert (table["gain_low"].drop("policy") > 0).all(), "these agents go by the lead in two interactions"
    assert ((table["low"] < table["log_likelihood"]) & (table["log_likelihood"] < table["high"])).all()
    space = MemorySpace(2, 2)
    last = [space.memory(i)[-1] if space.memory(i) else (0, 1) for i in range(space.n_states)]
    first = 1 / (1 + np.exp(-2.0 * (1 - np.array([a + b for a, b in last]))))
    forgetful = choice_scores(ordered_populations(q=np.stack([first, 1 - first], axis=1), committed=()))
    gain = forgetful.set_index("law").loc["last interaction"]
    assert gain["gain_low"] < 0.002
    assert abs(gain["gain"]) < 0.01


def test_scores_are_drawn_a_row_a_policy(scores):
    table = pd.concat([scores, scores.assign(model="llama3", pair="a/b/c/d")], ignore_index=True)
    table.attrs = scores.attrs
    axes = meanfield.plot(table)
    assert [label.get_text() for label in axes.get_yticklabels()] == ["model {A, B}, H = 2", "Llama 3 70B W = 4, H = 2"]
    drawn = {line.get_label(): line.get_xdata().tolist() for line in axes.lines}
    assert drawn == {law: 2 * [value] for law, value in zip(scores["law"], scores["log_likelihood"], strict=True)}
    assert len({line.get_ydata()[0] for line in axes.lines}) == len(scores), "laws of a policy do not hide each other"
    plt.close("all")


def test_what_cannot_be_known_is_not_told():
    one = ordered_populations(runs=1, committed=())
    table = cross_validate(one, **QUICK)
    assert table["verdict"].tolist() == ["not simulated"]
    assert table["note"].tolist() == ["no choices were counted in other runs"]
    with pytest.warns(UserWarning, match=r"model A/B, H = 2: 1 run that no other runs predict"):
        scores = choice_scores(one)
    assert scores["choices"].tolist() == [0] * 5
    assert scores["log_likelihood"].isna().all()


@pytest.mark.parametrize("call", [cross_validate, choice_scores])
@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"by": "agent"}, "by = 'agent': expected one of run, experiment"),
        ({"folds": 1}, "folds = 1"),
        ({"level": 2.0}, "level = 2"),
        ({"seed": -1}, "seed = -1"),
    ],
)
def test_wrong_options_are_refused(real, call, options, told):
    with pytest.raises(InputError, match=told):
        call(real, **options)


DATA_SETS = 200


@pytest.mark.slow
def test_p_values_of_blind_tests_are_uniform_and_those_of_other_runs_are_not():
    """Error budget: a uniform p-value fails one of these tests with a probability of 0.001."""
    p_values = {"fold 1": [], "fold 2": [], "rejected": [], "control": []}
    for seed in range(DATA_SETS):
        table = cross_validate(ordered_populations(seed, runs=12, committed=(3,)), draws=20, runs=50, seed=seed)
        time = table[(table["quantity"] == "time") & (table["experiment"] == "from_empty")]
        for name, p in zip(("fold 1", "fold 2"), time["p_value"], strict=True):
            p_values[name].append(p)
        p_values["rejected"] += table.loc[table["n_committed"] < 0, "p_value"].tolist()
        if seed < DATA_SETS // 4:
            halves = [ordered_populations(seed, q, 6, ()) for q in (truth(), truth(1.0))]
            wrong = cross_validate(joined(*halves, apart=1000), draws=20, runs=50, seed=seed)
            p_values["control"].append(wrong.loc[wrong["quantity"] == "time", "p_value"].min())
    for name in ("fold 1", "fold 2"):
        assert kstest(p_values[name], "uniform").pvalue > 1e-4
    rejected = np.array(p_values["rejected"])
    for level in (0.01, 0.05):
        # Outcomes are discrete, and tests on the same runs depend on each other: twice the variance
        most = level * len(rejected) + 3.3 * np.sqrt(2 * level * len(rejected))
        assert (rejected <= level).sum() <= most
    assert kstest(p_values["control"], "uniform").pvalue < 1e-4


@pytest.mark.slow
def test_intervals_of_scores_hold_the_scores_of_other_runs():
    """At 95 %: the mean over runs of the same kind, for the laws that were estimated from the other half."""
    fresh = known_choices(runs=1500, seed=10**6)
    inside, misplaced = [], []
    for seed in range(DATA_SETS):
        real = ordered_populations(seed, runs=40, committed=())
        row = choice_scores(real, seed=seed).set_index("law").loc["majority"]
        (one,) = Experiment.all_of(real)
        true = []
        for _, tested in one.folds("run", 2, seed):
            known = one.choices.of(~tested[one.run_of])
            policy, law = (LAWS[name](known) for name in ("policy", "majority"))
            true.append((policy(fresh) - law(fresh)).mean())
        inside.append(row["gain_low"] <= np.mean(true) <= row["gain_high"])
        misplaced.append(
            row["gain_low"] <= np.mean(true) + 0.5 * (row["gain_high"] - row["gain_low"]) <= row["gain_high"]
        )
    # A bootstrap of 40 runs is known to be a little short; 95 % of 200 within 1 in 10,000, less 2 %
    assert np.sum(inside) >= binom.ppf(1e-4, DATA_SETS, 0.93)
    assert np.sum(misplaced) < binom.ppf(1e-4, DATA_SETS, 0.93)


def coin_log(seed: int, memory_length: int, runs: int, steps: int, agents: int) -> RealPopulations:
    """Runs of agents who toss a coin, whatever they remember."""
    random = np.random.default_rng((seed, memory_length, runs))
    rows = [(run, step, *random.permutation(agents)[:2]) for run in range(runs) for step in range(steps)]
    said = np.where(random.random((len(rows), 2)) < 0.5, "A", "B")
    return real_log([(*row, *pair) for row, pair in zip(rows, said, strict=True)], memory_length)


@pytest.mark.slow
@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(("size", "lost"), [((2, 20, 4), 0.028), ((4, 30, 6), 0.019), ((8, 60, 6), 0.009)])
def test_a_policy_of_coins_is_a_coin(size, lost):
    """The means of 30 logs have standard errors of 0.006, 0.003 and 0.001; a frequency alone costs 0.001 to 0.003."""
    scores = [
        choice_scores(coin_log(seed, memory_length, *size)).set_index("law")["log_likelihood"]
        for memory_length in (2, 3, 5)
        for seed in range(10)
    ]
    assert np.mean([one["policy"] for one in scores]) > np.log(0.5) - lost
