"""Warnings about how policies were measured: the published ones, and made ones with and without what is warned about.

Random numbers are seeded; tests of error rates state their budgets.
"""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
import xarray as xr

import meanfield
from _policies import majority_policy, random_policy
from _refusals import refused
from meanfield import MemorySpace
from policy_extraction.checks._check_policy import check_policy, find_gap, policy_warnings
from policy_extraction.measuring._record import make_record, policy_from_record, stack
from policy_extraction.prompts._orders import orders

FLOOR = 2.220446049250313e-16


def made_record(
    seed: int = 0,
    n_words: int = 2,
    memory_length: int = 5,
    spread: float = 1.5,
    order_spread: float = 0.5,
    mass: float = 0.9,
) -> xr.Dataset:
    """Normal log-odds, moved by the order of presentation; for two words, of standard deviations 2^½ times these."""
    rng = np.random.default_rng(seed)
    words = [chr(ord("A") + w) for w in range(n_words)]
    presented = orders(words)
    n_states = MemorySpace(n_words, memory_length).n_states
    logits = rng.normal(0, spread, (1, n_states, n_words)) + rng.normal(
        0, order_spread, (len(presented), n_states, n_words)
    )
    log_p = logits - np.logaddexp.reduce(logits, -1, keepdims=True) + np.log(mass)
    return make_record(log_p, words, presented, words, memory_length, "made up")


def undeclared(policy: xr.Dataset) -> xr.Dataset:
    """The same probabilities, with nothing said about where they come from."""
    return meanfield.make_policy(policy["q"].values, meanfield.toolbox.words_of(policy), model="unknown")


# --- filters that acted unseen -------------------------------------------------------------------------------------


def test_the_published_filter_is_found_and_only_that(published):
    report = check_policy(published)
    flagged = report["warning"].sel(check="filter") != ""
    assert np.array_equal(flagged, report["model"] == "llama31_70B")
    assert flagged.sum() == 11
    np.testing.assert_allclose(report["top_p"][flagged], 0.9, atol=0.001)
    np.testing.assert_allclose(report["gap_edge"][flagged], 0.0504, atol=1e-4)
    assert (report["gap_log10_p"][flagged] < -100).all()
    assert not (report["gap_log10_p"][~flagged] < -5).any()
    assert report["top_p"][~flagged].isnull().all()
    (first, *_) = found = policy_warnings(report)
    assert found == policy_warnings(published)
    assert first == (
        "llama31_70B his/her: 682 of 2730 probabilities are below 1e-12 and no other is below 0.0504 (without a filter "
        "a chance of 1e-213), as after a nucleus filter with top-p 0.899 in each of 2 orders."
    )


@pytest.mark.slow
@pytest.mark.parametrize("memory_length", [3, 5])
@pytest.mark.parametrize("top_p", [0.8, 0.9, 0.95])
@pytest.mark.parametrize("floor", [0.0, FLOOR])
def test_a_filter_is_found_and_its_p_inferred(memory_length, top_p, floor):
    for seed in range(5):
        record = made_record(seed, memory_length=memory_length)
        report = check_policy(undeclared(policy_from_record(record, 0.5, top_p=top_p, floor=floor)))
        assert report["warning"].sel(check="filter").item() != ""
        # The lowest value is (1 - p)/2 where one order is filtered and the other just not, as in a few of 85 states.
        assert top_p - (0.08 if memory_length == 3 else 0.02) < report["top_p"].item() <= top_p + 1e-12
        plain = check_policy(undeclared(policy_from_record(record, 0.5)))
        assert policy_warnings(plain) == []


def test_a_filter_over_ten_words_is_found():
    record = made_record(1, n_words=10, memory_length=1, spread=3.0)
    report = check_policy(policy_from_record(record, 0.5, top_p=0.9).drop_attrs())
    assert "as after a nucleus filter with top-p of at least" in report["warning"].sel(check="filter").item()
    assert report["top_p"].item() <= 0.9
    assert policy_warnings(check_policy(policy_from_record(record, 0.5).drop_attrs())) == []


@pytest.mark.slow
@pytest.mark.parametrize("law", ["normal", "cold", "logistic", "student"])
def test_policies_without_a_filter_are_not_accused(law):
    """Also where many values are next to nothing. At a level of 1e-9, 300 trials accuse none."""
    rng = np.random.default_rng(2)
    for _ in range(75):
        n = int(rng.choice([21, 85, 341, 1365]))
        log_odds = {
            "normal": lambda n: rng.normal(0, 4, n),
            "cold": lambda n: rng.normal(3, 30, n),
            "logistic": lambda n: rng.logistic(1, 12, n),
            "student": lambda n: 5 * rng.standard_t(3, n),
        }[law](n)
        q = scipy.special.expit(np.stack([log_odds, -log_odds], axis=-1))
        assert check_policy(meanfield.make_policy(q, ["a", "b"]))["warning"].sel(check="filter").item() == ""


def test_the_chance_of_a_gap_is_not_understated():
    """Exponential log-odds are the boundary of the null hypothesis: the bound is below α with probability up to α.

    Among 2,000, at α = 0.05, 4.5 standard deviations (1 in 10^5) of a count of 100 are 44. Control: with a gap of a
    fifth of the range, most are.
    """
    rng = np.random.default_rng(3)

    def below(gap: float) -> int:
        count = 0
        for _ in range(2000):
            s = rng.exponential(8, 200)
            s = s[(s < 27.63 * (1 - gap)) | (s > 27.63)]
            count += find_gap(scipy.special.expit(-s)).log10_p < np.log10(0.05)
        return count

    assert below(0.0) < 144
    assert below(0.2) > 1000


def test_a_filter_that_was_asked_for_is_no_surprise():
    record = made_record()
    policy = policy_from_record(record, 0.5, top_p=0.9)
    report = check_policy(policy)
    assert policy_warnings(report) == []
    assert report["top_p"].item() == pytest.approx(0.9, abs=0.02)
    single = policy_from_record(record, 0.5, top_p=0.9, order=0)
    report = check_policy([single, undeclared(single)])
    np.testing.assert_allclose(report["gap_edge"], 0.1, atol=0.005)
    # Of which orders it is an average is known of the first only.
    np.testing.assert_allclose(report["top_p"], [0.9, 0.8], atol=0.01)


def test_choice_without_chance_is_found():
    policy = undeclared(policy_from_record(made_record(), 0.5, top_k=1))
    assert set(np.unique(policy["q"])) == {0, 0.5, 1}
    (warning,) = policy_warnings(check_policy(policy))
    assert "all probabilities are multiples of 1/2" in warning
    assert policy_warnings(check_policy(majority_policy(3, 0.9))) == []


# --- captured mass, orders, censoring ------------------------------------------------------------------------------


def test_low_captured_mass_is_reported():
    record = made_record(mass=0.9, memory_length=2)
    record["log_probability"][:, :5] += np.log(0.1 / 0.9)
    record["captured_mass"][:] = np.exp(record["log_probability"]).sum("word")
    report = check_policy(record)
    np.testing.assert_allclose([report["lowest_mass"], report["median_mass"]], [[0.1], [0.9]])
    (warning,) = policy_warnings(report)
    assert "in 10 of 42 prompts the words together have a probability below 0.5 (median 0.9, lowest 0.1)" in warning
    assert policy_warnings(check_policy(record, least_mass=0.05)) == []


def test_censored_words_count_nothing():
    record = made_record(memory_length=1, mass=0.9)
    censored = record["log_probability"] > np.log(0.4)
    report = check_policy(record.assign(censored=censored))
    assert report["censored_fraction"] == censored.mean()
    expected = np.exp(record["log_probability"]).where(~censored, 0).sum("word")
    assert report["lowest_mass"].item() == pytest.approx(expected.min().item())
    prompts = int(censored.any("word").sum())
    text = report["warning"].sel(check="censored").item()
    assert text.startswith(f"{int(censored.sum())} of 20 log-probabilities are upper bounds only, in {prompts} of 10")


@pytest.mark.parametrize(("bias", "preference"), [(0.7, 2.0), (2.0, 0.7)])
def test_order_and_word_effects_are_what_they_were_made_of(bias, preference):
    """The first of two words in the prompt gains `bias` and one of the words `preference`, both in half log-odds."""
    sign = np.where(np.arange(21) % 2, 1, -1) * preference
    half = np.stack([sign + bias, sign - bias])
    logits = np.stack([half, -half], axis=-1)
    log_p = logits - np.logaddexp.reduce(logits, -1, keepdims=True)
    record = make_record(log_p, ["a", "b"], [("a", "b"), ("b", "a")], ["a", "b"], 2, "made up")
    report = check_policy(policy_from_record(record))
    np.testing.assert_allclose([report["order_effect"].item(), report["word_effect"].item()], [bias, preference])
    expected = ["order_effect"] if bias > preference else []
    assert report["check"][(report["warning"] != "")[0]].values.tolist() == expected


def test_effects_leave_out_what_is_not_known():
    record = made_record(4, n_words=3, memory_length=1)
    expected = check_policy(record.isel(state=slice(2, None)))
    log_p, censored = record["log_probability"].copy(), record["censored"].copy()
    log_p[1, 0, 2] = -np.inf
    log_p[0, 1, 1] += 5
    log_p[0, 1] -= 6
    censored[0, 1, 1] = True
    report = check_policy(record.assign(log_probability=log_p, censored=censored))
    for name in ("order_effect", "word_effect"):
        assert report[name].item() == pytest.approx(expected[name].item())
    nothing = check_policy(record.assign(censored=censored | True))
    assert nothing["order_effect"].isnull().all()


# --- tables --------------------------------------------------------------------------------------------------------


def test_stacks_records_and_lists_give_a_row_each(tmp_path):
    records = [made_record(seed, memory_length=1, mass=m) for seed, m in enumerate((0.9, 0.2, 0.8))]
    records = [record.assign_coords(pair=f"pair {i}") for i, record in enumerate(records)]
    together = stack(records)
    policies = policy_from_record(together)
    by_stack = check_policy(policies)
    assert by_stack["pair"].values.tolist() == ["pair 0", "pair 1", "pair 2"]
    assert by_stack["model"].values.tolist() == ["made up"] * 3
    assert (by_stack["warning"] != "").sum("check").values.tolist() == [0, 1, 0]
    xr.testing.assert_identical(by_stack, check_policy([policies.isel(pair=i) for i in range(3)]))
    by_record = check_policy(together)
    xr.testing.assert_identical(by_record, check_policy(records))
    assert by_record["gap_edge"].isnull().all()
    xr.testing.assert_identical(by_record["median_mass"], by_stack["median_mass"])
    assert meanfield.load(meanfield.save(by_stack, tmp_path / "report.nc")).identical(by_stack)


def test_what_can_not_be_checked_is_nan():
    report = check_policy(random_policy(0, memory_length=2))
    assert policy_warnings(report) == []
    numbers = ("lowest_mass", "median_mass", "order_effect", "word_effect", "censored_fraction", "gap_log10_p", "top_p")
    assert all(report[name].isnull().all() for name in numbers)
    assert report["gap_edge"].item() > 0


@pytest.mark.parametrize(
    ("policies", "arguments", "message"),
    [
        ([], {}, "policies is empty"),
        ("gpt-4o", {}, "policies is a str"),
        (xr.Dataset({"p": 1}), {}, "policies: .*make_policy, but 'q' is missing"),
        (random_policy(0), {"least_mass": 1.5}, r"least_mass = 1\.5"),
    ],
)
def test_wrong_input_is_one_clear_line(policies, arguments, message):
    with refused(message):
        check_policy(policies, **arguments)
