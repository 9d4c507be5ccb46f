"""The same prompts twice, which prefix caches and batches of a server can answer differently."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence

import numpy as np
import xarray as xr
from tqdm.auto import tqdm

from meanfield import MemorySpace, ModelError
from meanfield.toolbox import LARGEST_SEED, instance, labelled, stamp, whole_number, word_coords
from policy_extraction._toolbox.bars import hidden
from policy_extraction.backends._backend import Backend
from policy_extraction.prompts._games import Game, checked_game
from policy_extraction.prompts._orders import orders
from policy_extraction.prompts._template import NAMING_GAME, Payoffs, Prompt, Template, prompt_options

WAYS = ("together", "alone")
MOST = 10_000  # prompts


def asked_again(
    backend: Backend,
    words: Sequence[str],
    memory_length: int = 5,
    n: int = 20,
    seed: int = 0,
    *,
    template: Template = NAMING_GAME,
    payoffs: Payoffs = Payoffs(),  # noqa: B008  (frozen)
    progress: bool | None = None,
) -> xr.Dataset:
    """Log-probabilities of the same prompts asked together and again one by one, in another order.

    Prompts asked together share batches, and beginnings that the server keeps. Asked again they are in its cache and
    have no neighbours. The difference is the numerical noise of the server; an exact model has none.

    Parameters
    ----------
    backend, words, memory_length, template, payoffs
        As in `policy_extraction.lazy_policy`.
    n
        Number of prompts, at most 10,000: random memory states and presentation orders, all different.
    seed
        0 to 2^63 - 1.
    progress
        Show a progress bar. Default: on a terminal.

    Returns
    -------
    Dataset with `log_probability` (asked, prompt, word), NaN where only a bound is known; `difference` (prompt, word),
    the absolute difference; `largest_difference`; and `prompts_per_second` of the prompts asked together. The
    coordinate `state` (prompt) numbers the memory, `order_label` (prompt) shows the presented order.

    Raises
    ------
    InputError
        If an argument is wrong, or the model can't be asked.
    ModelError
        If the model returns NaN.

    See Also
    --------
    policy_extraction.extract : asks all prompts, together

    Examples
    --------
    A table answers a prompt as before.

    >>> from policy_extraction.backends import TableBackend
    >>> from policy_extraction.checks import asked_again
    >>> table = TableBackend(lambda memory, order: {"his": 0.6, "her": 0.3}, ("his", "her"), memory_length=2)
    >>> found = asked_again(table, ("his", "her"), memory_length=2, n=10)
    >>> found.sizes["prompt"], found["largest_difference"].item()
    (10, 0.0)
    """
    words = checked_game(words, memory_length, template, payoffs)
    instance("backend", backend, Backend)
    whole_number("seed", seed, 0, LARGEST_SEED)
    space, presented = MemorySpace(len(words), memory_length), orders(words)
    game = Game(words, presented, memory_length, template, payoffs)
    n_prompts, draw = space.n_states * len(presented), random.Random(seed)
    whole_number("n", n, 1, min(n_prompts, MOST))
    drawn: dict[int, None] = {}
    while len(drawn) < n:
        drawn[draw.randrange(n_prompts)] = None
    places = [divmod(number, space.n_states) for number in drawn]
    asked = [game.prompt((space.memory(state), place)) for place, state in places]
    backend.check(game.trial(), words)
    log_p = np.full((2, n, len(words)), np.nan)
    with tqdm(total=2 * n, desc=backend.name, unit="prompt", disable=hidden(progress)) as bar:

        def ask(prompts: list[Prompt], found: np.ndarray) -> None:
            for scores in backend.score(prompts, words):
                if np.isnan(scores.log_probability).any():
                    raise ModelError(f"model = {backend.name}: it returned log-probabilities that are no numbers (NaN)")
                found[scores.numbers] = np.where(scores.censored, np.nan, scores.log_probability)
                bar.update(len(scores.numbers))

        begin = time.perf_counter()
        ask(asked, log_p[0])
        rate = n / (time.perf_counter() - begin)
        # The prompts are in random order already, and a back end puts those asked together in its own.
        for prompt, found in zip(asked, log_p[1, :, None], strict=True):
            ask([prompt], found)
    with np.errstate(invalid="ignore"):
        difference = np.where(log_p[0] == log_p[1], 0.0, np.abs(log_p[0] - log_p[1]))
    dims = ("prompt", "word")
    columns = {
        "log_probability": (("asked", *dims), log_p, "log-probability among all tokens, temperature 1"),
        "difference": (dims, difference, "difference of the log-probabilities"),
        "largest_difference": ((), np.fmax.reduce(difference.ravel()), "largest difference"),
        "prompts_per_second": ((), rate, "prompts asked together", "1/s"),
    }
    coords = {
        "asked": list(WAYS),
        "state": ("prompt", [state for _, state in places]),
        "order_label": ("prompt", [", ".join(presented[place]) for place, _ in places]),
        **word_coords(words),
        "model": backend.name,
    }
    result = stamp(labelled(columns, coords), "asked_again", n=n, seed=seed, **prompt_options(template, payoffs))
    return result.assign_attrs(memory_length=memory_length)
