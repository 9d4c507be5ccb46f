"""The policy: what an agent says in every memory state, as a labelled table."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from meanfield._population.memory import MemorySpace
from meanfield._population.reaction_model import ReactionModel
from meanfield._population.tabulation import ROW_SUM_TOLERANCE, Function, probabilities, tabulated
from meanfield.toolbox._errors import InputError
from meanfield.toolbox._expect import expect
from meanfield.toolbox._files import load
from meanfield.toolbox._labels import canonical_order, has_names, values_in_order, word_coords
from meanfield.toolbox._texts import validate_attrs, validate_text, validate_words

STACKED_DIMS = ("model", "pair")
Source = np.ndarray | xr.DataArray | Function | Mapping[Any, Any] | pd.DataFrame | str | os.PathLike[str]
PLACES = {"model": -2, "pair": -1, "state": 1, "word": 2}  # of dims; others between them


def make_policy(
    q: Source,
    words: Sequence[str],
    *,
    memory_length: int | None = None,
    model: str | None = None,
    attrs: Mapping[str, Hashable] | None = None,
) -> xr.Dataset:
    """Make a policy from choice probabilities: an array, a function of the memory, a mapping of memories, or a table.

    Parameters
    ----------
    q
        P(an agent with this memory says this word), as

        - an array of shape (S, W), or of shape (S,) with P(first word) for two words; states in the order of
          `MemorySpace`, or of its coordinates for a DataArray;
        - a function of a memory, which is a tuple of pairs (own word, partner's word), oldest first. It returns W
          probabilities, or P(first word) for two words;
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

    Returns
    -------
    Dataset with `q` (state, word), the words along `word`, their numbers in `word_number`, and scalar coordinates
    `model` and `pair`. Results for one policy carry the words too: `solve(policy)["word_share"].sel(word="woman")`.

    Raises
    ------
    InputError
        If `q` is not a policy over these words: wrong shape or values, masked or complex numbers, missing, repeated or
        unknown memories, rows that do not sum to 1 within 1e-9; or if a file can't hold a text. Rows of float32, as
        networks return them, may miss 1 by 1e-6 and are normalised in float64.

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
        q = tabulated(q, words, memory_length)
    q = _choice_probabilities(q, words)
    if q.ndim == 1 and len(words) == 2:
        q = np.stack([q, 1 - q], axis=-1)
    if q.ndim != 2 or q.shape[1] != len(words):
        raise InputError(f"q has shape {q.shape}: expected (states, {len(words)}) for the words {', '.join(words)}")
    space = MemorySpace.from_sizes(q.shape[0], q.shape[1])
    if memory_length not in (None, space.memory_length):
        raise InputError(f"memory_length = {memory_length}: expected {space.memory_length} for {space.n_states} states")
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


def validate_policy(policy: xr.Dataset, name: str = "policy") -> xr.Dataset:
    """Check a policy, or a stack of policies over model and pair, and return it in canonical order.

    A policy has a float variable `q` with dims state and word, values in [0, 1], rows that sum to 1 within 1e-9, as
    many states as some memory length H has, and distinct words along `word`. The coordinates `state` and `word_number`
    hold the numbers of states and words, so that `policy.isel(word=[1, 0])` is the same policy. Without them the order
    of the array counts.

    A stack of several pairs has numbers along `word` and the words of each pair in `word_label` (pair, word). This
    gives one policy of it, or one result, its words:

        stack.sel(model="gpt-4o", pair="woman/man").set_index(word="word_label")

    `xr.concat(policies, "pair", join="outer")` lays the words of all pairs side by side, each pair NaN at the words of
    the others; such a stack is accepted and returned with numbers along `word`.

    Returns
    -------
    The policy with dims (model, pair, state, word), states and words in the order of their numbers.

    Raises
    ------
    InputError
        If it is not a policy, or a state or word is missing, unknown or repeated.

    See Also
    --------
    policy_extraction.check_policy : doubts about the measurement behind it
    """
    if isinstance(policy, ReactionModel):
        raise InputError(f"{name} is a ReactionModel: only solve, fixed_points and spectrum take reaction models")
    expect(policy, "policy", name)
    policy = numbered_by_pair(policy, name)
    _validate_dims(policy, name)
    _validate_labels(policy, name)
    policy = _numbered(_transposed(canonical_order(policy, name)))
    _validate_probabilities(policy["q"], name)
    return policy


def load_policy(path: str | os.PathLike[str]) -> xr.Dataset:
    """Read and check a policy, or a stack of policies over (model, pair), from a NetCDF file.

    Raises
    ------
    InputError
        If the file can't be read or holds no valid policy.

    See Also
    --------
    make_policy : from numbers
    datasets : published policies
    load : any result
    """
    return validate_policy(load(path), name=str(path))


def numbered_by_pair(policy: xr.Dataset, name: str = "policy") -> xr.Dataset:
    """Each pair with its own words, where `xr.concat` laid those of all pairs side by side."""
    numbers = policy.coords.get("word_number")
    if numbers is None or set(numbers.dims) != {"pair", "word"} or not has_names(policy):
        return policy
    parts: list[xr.Dataset] = []
    for place in range(policy.sizes["pair"]):
        one, order = policy.isel(pair=place), numbers.transpose("pair", "word").values[place]
        one = one.isel(word=np.argsort(order, kind="stable")[: np.count_nonzero(~np.isnan(order))])
        words = one["word"].values.astype(str)
        coords = {"word": np.arange(len(words)), "word_label": ("word", words)}
        parts.append(one.drop_vars(("word_number", "word_label"), errors="ignore").assign_coords(coords))
    if len(sizes := sorted({one.sizes["word"] for one in parts})) > 1:
        raise InputError(f"{name} has pairs of {sizes} words: expected the same number for each")
    by_pair = [
        str(key) for key, one in policy.coords.items() if "pair" in one.dims and key not in ("pair", "word_number")
    ]
    return xr.concat(parts, "pair", coords=sorted({*by_pair, "word_label"}), compat="override", join="exact")


def _transposed(policy: xr.Dataset) -> xr.Dataset:
    # To look takes a tenth of the time of a transposition that changes nothing.
    if all(list(one.dims) == sorted(one.dims, key=_place) for one in policy.variables.values()):
        return policy
    return policy.transpose(*STACKED_DIMS, ..., "state", "word", missing_dims="ignore")


def _place(dim: Hashable) -> int:
    return PLACES.get(str(dim), 0)


def _numbered(policy: xr.Dataset) -> xr.Dataset:
    """With all coordinates along states and words, and `q` in C order, so that sums are rounded alike."""
    absent = {dim: np.arange(policy.sizes[dim]) for dim in ("state", "word") if dim not in policy.coords}
    if "word_number" not in policy.coords:  # it stays where a user makes the words the labels along `word`
        absent["word_number"] = ("word", np.arange(policy.sizes["word"]))
    policy = policy.assign_coords(absent) if absent else policy
    q = policy["q"]
    return policy if q.values.flags.c_contiguous else policy.assign(q=q.copy(data=np.ascontiguousarray(q.values)))


def _validate_dims(policy: xr.Dataset, name: str) -> None:
    dims = set(policy["q"].dims)
    if not {"state", "word"} <= dims or not dims <= {"state", "word", *STACKED_DIMS}:
        raise InputError(
            f"{name}.q has dims {policy['q'].dims}: expected state and word, and model and pair in a stack"
        )
    for dim in dims - {"state", "word"}:
        if dim not in policy.coords or len(set(policy[dim].values.ravel())) < policy.sizes[dim]:
            raise InputError(f"{name} has a dim {dim}: expected a coordinate of distinct names along it")
    for dim in STACKED_DIMS:
        if dim in policy.coords and policy[dim].dims != ((dim,) if dim in dims else ()):
            raise InputError(f"{name}.{dim} has dims {policy[dim].dims}: expected one name, or one for each policy")
    space = MemorySpace.from_sizes(policy.sizes["state"], policy.sizes["word"])
    length = policy.attrs.get("memory_length", space.memory_length)
    if not np.array_equal(length, space.memory_length):
        raise InputError(
            f"{name} has attrs['memory_length'] = {length}: expected {space.memory_length} for {space.n_states} states"
        )


def _validate_labels(policy: xr.Dataset, name: str) -> None:
    found = [key for key in ("word_label", "word") if key in policy.coords and (key != "word" or has_names(policy))]
    if not found:
        raise InputError(f"{name} has no words: expected them along word, or in word_label (pair, word)")
    labels = policy.variables[found[0]]
    if "word" not in labels.dims or not set(labels.dims) <= {"pair", "word"}:
        raise InputError(f"{name}.word_label has dims {labels.dims}: expected (word) or (pair, word)")
    for words in labels.transpose(..., "word").values.reshape(-1, policy.sizes["word"]).tolist():
        validate_words(words, f"{name}.{found[0]}")
    for dim in STACKED_DIMS:
        for label in policy[dim].values.ravel().tolist() if dim in policy.coords else ():
            validate_text(label, f"{name}.{dim}")


def _validate_probabilities(q: xr.DataArray, name: str) -> None:
    values = q.values
    if values.dtype != np.float64:
        raise InputError(f"{name}.q has dtype {values.dtype}: expected float64")
    # A stack of unequal sets has combinations of model and pair that were never measured.
    absent = np.isnan(values).all((-2, -1), keepdims=True) & (q.ndim > 2)
    wrong = ~((values >= 0) & (values <= 1) | absent)
    if wrong.any():
        raise InputError(f"{name}.q{_where(q, wrong)} = {values[wrong][0]}: expected a probability in [0, 1]")
    sums = values.sum(-1)
    wrong = np.abs(sums - 1) > ROW_SUM_TOLERANCE
    if wrong.any():
        raise InputError(f"{name}.q{_where(q[..., 0], wrong)} sums to {sums[wrong][0]} over the words: expected 1")


def _where(array: xr.DataArray, mask: np.ndarray) -> str:
    first = np.argwhere(mask)[0]
    labels = (
        f"{dim}={array[dim].values[i] if dim in array.coords else i}" for dim, i in zip(array.dims, first, strict=True)
    )
    return f"[{', '.join(labels)}]"


def single_policy(policy: xr.Dataset, name: str = "policy") -> xr.Dataset:
    """`policy` as `validate_policy` returns it, without dims over model and pair; InputError if it stacks several."""
    policy = validate_policy(policy, name)
    many = {dim: policy.sizes[dim] for dim in STACKED_DIMS if policy.sizes.get(dim, 1) > 1}
    if many:
        sizes = " and ".join(f"{n} {dim}s" for dim, n in many.items())
        raise InputError(f"{name} holds {sizes}: select one, as in {name}.sel(model=…, pair=…)")
    one = canonical_order(policy.squeeze([dim for dim in STACKED_DIMS if dim in policy.dims]), name)
    if np.isnan(one["q"].values).all():
        raise InputError(f"{name}.q is NaN throughout: expected a probability in [0, 1]")
    return one


def each_policy(policies: xr.Dataset | Iterable[xr.Dataset]) -> Iterator[xr.Dataset]:
    """Iterate over the single policies of a stack, or of several stacks, models outermost.

    Each is a policy as `validate_policy` returns it, without the dims model and pair. Combinations of model and pair
    that are NaN throughout were never measured and are skipped.
    """
    if isinstance(policies, Iterable) and not isinstance(policies, (str, xr.Dataset)):
        for stack in policies:
            yield from each_policy(stack)
        return
    policies = validate_policy(policies, "policies")
    for i in range(policies.sizes.get("model", 1)):
        for j in range(policies.sizes.get("pair", 1)):
            one = policies.isel({d: k for d, k in (("model", i), ("pair", j)) if d in policies.dims})
            if not np.isnan(one["q"].values).all():
                yield canonical_order(one, "policies")


def names_of(policy: object) -> dict[str, xr.DataArray]:
    """The coordinates model and pair of a single policy; nothing for a population."""
    return (
        {name: policy[name] for name in STACKED_DIMS if name in policy.coords} if isinstance(policy, xr.Dataset) else {}
    )


def labels_of(policy: xr.Dataset) -> dict[str, xr.DataArray]:
    """The coordinates of `names_of` and of `word`, for results of a policy."""
    return names_of(policy) | {name: policy[name] for name in ("word", "word_number", "word_label")}


def name_of(policy: xr.Dataset) -> str:
    """`model {first, second}`, for messages and titles."""
    words = "{" + ", ".join(words_of(policy)) + "}"
    return f"{policy['model'].item()} {words}" if "model" in policy.coords else words


def words_of(policy: xr.Dataset) -> tuple[str, ...]:
    """The words of a single policy, number 0 first."""
    labels = canonical_order(policy["word_label" if "word_label" in policy.coords else "word"], "policy")
    return tuple(str(w) for w in labels.values.ravel())


def word_index(policy: xr.Dataset, word: str) -> int:
    """The number of `word` on the dim `word`; InputError if the policy does not have it."""
    words = words_of(policy)
    if word not in words:
        raise InputError(f"word = {word!r}: expected one of {', '.join(words)}")
    return words.index(word)


def space_of(policy: xr.Dataset) -> MemorySpace:
    """The memory space on which a policy is defined."""
    return MemorySpace.from_sizes(policy.sizes["state"], policy.sizes["word"])


def policy_hash(policy: xr.Dataset) -> str:
    """SHA-256 over the words and probabilities, hexadecimal: equal policies have equal hashes."""
    policy = _transposed(canonical_order(policy, "policy"))
    digest = hashlib.sha256("\0".join(map(str, policy["word_label"].values.ravel())).encode())
    digest.update(np.ascontiguousarray(policy["q"].values, dtype="<f8").tobytes())
    return digest.hexdigest()
