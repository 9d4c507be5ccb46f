"""Simple laws of the next choice, beside which a policy that was estimated from choices has to stand."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize_scalar

from meanfield import MemorySpace
from validation.populations._back_off import back_off_or_why
from validation.populations._choices import NOTHING, Choices
from validation.populations._empirical_policy import estimated_policy, why_not_tabulable

Law = Callable[[Choices], np.ndarray]  # log-probability of each choice
PRIOR_COUNT = 0.5  # Jeffreys' prior of each word's frequency
LEAST_ERROR, MOST_ERROR = 1e-6, 1.0


def constant_law(known: Choices) -> Law:
    """Each word has its frequency, whatever the memory."""
    counts = np.bincount(known.chosen, minlength=len(known.words)) + PRIOR_COUNT
    logs = np.log(counts / counts.sum())
    return lambda choices: logs[choices.chosen]


def policy_law(memory_length: int) -> Callable[[Choices], Law | None]:
    """The mean of the estimated policy with memories of this many interactions; None where it cannot be estimated."""

    def law_of(known: Choices) -> Law | None:
        if why_not_tabulable(len(known.words), memory_length):
            policy = back_off_or_why(known._replace(memory=known.memory[:, -memory_length:]))
            if isinstance(policy, str):
                return None
            return lambda choices: policy.log_probabilities(choices.memory[:, -memory_length:], choices.chosen)
        space = MemorySpace(len(known.words), memory_length)
        logs = np.log(estimated_policy(known.counts(memory_length), known.words, space, "")["q"].values)
        return lambda choices: logs[choices.states(memory_length), choices.chosen]

    return law_of


def majority_law(known: Choices) -> Law:
    """A word remembered most often, of equals each with the same chance, and with probability ε any word."""
    return _with_errors(_most_remembered, known)


def minimal_naming_game_law(known: Choices) -> Law:
    """A word of the agent's inventory, each with the same chance, and with probability ε any word.

    After a success the inventory holds its word alone; after a failure the partner's word is added, and the agent's
    own. Source: [001] Methods.
    """
    return _with_errors(_of_the_inventory, known)


def _with_errors(law: Callable[[Choices], np.ndarray], known: Choices) -> Law:
    """The law with the probability of an error that is most likely in what is known."""
    certain = law(known)

    def cost(error: float) -> float:
        return -float(np.log((1 - error) * certain + error / len(known.words)).sum())

    error = float(minimize_scalar(cost, bounds=(LEAST_ERROR, MOST_ERROR), method="bounded").x)
    return lambda choices: np.log((1 - error) * law(choices) + error / len(choices.words))


def _most_remembered(choices: Choices) -> np.ndarray:
    """Probability of each choice, where the words remembered most often are equally likely; all of them at first."""
    flat = choices.memory.reshape(len(choices.memory), -1)
    times = np.stack([(flat == word).sum(1) for word in range(len(choices.words))], axis=1)
    best = times == times.max(1, keepdims=True)
    return best[np.arange(len(best)), choices.chosen] / best.sum(1)


def _of_the_inventory(choices: Choices) -> np.ndarray:
    """Probability of each choice, where the words of the inventory are equally likely; all words if it is empty."""
    n_words = len(choices.words)
    probability = np.empty(len(choices.chosen))
    everything = set(range(n_words))
    inventory: set[int] = set()
    before = None
    for k, (run, agent, last, chosen) in enumerate(
        zip(choices.run, choices.agent, choices.memory[:, -1].tolist(), choices.chosen.tolist(), strict=True)
    ):
        own, partner = last
        if (run, agent) != before or own == NOTHING:
            # An agent's memory at the start is empty, or has one word.
            before, inventory = (run, agent), set()
        if own != NOTHING:
            inventory = {own} if own == partner else inventory | {own, partner}
        held = inventory or everything
        probability[k] = (chosen in held) / len(held)
    return probability


BASELINES: dict[str, Callable[[Choices], Law | None]] = {
    "constant frequencies": constant_law,
    "last interaction": policy_law(1),
    "minimal naming game": minimal_naming_game_law,
    "majority": majority_law,
}
