"""Real populations against policies estimated from them: right policies agree, planted wrong ones do not."""

import re

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, ks_2samp

import meanfield
import validation
from _real_populations import COUNTS, WORDS, N, play, populations, real_log, truth
from meanfield import InputError, make_policy
from meanfield.datasets import RealPopulations
from validation.naming_game._stopped_runs import Stop, play_real_runs
from validation.populations._conditions import conditions, read_runs, with_lengths
from validation.populations._outcomes import distribution_test, outcome_test


@pytest.fixture(scope="module")
def real():
    return populations()


def verdicts(table):
    return dict(table[table["n_committed"] < 0].groupby("experiment")["verdict"].agg(set))


def quick(real, **options):
    return validation.populations.validate(real, **{"draws": 5, "runs": 100, "seed": 3} | options)


@pytest.fixture(scope="module")
def right(real):
    return quick(real)


def test_right_policy_agrees_with_every_experiment(right):
    assert verdicts(right) == {name: {"agrees"} for name in ("from_empty", "from_consensus", "committed")}
    flips = right[(right["quantity"] == "flips") & (right["n_committed"] > 0)]
    assert flips["n_committed"].tolist() == [1, 2, 3, 4]
    assert ((flips["low"] <= flips["predicted"]) & (flips["predicted"] <= flips["high"])).all()
    report = validation.populations.report(right)
    assert len(report) == 4
    assert report[0].startswith("m {A, B}, committed: agrees")
    assert report[-1].startswith("summary: 3 agrees, 0 disagrees, 0 too few data, of 3 combinations")


def with_choices_swapped(counts):
    return counts.assign(choice=counts["choice"].map(dict(zip(WORDS, WORDS[::-1], strict=True))))


def with_memory_ignored(counts):
    share = counts.groupby("choice")["count"].sum() / counts["count"].sum()
    visits = counts.groupby("state")["count"].sum()
    rows = [("m", "A_B", 2, s, w, round(visits[s] * share[w])) for s in visits.index for w in WORDS]
    return pd.DataFrame(rows, columns=COUNTS)


@pytest.mark.parametrize("wrong", [with_choices_swapped, with_memory_ignored])
def test_planted_wrong_policy_disagrees(real, wrong):
    report = validation.populations.report(quick(RealPopulations(wrong(real.choice_counts), real.runs)))
    assert sum("disagrees;" in line for line in report) >= 2, report
    assert any(line.startswith("m {A, B}, from_empty: disagrees") for line in report)


def test_result_of_a_policy_does_not_depend_on_what_else_is_in_the_folder(real, right, tmp_path):
    other = [table.assign(model="other") for table in (real.choice_counts, real.runs)]
    pd.concat([other[0], real.choice_counts]).to_csv(tmp_path / "choice_counts.csv.gz", index=False)
    pd.concat([other[1], real.runs]).to_csv(tmp_path / "runs.csv", index=False)
    both = quick(tmp_path)
    assert set(both["model"]) == {"m", "other"}
    pd.testing.assert_frame_equal(both[both["model"] == "m"].reset_index(drop=True), right)


def test_few_runs_are_too_few_data_and_memories_that_cannot_be_numbered_are_not_simulated(real):
    few = quick(RealPopulations(real.choice_counts, real.runs.iloc[:3]))
    assert set(few["verdict"]) == {"too few data"}
    words = ["A", "B", *map(str, range(98))]
    many = real.runs.iloc[:20].assign(options=" ".join(words), memory_length=5)
    counts = real.choice_counts.assign(options="_".join(words), memory_length=5)
    table = quick(RealPopulations(counts, many))
    assert table["verdict"].tolist() == ["not simulated"]
    assert "fewer than 2^63 states" in table["note"].iloc[0]
    unseen = quick(RealPopulations(real.choice_counts.assign(model="else"), real.runs))
    assert set(unseen["note"]) == {"no choices were counted"}


def test_sharper_policies_agree_sooner(real, right):
    time = [
        table.loc[(table["quantity"] == "time") & (table["experiment"] == "from_empty"), "predicted"].item()
        for table in (right, quick(real, sharpness=2.0))
    ]
    assert time[1] < 0.8 * time[0]


@pytest.mark.parametrize(("committed", "initial", "window", "longest"), [(0, None, 36, 2000), (3, "A", 24, 300)])
def test_simulated_runs_are_those_of_the_plain_program(committed, initial, window, longest):
    q, random = truth(), np.random.default_rng(11)
    plain = pd.DataFrame([play(q, random, np.zeros(q.shape), longest, committed, initial, window) for _ in range(150)])
    stop = Stop(window, window, longest)
    ends = play_real_runs(make_policy(q, WORDS), N, {"B": committed}, initial, stop, 5, np.arange(4000))
    # Three tests of two experiments: false alarm once in 10,000 / 6
    assert ks_2samp(plain["interactions"], ends.interactions).pvalue > 1e-4
    assert ks_2samp(plain["success_last_3N"], ends.success_rate.round(4)).pvalue > 1e-4
    times = int((plain["majority_word_last_3N"] == "A").sum())
    share = (ends.word == 0).mean()
    assert min(binom.cdf(times, 150, share), binom.sf(times - 1, 150, share)) > 1e-4


def test_stop_is_after_the_interaction_that_makes_it_and_a_run_depends_on_its_number_only():
    always = make_policy(np.tile([1.0, 0.0], (21, 1)), WORDS)
    ends = play_real_runs(always, N, {}, None, Stop(30, 30, 500), 0, np.arange(5))
    assert ends.interactions.tolist() == [30] * 5
    assert ends.stopped.all()
    kept = play_real_runs(always, N, {}, "A", Stop(30, 30, 500), 0, np.arange(5))
    assert kept.interactions.tolist() == [500] * 5
    assert not kept.stopped.any()
    policy = make_policy(truth(), WORDS)
    many = play_real_runs(policy, N, {}, None, Stop(36, 36, 5000), 7, np.arange(20))
    one = play_real_runs(policy, N, {}, None, Stop(36, 36, 5000), 7, np.array([13]))
    assert many.interactions[13] == one.interactions[0]


def simulated_of(random, p_shift=0.0):
    """Two conditions of 5 policies: waiting times cut at 30, so with many ties."""
    return [np.minimum(random.geometric(p + p_shift, (5, 400)), 30) for p in (0.05, 0.2)]


@pytest.mark.slow
@pytest.mark.parametrize("test", ["distribution", "outcome"])
def test_tests_reject_as_often_as_they_say_and_notice_a_difference(test):
    def p_value(seed, p_shift):
        random = np.random.default_rng(seed)
        simulated = simulated_of(random)
        runs = [s[0, :n] for s, n in zip(simulated_of(random, p_shift), (12, 25), strict=True)]
        if test == "distribution":
            return distribution_test(runs, simulated, 400, seed)[1]
        return outcome_test(
            [(r > 8).astype(int) for r in runs], [(s > 8).astype(int) for s in simulated], 2, 400, seed
        )[1]

    null = np.array([p_value(seed, 0.0) for seed in range(200)])
    # 5 % of 200 is 10; more than 24 once in 10,000 times
    assert (null <= 0.05).sum() <= binom.ppf(1 - 1e-4, 200, 0.05)
    assert null.mean() == pytest.approx(0.5, abs=0.15)
    assert np.mean([p_value(seed, 0.15) < 0.01 for seed in range(20)]) > 0.8


def test_distribution_statistic_is_the_two_sample_distance():
    random = np.random.default_rng(2)
    simulated = random.poisson(4, (3, 50))
    runs = random.poisson(6, 17)
    expected = ks_2samp(runs, simulated.ravel()).statistic
    assert distribution_test([runs], [simulated], 10, 0)[0] == pytest.approx(expected)


def runs_that_end(ends, n_agents=24, experiment="from_empty", initial=""):
    committed = experiment == "committed"
    runs = pd.DataFrame(ends, columns=["interactions", "success_last_3N", "majority_word_last_3N"])
    runs = runs.assign(model="m", experiment=experiment, options="A B", memory_length=2, n_agents=n_agents)
    runs = runs.assign(n_committed=int(committed), committed_word="B" * committed, initial_consensus=initial)
    return with_lengths(read_runs(runs.assign(majority_share_last_3N=1.0)))


@pytest.mark.parametrize(
    ("ends", "n_agents", "rule"),
    [
        ([(100, 1.0, "A"), (213, 1.0, "B")], 24, (72, 72)),
        ([(100, 0.9583, "A"), (213, 0.9583, "B")], 24, (72, 69)),
        ([(900, 0.87, "A"), (1213, 0.96, "B")], 200, (72, 72)),
    ],
)
def test_rule_is_told_from_how_runs_ended(ends, n_agents, rule):
    runs = runs_that_end(ends, n_agents)
    (condition,) = conditions(runs, None, runs.index)
    assert {told[:2] for told in condition.runs["rule"]} == {rule}
    assert (condition.runs["longest"] == 1000 * n_agents).all()
    assert conditions(runs, 50, runs.index)[0].stops(1000)[0].window == 50


def test_runs_in_order_stopped_only_if_their_ends_or_files_say_so():
    """The first at 95 % of the last 3N, the second by its file; the third where the log ends."""
    runs = runs_that_end([(100, 0.9583, "A"), (213, 0.7, "B"), (300, 0.6, "A")])
    told = runs.assign(agreed_at_end=[10, 1, 0], agreed_at_most=[30, 5, 5], converged=[False, True, False])
    assert with_lengths(told)["stopped"].tolist() == [True, True, False]
    assert with_lengths(told, window=10)["stopped"].tolist() == [True, False, False]
    assert with_lengths(told)["longest"].iloc[2] == 300


def test_runs_cut_at_a_fixed_length_did_not_stop():
    ends = [(800, 0.7, "A"), (800, 0.6, "A"), (312, 1.0, "B"), (650, 1.0, "A")]
    runs = runs_that_end(ends, experiment="committed", initial="A")
    assert runs["stopped"].tolist() == [False, False, True, False]
    assert runs["longest"].tolist() == [800, 800, 800, 650]
    gone_on = [(800, 0.7, "A"), (800, 0.6, "A"), (800, 1.0, "B")]
    runs = runs_that_end(gone_on, experiment="committed", initial="A")
    (condition,) = conditions(runs, None, runs.index)
    assert {told.text for told in condition.runs["rule"]} == {"never"}
    assert all(stop.successes > stop.window for stop in condition.stops(1000))


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"interactions": -5}, "interactions = -5"),
        ({"n_agents": 1}, "n_agents = 1"),
        ({"n_agents": 11.5}, "n_agents = 11.5"),
        ({"success_last_3N": 1.2}, "success_last_3N = 1.2"),
        ({"experiment": "other"}, "experiment = 'other': expected one of from_empty"),
        ({"majority_word_last_3N": "C"}, "majority_word_last_3N = 'C': expected one of B, A"),
        ({"initial_consensus": "C"}, "initial_consensus = 'C'"),
        ({"committed_word": "C"}, "committed_word = 'C'"),
        ({"n_committed": N}, f"n_committed = {N} with n_agents = {N}"),
        ({"n_committed": 2}, "committed_word = ''"),
        ({"experiment": "from_consensus"}, "initial_consensus = ''"),
    ],
)
def test_wrong_runs_are_refused_by_name(real, change, named):
    runs = real.runs.iloc[:2].astype(object).reset_index(drop=True)
    for column, value in change.items():
        runs.loc[1, column] = value
    with pytest.raises(InputError, match=re.escape(named)):
        quick(RealPopulations(real.choice_counts, runs))


@pytest.mark.parametrize(
    ("name", "value"), [("draws", 0), ("runs", 0), ("seed", -1), ("level", 1.0), ("window", 0), ("sharpness", 0.0)]
)
def test_wrong_options_are_refused_by_name(real, name, value):
    with pytest.raises(InputError, match=f"{name} = {value}"):
        quick(real, **{name: value})


def test_wrong_tables_are_refused_by_name(real, tmp_path):
    counts, runs = real[:2]
    for damaged, told in (
        ((counts, runs.drop(columns="n_agents")), "runs lacks the column n_agents"),
        ((counts.drop(columns="state"), runs), "choice_counts lacks the column state"),
        ((counts.assign(count=-1), runs), "count = -1"),
        ((counts, runs.iloc[:0]), "runs is empty"),
    ):
        with pytest.raises(InputError, match=told):
            quick(RealPopulations(*damaged))
    with pytest.raises(InputError, match=r"choice_counts\.csv\.gz"):
        quick(tmp_path)
    with pytest.raises(InputError, match=r"validation\.populations\.validate"):
        validation.populations.report(runs)


# Logs of one's own


def test_agents_committed_from_mid_run_on_are_not_simulated():
    random, rows = np.random.default_rng(0), []
    for run, step in np.ndindex(4, 30):
        agent, partner = map(int, random.permutation(5)[:2])
        said = [
            "B" if one == 0 and step >= 10 else "A" if one == 0 else random.choice(["A", "B"])
            for one in (agent, partner)
        ]
        rows.append((run, step, agent, partner, *said))
    told = real_log(rows, 1, committed={0: "B"}, committed_from=10)
    for table in (quick(told), validation.populations.cross_validate(told, draws=1, runs=1)):
        assert set(table["verdict"]) == {"not simulated"} and table["note"].str.contains("committed from mid-run").all()
        assert table["runs"].sum() == 4
        first, *_, summary = validation.populations.report(table)
        assert ": not simulated; agents are committed from mid-run on" in first
        assert "0 too few data, 1 not simulated, of" in summary
        assert summary.endswith(f"0 of 0 single tests disagree, up to 0 by chance; {len(table)} more are not simulated")


def test_the_end_of_a_log_is_no_time_of_consensus():
    """A run of eight interactions, none of which stopped it: it could have gone on."""
    pairs = [("QM", "QQ"), ("MQ", "QQ"), ("QQ", "QQ"), ("QQ", "QQ")]
    rows = [
        (0, 2 * k + i, *range(2 * i, 2 * i + 2), *words) for k, one in enumerate(pairs) for i, words in enumerate(one)
    ]
    log = real_log(rows, 1)
    table = quick(log)
    assert table["quantity"].tolist() == ["majority word"] and table["verdict"].tolist() == ["too few data"]
    stopped = quick(log, window=1)
    assert stopped["quantity"].tolist() == ["majority word", "time"]
    assert stopped["note"].iloc[1] == "a run stops when it succeeds in: all of the last 1"


# The published runs


@pytest.fixture(scope="module")
def published_populations(data_folder):
    return meanfield.datasets.ai_norms(data_folder)


def of(published, model, *options):
    runs = published.runs
    return RealPopulations(published.choice_counts, runs[(runs["model"] == model) & runs["options"].isin(options)])


@pytest.mark.slow
def test_llama3_mq_winners_times_and_flips_are_those_of_its_policy(published_populations):
    table = quick(of(published_populations, "llama3", "M Q", "Q M"))
    fresh = table[table["experiment"] == "from_empty"]
    forty = fresh[(fresh["memory_length"] == 5) & (fresh["n_agents"] == 24)]
    assert forty["runs"].tolist() == [40, 40]
    assert set(forty["verdict"]) == {"agrees"}
    assert set(fresh.loc[fresh["quantity"] == "majority word", "verdict"]) <= {"agrees", "too few data"}
    flips = table[(table["experiment"] == "committed") & (table["memory_length"] == 3)]
    assert set(flips["verdict"]) <= {"agrees", "too few data"}
    assert set(flips.loc[flips["n_committed"] < 0, "verdict"]) == {"agrees"}


@pytest.mark.slow
def test_llama3_runs_of_shorter_memories_stopped_after_six_rounds_of_success(published_populations):
    table = quick(of(published_populations, "llama3", "X Y", "Alice Bob"), window=6 * 24)
    time = table[(table["quantity"] == "time") & (table["n_agents"] == 24)].set_index(["pair", "memory_length"])
    assert (time["verdict"].unstack()[[3, 4]] == "agrees").all(axis=None)
    assert (time["verdict"].unstack()[5] == "disagrees").all()


@pytest.mark.slow
def test_llama31_mq_winners_are_those_of_its_policy_but_its_runs_agree_sooner(published_populations):
    real = of(published_populations, "llama31", "Q M")
    table = quick(real)
    fresh = table[table["experiment"] == "from_empty"].set_index("quantity")
    assert fresh["verdict"].to_dict() == {"majority word": "agrees", "time": "disagrees"}
    assert fresh.loc["time", "predicted"] > 1.5 * fresh.loc["time", "observed"]
    sharper = quick(real, sharpness=1.2)
    assert set(sharper.loc[sharper["experiment"] == "from_empty", "verdict"]) == {"agrees"}
