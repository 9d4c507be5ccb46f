"""A model with a temperature at each token, as in generation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from policy_extraction.measuring._sampling import check_temperature


@contextmanager
def tempered(model: Any, temperature: float) -> Iterator[Any]:
    """Divide the logits of a model of transformers by a temperature T, inside the block.

    Generation at T writes a word of tokens w_1 … w_k with probability Π_i p(w_i | w_<i)^(1/T) / Z_i. The policy that is
    extracted from the tempered model at temperature 1 has these probabilities, renormalised to the words. For words of
    one token it is Eq. 9 of [004] at T; for longer words it differs, because the later Z_i differ between words::

        with tempered(model, 0.5):
            policy = extract((model, tokenizer), words=words, temperature=1.0)

    Parameters
    ----------
    model
        A causal language model of transformers. Pass it to `extract` as an object, whose records are never kept.
    temperature
        T > 0.

    Raises
    ------
    InputError
        If the temperature is not a positive number.

    See Also
    --------
    policy_from_record : another temperature without asking again

    Examples
    --------
    >>> from policy_extraction import extract
    >>> from policy_extraction.measuring import tempered
    >>> from transformers import AutoModelForCausalLM, AutoTokenizer  # doctest: +SKIP
    >>> name = "HuggingFaceTB/SmolLM2-360M-Instruct"
    >>> model = AutoModelForCausalLM.from_pretrained(name)  # doctest: +SKIP
    >>> tokenizer = AutoTokenizer.from_pretrained(name)  # doctest: +SKIP
    >>> with tempered(model, 0.5):  # doctest: +SKIP
    ...     policy = extract((model, tokenizer), words=("woman", "craftsman"), temperature=1.0)
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
