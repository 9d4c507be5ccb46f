"""The policy: what an agent says in every memory state, as a labelled table."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

import numpy as np
import xarray as xr

from meanfield._population.memory import MemorySpace
from meanfield._population.reaction_model import ReactionModel
from meanfield.toolbox._errors import InputError
from meanfield.toolbox._files import load
from meanfield.toolbox._labels import canonical_order, in_order, real_numbers, values_in_order
from meanfield.toolbox._texts import validate_attrs, validate_text, validate_words

# A softmax of float64 logits sums to 1 within a few ulp; float32 tables (1e-7) are not silently accepted.
ROW_SUM_TOLERANCE = 1e-9
STACKED_DIMS = ("model", "pair")
PLACES = {"model": -2, "pair": -1, "state": 1, "word": 2}  # of dims; others between them


def make_policy(
    q: np.ndarray | xr.DataArray,
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
        order of `MemorySpace`, those of a DataArray by its coordinates `state` and `word`.
    words
        The W words, number 0 first; all different, not empty, without what files can't keep (NUL, lone surrogates).
    model
        Name of the language model, kept as the coordinate `model`.
    attrs
        Numbers, strings and lists of them that say where the policy comes from.

    Returns
    -------
    Dataset with `q` (state, word), the coordinate `word_label` (word), scalar coordinates `model` and `pair`.

    Raises
    ------
    InputError
        If `q` is not a policy over these words: shape, values, masked or not real; or files can't keep a text.
    """
    validate_words(words, "words")
    validate_attrs({} if attrs is None else attrs, "attrs")
    if model is not None:
        validate_text(model, "model")
    q = _choice_probabilities(q, words)
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


def _choice_probabilities(q: np.ndarray | xr.DataArray, words: Sequence[str]) -> np.ndarray:
    if not isinstance(q, xr.DataArray):
        return real_numbers(q, "q")
    labels = {"state": range(q.sizes.get("state", 0)), "word": range(len(words))}
    given = in_order(q, labels, "q").coords.get("word_label")
    if given is not None and given.values.tolist() != list(words):
        raise InputError(f"q has word_label = {given.values.tolist()}: expected {list(words)}, as words")
    return values_in_order(q, labels, "q")


def validate_policy(policy: xr.Dataset, name: str = "policy") -> xr.Dataset:
    """`policy`, or a stack of policies over model and pair, in canonical order; InputError if it is none.

    A policy has a float variable `q` with dims state and word, values in [0, 1], rows that sum to 1 within 1e-9, as
    many states as some memory length H has, and a coordinate `word_label` with distinct words for each pair. Dims may
    be in any order, and states and words too where their coordinates number them: `policy.isel(word=[1, 0])` is the
    same policy. A policy without these coordinates is taken as it stands.

    Returns
    -------
    The policy with dims (model, pair, state, word), states and words numbered from 0 upwards.

    Raises
    ------
    InputError
        If it is no policy, or states or words are missing, foreign or there twice.
    """
    if not isinstance(policy, xr.Dataset):
        hint = "; solve, fixed_points and spectrum take reaction models" if isinstance(policy, ReactionModel) else ""
        raise InputError(f"{name} is a {type(policy).__name__}: expected an xarray.Dataset with a variable q{hint}")
    if "q" not in policy:
        raise InputError(f"{name} has the variables {sorted(map(str, policy.data_vars))}: expected q among them")
    _validate_dims(policy, name)
    policy = _numbered(_transposed(canonical_order(policy, name)))
    _validate_labels(policy, name)
    _validate_probabilities(policy["q"], name)
    return policy


def load_policy(path: str | os.PathLike[str]) -> xr.Dataset:
    """Read and validate a policy, or a stack of policies over (model, pair), from a NetCDF file.

    Raises
    ------
    InputError
        If the file cannot be read or holds no valid policy.
    """
    return validate_policy(load(path), name=str(path))


def _transposed(policy: xr.Dataset) -> xr.Dataset:
    # To look takes a tenth of the time of a transposition that changes nothing.
    if all(list(one.dims) == sorted(one.dims, key=_place) for one in policy.variables.values()):
        return policy
    return policy.transpose(*STACKED_DIMS, ..., "state", "word", missing_dims="ignore")


def _place(dim: Hashable) -> int:
    return PLACES.get(str(dim), 0)


def _numbered(policy: xr.Dataset) -> xr.Dataset:
    """With coordinates `state` and `word`, and `q` in C order, so that sums are rounded alike."""
    absent = {dim: np.arange(policy.sizes[dim]) for dim in ("state", "word") if dim not in policy.coords}
    policy = policy.assign_coords(absent) if absent else policy
    q = policy["q"]
    return policy if q.values.flags.c_contiguous else policy.assign(q=q.copy(data=np.ascontiguousarray(q.values)))


def _validate_dims(policy: xr.Dataset, name: str) -> None:
    dims = set(policy["q"].dims)
    if not {"state", "word"} <= dims or not dims <= {"state", "word", *STACKED_DIMS}:
        raise InputError(
            f"{name}.q has dims {policy['q'].dims}: expected state and word, and model and pair where there are many"
        )
    for dim in dims - {"state", "word"}:
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
    for words in labels.values.reshape(-1, policy.sizes["word"]).tolist():
        validate_words(words, f"{name}.word_label")
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
    one = policy.squeeze([dim for dim in STACKED_DIMS if dim in policy.dims])
    if np.isnan(one["q"].values).all():
        raise InputError(f"{name}.q is NaN throughout: expected a probability in [0, 1]")
    return one


def each_policy(policies: xr.Dataset | Iterable[xr.Dataset]) -> Iterator[xr.Dataset]:
    """The policies of a stack, or of several, one by one as `single_policy` returns them, models outermost.

    A combination of model and pair that was never measured (all NaN) is passed over.
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
                yield one


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
    """The words of a single policy, number 0 first."""
    labels = in_order(policy["word_label"], {"word": range(policy.sizes["word"])}, "policy")
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
