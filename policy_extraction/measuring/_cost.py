"""The cost of a measurement, before anything is asked."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from meanfield import InputError, MemorySpace
from meanfield.toolbox import LARGEST_SEED, instance, labelled, real_number, stamp, whole_number
from policy_extraction._toolbox.texts import MANY
from policy_extraction.backends.api._chosen import steps
from policy_extraction.backends.api._limits import MINUTE, Limits
from policy_extraction.backends.local._source import SMOLLM2, find, load_tokenizer
from policy_extraction.backends.local._tokens import questions, render
from policy_extraction.prompts._games import Game, Words, check_games, games_of
from policy_extraction.prompts._orders import orders
from policy_extraction.prompts._template import NAMING_GAME, Payoffs, Prompt, Template, check_prompt, prompt_options

COUNTED = 256  # prompts of each memory length
CHARACTERS = 3.3  # a token, as SmolLM2 reads a prompt with five remembered interactions


def cost(
    model: str | os.PathLike[str] | tuple[Any, Any] | None = SMOLLM2,
    *,
    words: Sequence[str] | Sequence[Sequence[str]],
    memory_length: int = 5,
    budget: int | None = None,
    answer_tokens: int = 1,
    limits: Limits = Limits(),  # noqa: B008  (frozen)
    prompts_per_second: float | None = None,
    template: Template = NAMING_GAME,
    payoffs: Payoffs = Payoffs(),  # noqa: B008  (frozen)
) -> xr.Dataset:
    """Prompts, tokens, price and time of a measurement by `extract`, or by `measure`; no prompt is sent.

    Tokens are counted with the model's tokenizer and chat template, with a further request for each token of a word
    that others follow. Without a tokenizer they are estimated as one for 3.3 characters, and a request for each prompt.
    Of each memory length at most 256 prompts are counted, drawn evenly, and their mean stands for the others.

    Parameters
    ----------
    model
        Name, path or loaded pair (model, tokenizer) as in `extract`; only the tokenizer is used. A name that
        is found nowhere, such as a paid service's, has none; None looks for none.
    words
        The words of one game, as in ``("his", "her")``, or a sequence of such sequences of equal length.
    memory_length
        H, in interactions.
    budget
        As for `measure`, which asks at most so many prompts. The longest memories are counted first, so that other
        ones hardly cost more. None for all prompts.
    answer_tokens
        Tokens that a request writes: 1, or a dozen if the model writes the answer prefix itself (`prefill` 'none').
    limits
        Prices of a million tokens, and limits of requests and tokens a minute.
    prompts_per_second
        Rate, given or measured by `asked_again`; None if it is unknown.
    template, payoffs
        The prompt.

    Returns
    -------
    Dataset with `prompts`, `requests`, `tokens_in`, `tokens_out`, `price` in the currency of the prices, and `seconds`,
    the longest time that the rate or a limit asks for. Price and seconds are NaN if nothing tells them.
    ``attrs["counted"]`` says how tokens were counted. Several sets of words add a dim `pair`.

    Raises
    ------
    InputError
        If an argument is wrong, or there are more than 2^63 tokens.

    See Also
    --------
    extract : makes the measurement
    measure : asks a part of these prompts, at most its `budget`
    policy_extraction.Limits : ends it before it costs more
    policy_extraction.checks.asked_again : measures the rate

    Examples
    --------
    >>> from policy_extraction import Limits, cost
    >>> found = cost(None, words=("his", "her"), limits=Limits(input_price=2.5, output_price=10.0))
    >>> print(f"{found['prompts']:,} prompts, {found['tokens_in']:,} tokens, {found['price']:.2f}")
    2,730 prompts, 1,123,696 tokens, 2.84
    """
    games, stacked = games_of(words)
    check_games(games, memory_length)
    check_prompt(template, payoffs)
    instance("limits", limits, Limits)
    whole_number("answer_tokens", answer_tokens, 1, MANY)
    most = None if budget is None else whole_number("budget", budget, 1, MANY)
    if prompts_per_second is not None:
        real_number("prompts_per_second", prompts_per_second, above=0)
    tokenizer, missing = _tokenizer(model)
    found = []
    for game in games:
        n_prompts, requests, tokens_in = _count(
            tokenizer, Game(game, orders(game), memory_length, template, payoffs), most
        )
        written = requests * answer_tokens
        if max(tokens_in, written) > LARGEST_SEED:
            raise InputError(f"memory_length = {memory_length}: {tokens_in:.1e} tokens, expected fewer than 2^63")
        paces = (
            (n_prompts, prompts_per_second),
            (requests * MINUTE, limits.requests_per_minute),
            ((tokens_in + written) * MINUTE, limits.tokens_per_minute),
        )
        price = np.nan if limits.input_price is None or limits.output_price is None else 0.0
        columns = {
            "prompts": ((), n_prompts, "prompts"),
            "requests": ((), requests, "requests"),
            "tokens_in": ((), tokens_in, "tokens read"),
            "tokens_out": ((), written, "tokens written"),
            "price": ((), price + limits.cost(tokens_in, written), "price", "currency of the prices"),
            "seconds": ((), max((number / pace for number, pace in paces if pace), default=np.nan), "time", "s"),
        }
        found.append(labelled(columns, {"pair": "/".join(game)}))
    result = xr.concat(found, "pair") if stacked else found[0]
    how = "with the tokenizer" if tokenizer is not None else f"estimated, {CHARACTERS} characters a token{missing}"
    options = {"budget": budget, "answer_tokens": answer_tokens, "prompts_per_second": prompts_per_second}
    prices = {"input_price": limits.input_price, "output_price": limits.output_price}
    stamped = stamp(result, "cost", **options, **prices, **prompt_options(template, payoffs))
    return stamped.assign_attrs(counted=how, memory_length=memory_length)


def _count(tokenizer: Any, game: Game, most: int | None) -> list[int]:
    """Prompts, requests and tokens of all prompts, or of as many of the longest ones."""
    space, total = MemorySpace(len(game.words), game.memory_length), [0, 0, 0]
    for length in reversed(range(game.memory_length + 1)):
        n_memories = space.n_digits**length
        n_prompts = n_memories * len(game.presented)
        n_asked = n_prompts if most is None else min(n_prompts, most - total[0])
        if not n_asked:
            break
        parts, draw, asked = min(n_prompts, COUNTED), random.Random(0), []
        for i in range(parts):  # one in each of as many equal parts, the same each time
            place, number = divmod(draw.randrange(i * n_prompts // parts, (i + 1) * n_prompts // parts), n_memories)
            asked.append(game.prompt((space.memory(space.offset(length) + number), place)))
        requests, tokens = _sizes(tokenizer, asked, game.words)
        more = n_asked, n_asked * requests, n_asked * tokens // len(asked)
        total = [a + b for a, b in zip(total, more, strict=True)]
    return total


def _sizes(tokenizer: Any, asked: Sequence[Prompt], words: Words) -> tuple[int, int]:
    """Requests of each prompt, and tokens of all of their requests together."""
    if tokenizer is None:
        return 1, round(sum(len("".join(vars(prompt).values())) for prompt in asked) / CHARACTERS)
    texts = [render(tokenizer, prompt) for prompt in asked]
    read = tokenizer(texts, add_special_tokens=False)["input_ids"]
    first = questions(tokenizer, texts[:1], words)[0]
    begun = list(steps(first.answers))
    # Answers depend on the end of the prompt only, which all memories share.
    contexts = sum(map(len, read)) - len(read) * (len(read[0]) - len(first.context))
    return len(begun), len(begun) * contexts + len(read) * sum(map(len, begun))


def _tokenizer(model: str | os.PathLike[str] | tuple[Any, Any] | None) -> tuple[Any, str]:
    """The tokenizer of a model, or None and why."""
    if model is None:
        return None, ""
    if isinstance(model, tuple):
        if len(model) != 2 or not callable(model[1]):
            raise InputError("model: expected a name, a path, or a pair (model, tokenizer) of transformers")
        return model[1], ""
    if not isinstance(model, (str, os.PathLike)):
        raise InputError(f"model = {model!r}: expected a name, a path, a pair (model, tokenizer) or None")
    try:
        return load_tokenizer(find(model)), ""
    except InputError as error:
        return None, f" ({error})"
