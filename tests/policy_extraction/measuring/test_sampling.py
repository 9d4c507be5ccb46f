"""From a record to a policy: temperature, filters, presentation orders, and what a record does not determine.

Random numbers are seeded, and all but one test compare them with what must hold for each; that one states its budget.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise, permutations, product
from math import factorial

import numpy as np
import pytest
import scipy.stats
import xarray as xr

import meanfield
from _refusals import refused
from meanfield import InputError
from policy_extraction.measuring._record import make_record, policy_from_record, stack
from policy_extraction.measuring._sampling import Sampling, choose
from policy_extraction.prompts._orders import default_number, orders

PUBLISHED_FLOOR = 2.220446049250313e-16


def spread_probabilities(rng: np.random.Generator, n_words: int, n: int = 200) -> np.ndarray:
    """Random log-probabilities of words that together have less than 1, from nearly certain to nearly uniform."""
    concentration = rng.choice([0.1, 0.5, 3.0], size=n)
    return np.log(np.array([rng.dirichlet(np.full(n_words + 1, c)).clip(1e-30) for c in concentration])[:, :-1])


def record_of(log_p: np.ndarray, censored: np.ndarray | None = None) -> xr.Dataset:
    """A record with H = 1 from log-probabilities (order, 1 + W², word)."""
    words = [chr(ord("a") + w) for w in range(log_p.shape[-1])]
    presented = list(permutations(words))[: len(log_p)]
    return make_record(log_p, words, presented, words, 1, "made up", censored)


def random_record(seed: int, n_words: int = 2, n_orders: int = 2) -> xr.Dataset:
    states = 1 + n_words**2
    log_p = spread_probabilities(np.random.default_rng(seed), n_words, n_orders * states)
    return record_of(log_p.reshape(n_orders, states, n_words))


def by_hand(log_p: np.ndarray, temperature: float, top_k: int | None, top_p: float | None) -> np.ndarray:
    """The words one by one from the most probable on, for words of different probability."""
    p = np.exp(log_p / temperature) / np.exp(log_p / temperature).sum()
    order = np.argsort(-p)[: top_k or len(p)]
    before = np.cumsum(p[order]) - p[order]
    kept = order[before / p[order].sum() < (top_p or 1.1)]
    return np.where(np.isin(np.arange(len(p)), kept), p, 0) / p[kept].sum()


# --- filters over the words ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("filters", [(None, None), (1, None), (2, None), (None, 0.5), (None, 0.95), (3, 0.8)], ids=str)
def test_filters_are_those_made_by_hand(filters):
    for n_words, temperature in product([2, 3, 10], [0.3, 1.0, 2.0]):
        log_p = spread_probabilities(np.random.default_rng(n_words), n_words)
        choice = choose(log_p, None, Sampling(temperature, *filters))
        expected = [by_hand(row, temperature, *filters) for row in log_p]
        np.testing.assert_allclose(choice.q, expected, atol=1e-14)
        assert choice.decided.all()
        assert np.array_equal(choice.low, choice.q) and np.array_equal(choice.high, choice.q)


def hugging_face(log_p: np.ndarray, sampling: Sampling) -> np.ndarray:
    """Log-probabilities (n, tokens) after transformers' own logits processors."""
    torch = pytest.importorskip("torch", reason="needs the extra llm")
    from transformers import TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

    scores = torch.tensor(log_p)
    steps = [TemperatureLogitsWarper(sampling.temperature)]
    steps += [TopKLogitsWarper(sampling.top_k)] if sampling.top_k else []
    steps += [TopPLogitsWarper(sampling.top_p)] if sampling.top_p else []
    for step in steps:
        scores = step(torch.zeros((len(log_p), 1), dtype=torch.long), scores)
    return scores.softmax(-1).numpy()


FILTERS = [{"top_k": 4, "top_p": 0.6}, {"top_k": 3}, {"top_p": 0.9}]


@pytest.mark.parametrize(("temperature", "filters"), zip((0.5, 1.0, 1.7), FILTERS, strict=True), ids=str)
def test_filters_are_those_of_transformers_and_over_the_vocabulary_lie_in_the_interval(temperature, filters):
    """Whatever the other tokens do: few or many, alike or one above all."""
    rng = np.random.default_rng(2)
    n_words, n = 3, 3000
    alone = Sampling(temperature, **filters)
    log_p = spread_probabilities(np.random.default_rng(1), 6)
    np.testing.assert_allclose(choose(log_p, None, alone).q, hugging_face(log_p, alone), atol=1e-12)
    words = spread_probabilities(rng, n_words, n)
    rest = 1 - np.exp(words).sum(-1, keepdims=True)
    shares = [rng.dirichlet(np.full(size, c)) for size, c in [(1, 1), (4, 1), (40, 0.1), (40, 5)]]
    sampling = Sampling(temperature, over="vocabulary", **filters)
    choice = choose(words, None, sampling)
    assert 0.02 < choice.decided.mean() < 0.98, "all or none decided shows nothing"
    for share in shares:
        log_p = np.concatenate([words, np.log((rest * share).clip(1e-300))], axis=1)
        said = hugging_face(log_p, sampling)[:, :n_words]
        total = said.sum(-1)
        said, low, high, q, decided = (
            part[total > 0] for part in (said, choice.low, choice.high, choice.q, choice.decided)
        )
        said = said / said.sum(-1, keepdims=True)
        assert (said >= low - 1e-12).all()
        assert (said <= high + 1e-12).all()
        np.testing.assert_allclose(q[decided], said[decided], atol=1e-12)
        # Where no token but words may be left, there is nothing to be undecided about: the control.
        assert np.abs(q - said)[~decided].max() > 0.05


def test_what_is_undecided_can_go_both_ways():
    """Words of 0.5 and 0.2 leave 0.3 for others: top-k 2 removes the second word if one token has it all."""
    log_p = np.log([[0.5, 0.2]])
    choice = choose(log_p, None, Sampling(1.0, top_k=2, over="vocabulary"))
    np.testing.assert_allclose(choice.low, [[5 / 7, 0]])
    np.testing.assert_allclose(choice.high, [[1, 2 / 7]])
    assert not choice.decided.any()
    assert choose(log_p, None, Sampling(1.0, top_k=3, over="vocabulary")).decided.all()
    # Before the second word in a nucleus are the first and at most all others, 0.8 together.
    assert not choose(log_p, None, Sampling(1.0, top_p=0.79, over="vocabulary")).decided.any()
    assert choose(log_p, None, Sampling(1.0, top_p=0.81, over="vocabulary")).decided.all()
    # At T = 1/2 they weigh 0.09 against 0.25 and 0.04: at most 0.34 of 0.38.
    assert not choose(log_p, None, Sampling(0.5, top_p=0.89, over="vocabulary")).decided.any()
    assert choose(log_p, None, Sampling(0.5, top_p=0.90, over="vocabulary")).decided.all()


def test_equally_probable_words_share_their_fate():
    log_p = np.log(np.array([[0.3, 0.3, 0.2, 0.1], [0.4, 0.1, 0.1, 0.1]]))
    np.testing.assert_allclose(choose(log_p, None, Sampling(0.1, top_k=1)).q, [[0.5, 0.5, 0, 0], [1, 0, 0, 0]])
    kept = choose(log_p, None, Sampling(1.0, top_k=2)).q > 0
    assert kept.tolist() == [[True, True, False, False], [True] * 4]
    kept = choose(log_p, None, Sampling(1.0, top_p=0.2)).q > 0
    assert kept.tolist() == [[True, True, False, False], [True, False, False, False]]


@pytest.mark.parametrize("over", ["words", "vocabulary"])
def test_names_of_words_carry_no_order(over):
    rng = np.random.default_rng(5)
    log_p = spread_probabilities(rng, 5)
    log_p[:20, 1] = log_p[:20, 3]
    log_p[:20] -= 1
    censored = rng.random(log_p.shape) < 0.1
    mixed = rng.permutation(5)
    sampling = Sampling(0.8, top_k=3, top_p=0.7, over=over)
    choice, other = choose(log_p, censored, sampling), choose(log_p[:, mixed], censored[:, mixed], sampling)
    for part in ("q", "low", "high"):
        np.testing.assert_allclose(getattr(other, part), getattr(choice, part)[:, mixed], atol=1e-14)
    assert np.array_equal(choice.decided, other.decided)


# --- censored words ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("over", ["words", "vocabulary"])
@pytest.mark.parametrize("filters", [{}, {"top_p": 0.8}, {"top_k": 2}, {"top_k": 3, "top_p": 0.7}], ids=str)
def test_the_truth_lies_in_the_interval(over, filters):
    """Whatever the words below the bound really are."""
    rng = np.random.default_rng(6)
    log_p = spread_probabilities(rng, 4, 2000)
    censored = rng.random(log_p.shape) < 0.3
    censored[np.arange(len(log_p)), log_p.argmax(-1)] = False
    sampling = Sampling(0.5, over=over, floor=1e-4, **filters)
    choice = choose(log_p, censored, sampling)
    for lower in (0.0, 0.1, 3.0, 50.0):
        truth = choose(log_p - censored * lower * rng.random(log_p.shape), None, sampling)
        for bound in (truth.low, truth.high):
            assert (bound >= choice.low - 1e-12).all()
            assert (bound <= choice.high + 1e-12).all()
        decided = choice.decided
        np.testing.assert_allclose(truth.q[decided], choice.q[decided], atol=1e-12)
    assert np.abs(truth.q - choice.q)[~choice.decided].max() > 0.1
    assert (choice.low <= choice.q).all()
    assert (choice.q <= choice.high).all()


def test_the_interval_is_as_narrow_as_two_words_allow():
    """ℓ = log 0.6 and at most log 0.2: at T = 1 the second word has a probability between 0 and 1/4."""
    choice = choose(np.log([[0.6, 0.2]]), np.array([[False, True]]), Sampling(1.0))
    np.testing.assert_allclose([choice.low, choice.q, choice.high], [[[0.75, 0]], [[0.75, 0.25]], [[1, 0.25]]])


def test_censored_records_are_never_silently_used():
    censored = np.zeros((2, 5, 2), dtype=bool)
    censored[0, 3, 1] = True
    log_p = np.log(np.tile([0.6, 0.2], (2, 5, 1)))
    record = record_of(log_p, censored)
    with pytest.raises(InputError, match="1 of 10 prompts do not determine"):
        policy_from_record(record)
    policy = policy_from_record(record, 1.0, undecided="bound")
    assert policy.attrs["option_undecided"] == "bound"
    width = policy["q_high"] - policy["q_low"]
    np.testing.assert_allclose(width.sel(state=3), [0.125, 0.125])
    assert (width.drop_sel(state=3) == 0).all()
    np.testing.assert_allclose(policy["q"], np.tile([0.75, 0.25], (5, 1)))
    assert "q_low" not in policy_from_record(policy.assign(censored=policy["censored"] & False), 1.0)
    assert (policy_from_record(record, order=1)["q"] > 0).all()


# --- policies ------------------------------------------------------------------------------------------------------


def test_filters_act_on_each_order_before_the_average():
    """Two orders of 0.05/0.95 and 0.6/0.4: top-p 0.9 acts on the first of them only; the mean 0.325 it would leave."""
    record = record_of(np.log(np.tile(np.array([[[0.05, 0.95]], [[0.6, 0.4]]]), (1, 5, 1))))
    policy = policy_from_record(record, 1.0, top_p=0.9, floor=PUBLISHED_FLOOR)
    np.testing.assert_allclose(policy["q"].values[:, 0], (PUBLISHED_FLOOR + 0.6) / 2, rtol=1e-15)
    np.testing.assert_allclose(policy_from_record(record, 1.0)["q"].values[:, 0], 0.325)


def test_the_published_filter_leaves_the_published_gap():
    rng = np.random.default_rng(7)
    first = 1 / (1 + np.exp(-rng.normal(0, 3, (2, 5000, 1))))
    log_p = np.log(np.concatenate([first, 1 - first], axis=-1)) - 0.1
    q = choose(log_p, None, Sampling(0.5, top_p=0.9, floor=PUBLISHED_FLOOR)).q.mean(0)
    assert q.min() == PUBLISHED_FLOOR
    assert q.max() == 1 - PUBLISHED_FLOOR
    assert not ((q > PUBLISHED_FLOOR) & (q < 0.05)).any()
    assert ((q > 0.05) & (q < 0.052)).any()
    assert (choose(log_p, None, Sampling(0.5)).q.mean(0) < 0.05).mean() > 0.1


def test_the_steps_are_named_in_the_policy(tmp_path):
    record = random_record(8, n_words=3, n_orders=6)
    policy = policy_from_record(record, 0.7, top_k=2, top_p=0.9, floor=1e-6)
    assert policy.attrs["option_sampling"] == (
        "softmax over the words at T = 0.7; top-k 2 over the words; top-p 0.9 over the words; floor 1e-06; "
        "mean over orders"
    )
    names = ("temperature", "top_k", "top_p", "over", "floor", "order", "undecided")
    assert [policy.attrs[f"option_{name}"] for name in names] == [0.7, 2, 0.9, "words", 1e-6, "none", "raise"]
    assert policy_from_record(record).attrs["option_sampling"] == "softmax over the words at T = 0.5; mean over orders"
    assert meanfield.load_policy(meanfield.save(policy, tmp_path / "policy.nc")).identical(policy)
    again = policy_from_record(policy, 0.5)
    assert again.identical(policy_from_record(record, 0.5))


def test_a_single_order_is_that_order():
    record = random_record(9, n_words=3, n_orders=6)
    parts = [policy_from_record(record, 0.5, order=i) for i in range(6)]
    np.testing.assert_allclose(sum(part["q"].values for part in parts) / 6, policy_from_record(record)["q"].values)
    alone = policy_from_record(record.isel(order=[4]))["q"].values
    assert np.array_equal(parts[4]["q"].values, alone)
    assert parts[4].attrs["option_sampling"].endswith("order 4")
    assert np.abs(parts[4]["q"] - parts[3]["q"]).max() > 0.1


def test_stacks_are_sampled_as_their_parts():
    records = [random_record(seed).assign_coords(pair=f"pair {seed}") for seed in range(3)]
    together = policy_from_record(stack(records), 0.5, top_p=0.9)
    assert together["q"].dims == ("pair", "state", "word")
    for i, record in enumerate(records):
        alone = policy_from_record(record, 0.5, top_p=0.9)
        assert np.array_equal(together["q"].values[i], alone["q"].values)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"temperature": 0}, "temperature = 0: expected a positive number"),
        ({"temperature": np.inf}, "temperature = inf"),
        *(({"top_k": k}, f"top_k = {k}") for k in (0, 1.5)),
        *(({"top_p": p}, f"top_p = {p}") for p in (0.0, 1.1)),
        ({"over": "tokens"}, "over = 'tokens': expected one of words, vocabulary"),
        ({"floor": -1.0}, r"floor = -1\.0"),
        ({"floor": 0.5}, r"floor = 0\.5: expected less than 1 / 2"),
        ({"order": 2}, "order = 2: expected 0, 1, a presentation order of the record"),
        ({"order": -1}, "order = -1"),
        ({"undecided": "guess"}, "undecided = 'guess'"),
        ({"top_k": 1, "over": "vocabulary"}, r"\d+ of 10 prompts do not determine"),
        ({"record": xr.Dataset()}, "record: .* 'log_probability' is missing"),
    ],
)
def test_wrong_input_is_one_clear_line(arguments, message):
    with refused(message):
        policy_from_record(**{"record": random_record(10), **arguments})


@pytest.mark.parametrize(
    ("value", "message"), [(np.nan, "has the value nan"), (0.1, r"has the value 0\.1"), (-np.inf, "-inf for all words")]
)
def test_what_is_no_log_probability_is_refused(value, message):
    record = random_record(11)
    record["log_probability"][1, 2] = value
    with pytest.raises(InputError, match=message):
        policy_from_record(record)


# --- presentation orders -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_words", range(2, 13))
def test_orders_are_balanced(n_words):
    words = [chr(ord("a") + w) for w in range(n_words)]
    found = orders(words)
    assert len(set(found)) == len(found) == default_number(n_words) == min(len(found), factorial(n_words))
    assert len(found) == factorial(n_words) or 24 <= len(found) < 24 + 2 * n_words
    assert all(sorted(order) == words for order in found)
    places = Counter((word, place) for order in found for place, word in enumerate(order))
    neighbours = Counter(pair for order in found for pair in pairwise(order))
    assert set(places.values()) == {len(found) / n_words}
    assert len(places) == n_words**2
    assert set(neighbours.values()) == {len(found) / n_words}
    assert len(neighbours) == n_words * (n_words - 1)


def test_few_words_are_presented_in_all_orders():
    assert orders(("his", "her")) == [("his", "her"), ("her", "his")]
    assert orders("abc") == list(permutations("abc"))
    assert orders("abcd", 24) == list(permutations("abcd"))


@pytest.mark.parametrize(("n_words", "number"), [(3, 3), (4, 20), (5, 115), (5, 5), (26, 52)])
def test_samples_are_without_replacement_and_seeded(n_words, number):
    words = [chr(ord("a") + w) for w in range(n_words)]
    found = orders(words, number, seed=3)
    assert len(set(found)) == len(found) == number
    assert found == orders(words, number, seed=3)
    places = Counter((word, place) for order in found for place, word in enumerate(order))
    assert set(places.values()) == {number / n_words}
    if n_words > 3:
        assert set(found) != set(orders(words, number, seed=4))


def test_each_order_is_equally_likely():
    """A chi-square test over 1,200 seeds that would fail once in 10^4; for a sample of the first squares it fails.

    Each of the 6 squares has one order that begins with `a`. As 2 are drawn without replacement, the sum of squares is
    0.8 times the one of independent draws.
    """

    def p_value(drawn: list[tuple[str, ...]]) -> float:
        counts = Counter(order for order in drawn if order[0] == "a")
        expected = len(drawn) / 24
        statistic = sum((n - expected) ** 2 for n in counts.values()) + expected**2 * (6 - len(counts))
        return float(scipy.stats.chi2.sf(statistic / expected / 0.8, 5))

    assert p_value([order for seed in range(1200) for order in orders("abcd", 8, seed=seed)]) > 1e-4
    assert p_value([order for seed in range(1200) for order in orders("abcd", 8, seed=seed % 10)]) < 1e-4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        *(({"words": words}, "expected 2 to 255 different words") for words in (("a", "a"), ("a",))),
        ({"number": 10}, "number = 10: expected a multiple of 4"),
        ({"number": 28}, "number = 28: expected a whole number from 4 to 24"),
        *(({"number": number}, f"number = {number}") for number in (0, True)),
        ({"seed": -1}, "seed = -1"),
    ],
)
def test_wrong_orders_are_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        orders(**{"words": "abcd", **arguments})
