"""The form of a policy, or of a stack of policies over model and pair, and its canonical order."""

from __future__ import annotations

import numpy as np
import xarray as xr

from meanfield._population.reaction_model import ReactionModel
from meanfield._population.tabulation import ROW_SUM_TOLERANCE, probabilities, text_of
from meanfield.core._space import MemorySpace
from meanfield.toolbox._errors import InputError
from meanfield.toolbox._expect import expect
from meanfield.toolbox._labels import canonical_order, has_names
from meanfield.toolbox._texts import validate_text, validate_words

STACKED_DIMS = ("model", "pair")


def validate_policy(policy: xr.Dataset, name: str = "policy") -> xr.Dataset:
    """Check a policy, or a stack of policies over model and pair, and return it in canonical order.

    A policy has a float variable `q` with dims state and word, values in [0, 1], rows that sum to 1 within 1e-9, as
    many states as some memory length H has, and distinct words along `word`. The coordinates `state` and `word_number`
    hold the numbers of states and words, so that `policy.isel(word=[1, 0])` is the same policy. Without them the order
    of the array counts. Rows of float32, as other tools write them, may miss 1 by 1e-6 and are normalised in float64.

    A stack of several pairs has numbers along `word` and the words of each pair in `word_label` (pair, word). This
    gives one policy of it, or one result, its words:

        stack.sel(model="gpt-4o", pair="woman/man").set_index(word="word_label")

    `xr.concat(policies, "pair", join="outer")` lays the words of all pairs side by side, each pair NaN at the words of
    the others; such a stack is accepted and returned with numbers along `word`.

    Parameters
    ----------
    policy
        One policy, or a stack over model and pair.
    name
        What error messages call it.

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

    Examples
    --------
    >>> policy = meanfield.datasets.smollm2().sel(pair="his/her")
    >>> meanfield.validate_policy(policy.isel(word=[1, 0])).equals(meanfield.validate_policy(policy))
    True
    >>> try:
    ...     meanfield.validate_policy(policy.assign(q=0.5 * policy["q"]))
    ... except meanfield.InputError as error:
    ...     print(error)
    policy.q[state=0 (memory empty)] sums to 0.5 over the words: expected 1
    """
    if isinstance(policy, ReactionModel):
        raise InputError(f"{name} is a ReactionModel: expected a policy, for this function takes no reaction models")
    expect(policy, "policy", name)
    policy = numbered_by_pair(policy, name)
    _validate_dims(policy, name)
    _validate_labels(policy, name)
    policy = _numbered(transposed(canonical_order(policy, name)), name)
    _validate_probabilities(policy["q"], name)
    return policy


def numbered_by_pair(policy: xr.Dataset, name: str = "policy") -> xr.Dataset:
    """Each pair with its own words, where `xr.concat` laid the words of all pairs side by side."""
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


def transposed(policy: xr.Dataset) -> xr.Dataset:
    return policy.transpose(*STACKED_DIMS, ..., "state", "word", missing_dims="ignore")


def _numbered(policy: xr.Dataset, name: str) -> xr.Dataset:
    """With all coordinates along states and words, and `q` as float64 in C order, so that sums are rounded alike."""
    absent = {dim: np.arange(policy.sizes[dim]) for dim in ("state", "word") if dim not in policy.coords}
    if "word_number" not in policy.coords:  # it stays where a user makes the words the labels along `word`
        absent["word_number"] = ("word", np.arange(policy.sizes["word"]))
    policy = policy.assign_coords(absent) if absent else policy
    q = policy["q"]
    plain = probabilities(q.values, f"{name}.q", policy.sizes["word"])
    return policy if plain is q.values else policy.assign(q=q.copy(data=plain))


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
    # A stack of unequal sets has combinations of model and pair that were never measured.
    absent = np.isnan(values).all((-2, -1), keepdims=True) & (q.ndim > 2)
    wrong = ~((values >= 0) & (values <= 1) | absent)
    if wrong.any():
        raise InputError(f"{name}.q{_where(q, wrong)} = {values[wrong][0]}: expected a probability in [0, 1]")
    sums = values.sum(-1)
    wrong = np.abs(sums - 1) > ROW_SUM_TOLERANCE
    if wrong.any():
        raise InputError(f"{name}.q{_where(q, wrong)} sums to {sums[wrong][0]} over the words: expected 1")


def _where(q: xr.DataArray, mask: np.ndarray) -> str:
    """The labels of the first place where the mask is true, and the memory that is its state."""
    place = dict(zip(map(str, q.dims), np.argwhere(mask)[0].tolist(), strict=False))  # a mask of sums has no words
    labels = {dim: q[dim].values[i] if dim in q.coords else i for dim, i in place.items()}
    named = q.isel({dim: place[dim] for dim in STACKED_DIMS if dim in place})
    words = named["word_label" if "word_label" in named.coords else "word"].values
    memory = MemorySpace.from_sizes(q.sizes["state"], q.sizes["word"]).memory(place["state"])
    labels["state"] = f"{labels['state']} (memory {text_of(tuple((words[a], words[b]) for a, b in memory))})"
    return f"[{', '.join(f'{dim}={label}' for dim, label in labels.items())}]"
