"""Making a policy, which says what an agent says in every memory state, from numbers or a file."""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from meanfield._population.policy_schema import validate_policy
from meanfield._population.tabulation import Function, probabilities, tabulated
from meanfield.core._space import MemorySpace
from meanfield.toolbox._arguments import shown
from meanfield.toolbox._errors import InputError
from meanfield.toolbox._files import load
from meanfield.toolbox._labels import canonical_order, has_names, values_in_order, word_coords
from meanfield.toolbox._texts import validate_attrs, validate_text, validate_words

Source = np.ndarray | xr.DataArray | Function | Mapping[Any, Any] | pd.DataFrame | str | os.PathLike[str]


def make_policy(
    q: Source,
    words: Sequence[str],
    *,
    memory_length: int | None = None,
    model: str | None = None,
    attrs: Mapping[str, Hashable] | None = None,
    progress: bool = False,
) -> xr.Dataset:
    """Make a policy from choice probabilities: an array, a function of the memory, a mapping of memories, or a table.

    Parameters
    ----------
    q
        P(an agent with this memory says this word), as

        - an array of shape (S, W), or of shape (S,) with P(first word) for two words; states in the order of
          `MemorySpace`, or of its coordinates for a DataArray;
        - a function of a memory, which is a tuple of pairs (own word, partner's word), oldest first. It returns W
          probabilities, a mapping of the words to them, or P(first word) for two words;
        - a mapping from every memory to what such a function returns. A memory is a tuple of pairs or a text, `"a/b
          a/a"` or `"empty"`;
        - a pandas DataFrame, or the path of a CSV file, with a column for each word (the first is enough for two
          words). The memories are texts in a column `memory`, or words in the columns `own_1`, `partner_1`, `own_2`, …,
          oldest first, empty beyond the end of a memory. Other columns are ignored.
    words
        The W words, number 0 first. They are distinct, not empty, and free of NUL and lone surrogates, which files
        can't hold.
    memory_length
        H. Required for a function; otherwise the default is the H that fits the number of memories.
    model
        Name of the language model, kept as the coordinate `model`.
    attrs
        Numbers, strings and lists of them that describe the origin of the policy.
    progress
        Show a progress bar while a function is asked, of two words at H = 10 for 1.4 million memories.

    Returns
    -------
    Dataset with `q` (state, word), the words along `word`, their numbers in `word_number`, and scalar coordinates
    `model` and `pair`. Results for one policy carry the words too: `solve(policy)["word_share"].sel(word="woman")`.

    Raises
    ------
    InputError
        If `q` is not a policy over these words: wrong shape or values, masked or complex numbers, missing, repeated or
        unknown memories, rows that do not sum to 1 within 1e-9; if the function raises an error; or if a file can't
        hold a text. Rows of float32, as networks return them, may miss 1 by 1e-6 and are normalised in float64.

    See Also
    --------
    policy_extraction.extract : from a language model
    validation.populations.empirical_policy : from counted choices
    load_policy : from a file

    Examples
    --------
    >>> import pandas as pd, meanfield
    >>> def his(memory):
    ...     return 0.9 if ("his", "his") in memory else 0.2
    >>> policy = meanfield.make_policy(his, ["his", "her"], memory_length=1)
    >>> policy["q"].sel(word="her").values
    array([0.8, 0.1, 0.8, 0.8, 0.8])
    >>> memories = ["empty", "his/his", "his/her", "her/his", "her/her"]
    >>> table = pd.DataFrame({"memory": memories, "his": [0.2, 0.9, 0.2, 0.2, 0.2]})
    >>> meanfield.make_policy(table, ["his", "her"]).equals(policy)
    True
    """
    validate_words(words, "words")
    validate_attrs({} if attrs is None else attrs, "attrs")
    if model is not None:
        validate_text(model, "model")
    if callable(q) or isinstance(q, (Mapping, pd.DataFrame, str, os.PathLike)):
        q = tabulated(q, words, memory_length, progress)
    q = _choice_probabilities(q, words)
    if q.ndim == 1 and len(words) == 2:
        q = np.stack([q, 1 - q], axis=-1)
    if q.ndim != 2 or q.shape[1] != len(words):
        raise InputError(f"q has shape {q.shape}: expected (states, {len(words)}) for the words {', '.join(words)}")
    space = MemorySpace.from_sizes(q.shape[0], q.shape[1])
    if memory_length not in (None, space.memory_length):
        raise InputError(
            f"memory_length = {shown(memory_length)}: expected {space.memory_length} for {space.n_states} states"
        )
    coords = {"state": np.arange(space.n_states), **word_coords(words), "pair": "/".join(words)}
    if model is not None:
        coords["model"] = model
    policy = xr.Dataset({"q": (("state", "word"), q)}, coords=coords)
    policy["q"].attrs = {"long_name": "choice probability", "units": "1"}
    policy.attrs = {**(attrs or {}), "memory_length": space.memory_length, "kind": "policy"}
    return validate_policy(policy)


def _choice_probabilities(q: Any, words: Sequence[str]) -> np.ndarray:
    if not isinstance(q, xr.DataArray):
        return probabilities(q, "q", len(words))
    q = canonical_order(q, "q")
    if has_names(q) and q["word"].values.tolist() != list(words):
        raise InputError(f"q has the words {', '.join(q['word'].values)}: expected {', '.join(words)}, as words")
    labels = {"state": range(q.sizes.get("state", 0)), "word": words if has_names(q) else range(len(words))}
    return probabilities(values_in_order(q, labels, "q").astype(q.dtype), "q", len(words))


def load_policy(path: str | os.PathLike[str]) -> xr.Dataset:
    """Read and check a policy, or a stack of policies over (model, pair), from a NetCDF file.

    Returns
    -------
    What `validate_policy` returns.

    Raises
    ------
    InputError
        If the file can't be read or holds no valid policy.

    See Also
    --------
    make_policy : from numbers
    datasets : published policies
    load : any result

    Examples
    --------
    >>> import tempfile
    >>> policy = meanfield.datasets.smollm2().sel(pair="his/her")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = meanfield.save(policy, f"{folder}/policy.nc")
    ...     meanfield.load_policy(path)["q"].sel(state=0).values.round(3)
    array([0.523, 0.477])
    """
    return validate_policy(load(path), name=str(path))
