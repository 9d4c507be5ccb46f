"""Words that a model writes, tested against its policy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from meanfield import InputError, MemorySpace
from meanfield.toolbox import (
    LARGEST_SEED,
    exact_interval,
    instance,
    is_number,
    labelled,
    labels_of,
    single_policy,
    space_of,
    stamp,
    whole_number,
    words_of,
)
from policy_extraction._toolbox.texts import MANY
from policy_extraction.backends._backend import Backend
from policy_extraction.checks._exact_test import check_outcomes, count_interval, exact_test
from policy_extraction.measuring._spoken import Spoken, answer_length, check_prefix, derived_seed, speak
from policy_extraction.prompts._orders import orders
from policy_extraction.prompts._template import NAMING_GAME, Payoffs, Template, check_prompt, longest, prompt_options

ALARM = 0.05
ALARM_LEVEL = 0.99  # of the interval of the number of alarms
SHARE_LEVEL = 0.95  # of the interval of each share, as in [004] Fig. S3b
# Steps of sampling that plain generation does not take.
FILTERS = ("top_k", "top_p", "order")


def generation_test(
    backend: Backend,
    policy: xr.Dataset,
    *,
    memory_length: int | None = None,
    n: int = 1000,
    seed: int,
    temperature: float | None = None,
    template: Template = NAMING_GAME,
    payoffs: Payoffs = Payoffs(),  # noqa: B008  (frozen)
    max_tries: int = 500,
) -> xr.Dataset:
    """Exact tests of a policy against words that the model writes, one for each memory state.

    Each of n draws has a random presentation order. The model continues the prompt's answer prefix by sampling from its
    whole vocabulary at the temperature T of the policy, until the answer begins with a word. Source: [004] SI
    "Validation of Probabilistic Policies in Simulations", Fig. S3.

    The model writes a word w of tokens w_i with probability Π_i p(w_i | w_<i)^(1/T) / Z_i, where the sum Z_i = Σ_v p(v
    | w_<i)^(1/T) runs over the vocabulary. All words share Z_1. So for words of one token the distribution, given that
    the answer is a word, is exactly Eq. 9 at T. For words of several tokens it is Eq. 9 only at T = 1; at other
    temperatures, extract the policy from a model that is `tempered`. Words need equally many tokens. Otherwise a
    warning tells that a shorter word is counted as said only if no letter follows it, while its p counts all answers.

    Parameters
    ----------
    backend
        The model of the policy.
    policy
        One policy of W words. Its presentation orders have equal weights.
    memory_length
        Longest tested memory, in interactions; None for all.
    n
        Draws a state.
    seed
        0 to 2^63 - 1.
    temperature
        Temperature of the generation; None for the policy's.
    template, payoffs
        The prompt of the policy.
    max_tries
        Most answers generated for a draw.

    Returns
    -------
    Dataset with

    - `count` (state, word), the number of draws of the word; `q` (state, word); `share_interval` (state, word, bound),
      the exact 95 % interval of its probability; and `deviation` (state, word), the difference from n·q in binomial
      standard deviations, NaN for q = 0 and 1;
    - `p_value` (state) of the exact binomial (W > 2: multinomial) test, and `alarm_chance` (state), the probability of
      p < 0.05 if the policy is right;
    - `alarms`, the number of states with p < 0.05; `expected_alarms`; and `alarm_interval` (bound), the 99 % interval
      of the number of alarms if the policy is right (it is Poisson-binomial);
    - `generated` and `valid` (state), the number of generated answers, and of those that were a word. A state without
      n words is not tested: its `p_value` is NaN, and `untested` counts such states.

    attrs["agrees"] is 1 if the number of alarms is in its interval.

    Raises
    ------
    InputError
        If an argument is out of range, the policy was made with another prompt or a filter, the template's answer
        prefix ends with a space, or no state could be tested.

    See Also
    --------
    check_policy : checks without asking the model

    Examples
    --------
    Answers at temperature 0.5 agree with the policy of this temperature; answers at 2 do not.

    >>> from policy_extraction import extract
    >>> from policy_extraction.backends import TableBackend
    >>> from policy_extraction.checks import generation_test
    >>> table = TableBackend(lambda memory, order: {"his": 0.6, "her": 0.3}, ("his", "her"), memory_length=1)
    >>> policy = extract(table, words=("his", "her"), memory_length=1, temperature=0.5)
    >>> [generation_test(table, policy, n=200, seed=1, temperature=T).attrs["agrees"] for T in (0.5, 2.0)]
    [1, 0]
    """
    policy = single_policy(policy)
    words, space = words_of(policy), space_of(policy)
    if memory_length is not None:
        space = MemorySpace(len(words), whole_number("memory_length", memory_length, 1, space.memory_length))
    temperature = _temperature(policy, temperature)
    instance("backend", backend, Backend)
    check_prompt(template, payoffs)
    _check_provenance(policy, template, payoffs)
    for name, value, most in (("n", n, MANY), ("max_tries", max_tries, MANY), ("seed", seed, LARGEST_SEED)):
        whole_number(name, value, 0 if name == "seed" else 1, most)
    check_outcomes(n, len(words))
    check_prefix(template)
    presented = _presented(policy, words)
    memories = [[(words[a], words[b]) for a, b in space.memory(state)] for state in range(space.n_states)]
    prompts = [template.prompt(options, memory, payoffs) for memory in memories for options in presented]
    # The longest prompt of all, and one of the last state, whose memory is full.
    backend.check([longest(prompts), prompts[-1]], words)
    shares = np.full(len(presented), 1 / len(presented))
    asked = np.random.default_rng(seed).multinomial(n, shares, size=space.n_states)
    spoken = speak(
        backend,
        prompts,
        asked.ravel().tolist(),
        words,
        temperature=temperature,
        seed=derived_seed(seed),
        max_tokens=answer_length(backend, words),
        max_tries=max_tries,
    )
    result = _compare(policy["q"].values[: space.n_states], spoken, n, len(presented))
    texts = [", ".join(f"{own}-{partner}" for own, partner in memory) for memory in memories]
    result = result.assign_coords({"memory": ("state", np.array(texts)), **labels_of(policy), "model": backend.name})
    return stamp(
        result,
        "generation_test",
        policy,
        n=n,
        seed=seed,
        temperature=temperature,
        template=template.name,
        max_tries=max_tries,
        alarm=ALARM,
        alarm_level=ALARM_LEVEL,
        share_level=SHARE_LEVEL,
    ).assign_attrs(memory_length=space.memory_length)


def _temperature(policy: xr.Dataset, temperature: float | None) -> float:
    found: Any = policy.attrs.get("option_temperature") if temperature is None else temperature
    if not is_number(found) or found <= 0:
        reason = "the policy states none; " if temperature is None else ""
        raise InputError(f"temperature = {found!r}: {reason}expected a positive number")
    return float(found)


def _check_provenance(policy: xr.Dataset, template: Template, payoffs: Payoffs) -> None:
    for name, value in prompt_options(template, payoffs).items():
        made_with = policy.attrs.get(f"option_{name}", value)
        if made_with != value:
            raise InputError(f"policy was made with {name} = {made_with}, and {value} is given: expected the same")
    for name in FILTERS:
        if policy.attrs.get(f"option_{name}", "none") != "none":
            raise InputError(
                f"policy was made with {name} = {policy.attrs[f'option_{name}']}: "
                "expected a softmax over the words, averaged over the orders, as generation draws from it"
            )


def _presented(policy: xr.Dataset, words: Sequence[str]) -> list[tuple[str, ...]]:
    """The presentation orders of the policy's average."""
    if "order_label" not in policy.coords:
        return orders(words)
    presented = [tuple(str(label).split(", ")) for label in policy["order_label"].values]
    if any(sorted(order) != sorted(words) for order in presented):
        raise InputError(f"policy.order_label = {'; '.join(map(', '.join, presented))}: expected the words in each")
    return presented


def _compare(q: np.ndarray, spoken: Spoken, n: int, n_orders: int) -> xr.Dataset:
    n_states, n_words = q.shape
    by_prompt = np.array([np.bincount(said, minlength=n_words) for said in spoken.words], dtype=np.int64)
    count = by_prompt.reshape(n_states, n_orders, n_words).sum(1)
    tested = count.sum(-1) == n
    if not tested.any():
        raise InputError(
            f"max_tries: {spoken.generated.sum() // n_states} answers a state held too few words to test any state "
            f"({spoken.valid.sum() / spoken.generated.sum():.2g} of the answers were words); take more tries"
        )
    found = exact_test(count[tested], q[tested], ALARM)
    p_value, alarm_chance = np.full((2, n_states), np.nan)
    p_value[tested], alarm_chance[tested] = found
    low, high = count_interval(found.alarm_chance, ALARM_LEVEL)
    alarms = int((found.p_value < ALARM).sum())
    spread = np.sqrt(n * q * (1 - q))
    deviation = np.divide(count - n * q, spread, out=np.full_like(q, np.nan), where=(spread > 0) & tested[:, None])
    intervals = np.stack(exact_interval(count, np.maximum(count.sum(-1, keepdims=True), 1), SHARE_LEVEL), axis=-1)
    table = ("state", "word")
    columns = {
        "count": (table, count, "times the word was drawn"),
        "q": (table, q, "choice probability"),
        "share_interval": ((*table, "bound"), intervals, "interval of the probability to draw the word"),
        "deviation": (table, deviation, "deviation of the count in standard deviations"),
        "p_value": ("state", p_value, "p-value of the exact test"),
        "alarm_chance": ("state", alarm_chance, "probability of an alarm if the policy is right"),
        "generated": ("state", spoken.generated.reshape(n_states, -1).sum(1), "answers generated"),
        "valid": ("state", spoken.valid.reshape(n_states, -1).sum(1), "answers that were a word"),
        "alarms": ((), alarms, "states with an alarm"),
        "expected_alarms": ((), found.alarm_chance.sum(), "expected number of false alarms"),
        "alarm_interval": ("bound", np.array([low, high]), "interval of the number of false alarms"),
        "untested": ((), int((~tested).sum()), "states that were not tested"),
    }
    result = labelled(columns, coords={"state": np.arange(n_states), "bound": ["low", "high"]})
    return result.assign_attrs(agrees=int(low <= alarms <= high))
