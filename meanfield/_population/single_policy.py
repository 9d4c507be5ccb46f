"""One policy out of a stack, and its names, words, space and hash."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import xarray as xr

from meanfield._population.policy_schema import STACKED_DIMS, transposed, validate_policy
from meanfield.core._space import MemorySpace
from meanfield.toolbox._arguments import shown
from meanfield.toolbox._errors import InputError
from meanfield.toolbox._labels import canonical_order

NOT_SEVERAL = (str, bytes, xr.Dataset, xr.DataArray, np.ndarray, Mapping)


def single_policy(policy: xr.Dataset, name: str = "policy") -> xr.Dataset:
    """`policy` as `validate_policy` returns it, without dims over model and pair; InputError if it stacks several."""
    policy = validate_policy(policy, name)
    many = {dim: policy.sizes[dim] for dim in STACKED_DIMS if policy.sizes.get(dim, 1) > 1}
    if many:
        sizes = " and ".join(f"{n} {dim}s" for dim, n in many.items())
        raise InputError(f"{name} holds {sizes}: select one, as in {name}.sel({'=…, '.join(many)}=…)")
    one = canonical_order(policy.squeeze([dim for dim in STACKED_DIMS if dim in policy.dims]), name)
    if np.isnan(one["q"].values).all():
        raise InputError(f"{name}.q is NaN throughout: expected a probability in [0, 1]")
    return one


def each_policy(policies: xr.Dataset | Iterable[xr.Dataset]) -> Iterator[xr.Dataset]:
    """Iterate over the single policies of a stack, or of several stacks, models outermost.

    Each is a policy as `validate_policy` returns it, without the dims model and pair. Combinations of model and pair
    that are NaN throughout were never measured and are skipped.

    Raises
    ------
    InputError
        If a stack is not valid.

    Examples
    --------
    >>> policies = meanfield.datasets.smollm2()
    >>> for policy in meanfield.each_policy(policies.sel(pair=["his/her", "woman/man"])):
    ...     print(policy["pair"].item(), policy["q"].sel(state=0).values.round(2))
    his/her [0.52 0.48]
    woman/man [0.03 0.97]
    """
    if isinstance(policies, Iterable) and not isinstance(policies, NOT_SEVERAL):
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
    """The words of a single policy, number 0 first.

    Raises
    ------
    InputError
        If `policy` is not a Dataset with words.

    Examples
    --------
    >>> meanfield.toolbox.words_of(meanfield.datasets.smollm2().sel(pair="his/her"))
    ('his', 'her')
    """
    if not isinstance(policy, xr.Dataset) or not {"word", "word_label"} & {*policy.variables}:
        raise InputError(f"policy = {shown(policy)}: expected a policy, as meanfield.make_policy returns it")
    labels = canonical_order(policy["word_label" if "word_label" in policy.coords else "word"], "policy")
    return tuple(str(w) for w in labels.values.ravel())


def word_index(policy: xr.Dataset, word: str) -> int:
    """The number of `word` on the dim `word`; InputError if the policy does not have it."""
    return word_number(words_of(policy), word)


def word_number(words: tuple[str, ...], word: str, name: str = "word") -> int:
    """The number of a word among `words`; InputError if it is not among them."""
    if not isinstance(word, str) or word not in words:
        raise InputError(f"{name} = {shown(word)}: expected one of {', '.join(words)}")
    return words.index(word)


def space_of(policy: xr.Dataset) -> MemorySpace:
    """The memory space on which a policy is defined."""
    return MemorySpace.from_sizes(policy.sizes["state"], policy.sizes["word"])


def policy_hash(policy: xr.Dataset) -> str:
    """SHA-256 over the words and probabilities, hexadecimal: equal policies have equal hashes."""
    policy = transposed(canonical_order(policy, "policy"))
    return hash_of(policy["word_label"].values.ravel(), policy["q"].values)


def hash_of(words: Iterable[str], q: np.ndarray) -> str:
    """`policy_hash` of these words and probabilities."""
    digest = hashlib.sha256("\0".join(map(str, words)).encode())
    digest.update(np.ascontiguousarray(q, dtype="<f8").tobytes())
    return digest.hexdigest()
