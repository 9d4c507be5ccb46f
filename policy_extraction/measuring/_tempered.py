"""A model whose predictions are sharpened or flattened token by token, as generation does it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from policy_extraction.measuring._sampling import check_temperature


@contextmanager
def tempered(model: Any, temperature: float) -> Iterator[Any]:
    """Divide the logits of a model of transformers by a temperature T, inside the block.

    A word of tokens w_1 … w_k is generated at T with probability Π_i p(w_i | w_<i)^(1/T) / Z_i. Extracted from the
    tempered model at temperature 1, a policy consists of just these probabilities, renormalised to the words. For words
    of one token it is Eq. 9 of [004] at T. For others it differs, because the Z_i of later tokens are those of a word::

        with tempered(model, 0.5):
            policy = extract((model, tokenizer), words=words, temperature=1.0)

    Parameters
    ----------
    model
        A causal language model of transformers. Extract from it as an object, of which no records are kept.
    temperature
        T > 0.

    Raises
    ------
    InputError
        If the temperature is not a positive number.

    See Also
    --------
    policy_from_record : another temperature without asking again
    """
    check_temperature(temperature)

    def divide(module: Any, arguments: Any, output: Any) -> Any:
        output.logits = output.logits / temperature
        return output

    hook = model.register_forward_hook(divide)
    try:
        yield model
    finally:
        hook.remove()
