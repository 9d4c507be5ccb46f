"""The policy: what an agent says in every memory state, as a labelled table."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

import numpy as np
import xarray as xr

from meanfield._errors import InputError, reason
from meanfield._memory import MemorySpace

# A softmax of float64 logits sums to 1 within a few ulp; float32 tables (1e-7) are not silently accepted.
ROW_SUM_TOLERANCE = 1e-9
STACKED_DIMS = ("model", "pair")


def make_policy(
    q: np.ndarray,
    words: Sequence[str],
    *,
    model: str | None = None,
    attrs: Mapping[str, Hashable] | None = None,
) -> xr.Dataset:
    """A policy from an array of choice probabilities.

    Parameters
    ----------
    q
        Shape (S, W), P(an agent in `state` says `word`), or shape (S,), P(first word), for two words. States in the
        order of `MemorySpace`.
    words
        The W words, in the order of the columns of `q`; all different.
    model
        Name of the language model, kept as the coordinate `model`.
    attrs
        Numbers and strings that say where the policy comes from.

    Returns
    -------
    Dataset with `q` (state, word), the coordinate `word_label` (word), scalar coordinates `model` and `pair`.

    Raises
    ------
    InputError
        If `q` is not a policy over these words.
    """
    words = _checked_words(words)
    q = float_array("q", q)
    if model is not None and not isinstance(model, str):
        raise InputError(f"model = {model!r}: expected a name")
    if attrs is not None and not (isinstance(attrs, Mapping) and all(isinstance(key, str) for key in attrs)):
        raise InputError(f"attrs = {attrs!r}: expected a mapping of names to numbers and strings")
    if q.ndim == 1 and len(words) == 2:
        q = np.stack([q, 1 - q], axis=-1)
    if q.ndim != 2 or q.shape[1] != len(words):
        raise InputError(f"q has shape {q.shape}: expected (states, {len(words)}) for the words {', '.join(words)}")
    space = MemorySpace.from_sizes(q.shape[0], q.shape[1])
    coords = {
        "state": np.arange(space.n_states),
        "word": np.arange(space.n_words),
        "word_label": ("word", np.array(words, dtype=str)),
        "pair": "/".join(words),
    }
    if model is not None:
        coords["model"] = model
    policy = xr.Dataset({"q": (("state", "word"), q)}, coords=coords)
    policy["q"].attrs = {"long_name": "choice probability", "units": "1"}
    policy.attrs = {**(attrs or {}), "memory_length": space.memory_length, "kind": "policy"}
    return validate_policy(policy)


def float_array(name: str, values: object) -> np.ndarray:
    """`values` as float64; InputError where that would need a conversion of text or lose an imaginary part."""
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "biufO":
            raise TypeError(f"its type is {array.dtype}")
        return array.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{name}: expected an array of numbers ({reason(error)})") from None


def _checked_words(words: object) -> list[str]:
    """The words; InputError unless they are strings that labels hold as they are, so without a NUL at the end."""
    labels = [] if isinstance(words, str) or not isinstance(words, Iterable) else list(words)
    strings = all(isinstance(word, str) for word in labels)
    if not labels or not strings or np.array(labels, dtype=str).tolist() != labels:
        raise InputError(f"words = {words!r}: expected several strings")
    return labels


def validate_policy(policy: xr.Dataset, name: str = "policy") -> xr.Dataset:
    """Return `policy` unchanged if it is a policy (or a stack of them over model and pair); raise InputError if not.

    A policy has a float variable `q` with dims (…, state, word), values in [0, 1], rows that sum to 1 within 1e-9, as
    many states as some memory length H has, and a coordinate `word_label` with distinct words for each pair.
    """
    if not isinstance(policy, xr.Dataset):
        raise InputError(f"{name} is a {type(policy).__name__}: expected an xarray.Dataset with a variable q")
    if "q" not in policy:
        raise InputError(f"{name} has the variables {sorted(map(str, policy.data_vars))}: expected q among them")
    _validate_dims(policy, name)
    _validate_labels(policy, name)
    _validate_probabilities(policy["q"], name)
    return policy


def _validate_dims(policy: xr.Dataset, name: str) -> None:
    dims = policy["q"].dims
    if dims[-2:] != ("state", "word") or not set(dims[:-2]) <= set(STACKED_DIMS):
        raise InputError(f"{name}.q has dims {dims}: expected (state, word), after model and pair where there are many")
    for dim in dims[:-2]:
        if dim not in policy.coords or len(set(policy[dim].values.ravel())) < policy.sizes[dim]:
            raise InputError(f"{name} has a dim {dim} without a coordinate of names that differ")
    for dim in STACKED_DIMS:
        if dim in policy.coords and policy[dim].dims != ((dim,) if dim in dims else ()):
            raise InputError(f"{name}.{dim} has dims {policy[dim].dims}: expected one name, or one for each along q")
    space = MemorySpace.from_sizes(policy.sizes["state"], policy.sizes["word"])
    length = policy.attrs.get("memory_length", space.memory_length)
    if not np.array_equal(length, space.memory_length):
        raise InputError(
            f"{name} says memory_length = {length} and has {space.n_states} states, those of H = {space.memory_length}"
        )


def _validate_labels(policy: xr.Dataset, name: str) -> None:
    if "word_label" not in policy.coords:
        raise InputError(
            f"{name} has no coordinate word_label: expected the words themselves, dims (word) or (pair, word)"
        )
    labels = policy["word_label"]
    if "word" not in labels.dims or not set(labels.dims) <= {"pair", "word"}:
        raise InputError(f"{name}.word_label has dims {labels.dims}: expected (word) or (pair, word)")
    for words in labels.transpose(..., "word").values.reshape(-1, policy.sizes["word"]):
        if len(set(words)) < len(words):
            raise InputError(f"{name} has the words {', '.join(map(str, words))}: expected words that differ")


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
    """`policy` without dims of length one over model and pair; InputError if it stacks several."""
    validate_policy(policy, name)
    many = {dim: policy.sizes[dim] for dim in STACKED_DIMS if policy.sizes.get(dim, 1) > 1}
    if many:
        sizes = " and ".join(f"{n} {dim}s" for dim, n in many.items())
        raise InputError(f"{name} holds {sizes}: select one, as in {name}.sel(model=…, pair=…)")
    return validate_policy(policy.squeeze([dim for dim in STACKED_DIMS if dim in policy.dims]), name)


def each_policy(policies: xr.Dataset | Iterable[xr.Dataset]) -> Iterator[xr.Dataset]:
    """The policies of a stack, or of several, one by one, models outermost, each with its scalar model and pair.

    A combination of model and pair that was never measured (all NaN) is passed over.
    """
    if not isinstance(policies, xr.Dataset):
        if isinstance(policies, str) or not isinstance(policies, Iterable):
            raise InputError(f"policies has {policies!r}: expected xarray.Datasets")
        for stack in policies:
            yield from each_policy(stack)
        return
    validate_policy(policies)
    for i in range(policies.sizes.get("model", 1)):
        for j in range(policies.sizes.get("pair", 1)):
            one = policies.isel({d: k for d, k in (("model", i), ("pair", j)) if d in policies.dims})
            if not np.isnan(one["q"].values).all():
                yield single_policy(one, name_of(one))


def names_of(policy: object) -> dict[str, xr.DataArray]:
    """The coordinates model and pair of a single policy; none of anything else, as a population."""
    return (
        {name: policy[name] for name in STACKED_DIMS if name in policy.coords} if isinstance(policy, xr.Dataset) else {}
    )


def name_of(policy: xr.Dataset) -> str:
    """`model {first, second}`, for messages and titles."""
    words = "{" + ", ".join(words_of(policy)) + "}"
    return f"{policy['model'].item()} {words}" if "model" in policy.coords else words


def words_of(policy: xr.Dataset) -> tuple[str, ...]:
    """The words of a single policy, in the order of the dim `word`."""
    return tuple(str(w) for w in policy["word_label"].values.ravel())


def word_index(policy: xr.Dataset, word: str) -> int:
    """The place of `word` on the dim `word`; InputError if the policy does not have it."""
    words = words_of(policy)
    if word not in words:
        raise InputError(f"word = {word!r}: expected one of {', '.join(words)}")
    return words.index(word)


def space_of(policy: xr.Dataset) -> MemorySpace:
    """The memory space on which a policy is defined."""
    return MemorySpace.from_sizes(policy.sizes["state"], policy.sizes["word"])


def policy_hash(policy: xr.Dataset) -> str:
    """SHA-256 over the words and probabilities, hexadecimal: equal policies have equal hashes."""
    digest = hashlib.sha256("\0".join(map(str, policy["word_label"].values.ravel())).encode())
    digest.update(np.ascontiguousarray(policy["q"].values, dtype="<f8").tobytes())
    return digest.hexdigest()
