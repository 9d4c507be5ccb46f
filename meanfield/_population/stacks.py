"""Functions of one policy that take stacks over model and pair as well."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, ParamSpec

import numpy as np
import pandas as pd
import xarray as xr

from meanfield._population.mixture import Mixture
from meanfield._population.policy_schema import STACKED_DIMS, validate_policy
from meanfield._population.population import Population, as_population, without_component
from meanfield._population.single_policy import hash_of, names_of
from meanfield.toolbox._columns import Columns, labelled
from meanfield.toolbox._errors import InputError

Arguments = ParamSpec("Arguments")
WORDS = ("word", "word_label", "word_number")


@dataclass(frozen=True)
class Games:
    """One policy, a stack of policies or a population as arrays, with what labels their results."""

    mixtures: list[Mixture]
    names: list[str]
    words: list[tuple[str, ...]]
    population: Population | None  # None for a stack
    given: xr.Dataset | Population
    dims: list[str]  # of a stack
    places: list[int]  # of its policies, along its dims

    def labelled(self, columns: Columns, over: str, numbers: list[int], **texts: list[str]) -> xr.Dataset:
        """A Dataset of `columns`, as for `toolbox._columns.labelled`, along `over` of all games one after another.

        ``numbers[i]`` rows belong to game i.

        In a stack shorter columns are filled: numbers with NaN, texts with '', truth values with False. `texts` are
        attributes, and variables of a stack.
        """
        if self.population is not None:
            coords = {**self.population.coords, over: np.arange(numbers[0])}
            result = without_component(labelled(columns, coords), self.given).assign_coords(names_of(self.given))
            return result.assign_attrs(policy=self.names[0], **{key: text for key, (text,) in texts.items()})
        policies: Any = self.given
        most = max(numbers)
        sizes = tuple(policies.sizes[dim] for dim in self.dims)
        place = np.repeat(self.places, numbers)
        row = np.concatenate([np.arange(number) for number in numbers])
        whole = {}
        for name, (dims, flat, *label) in columns.items():
            dims, flat = [dim for dim in dims if dim != "component"], flat[:, 0] if "component" in dims else flat
            filled = np.full(
                (np.prod(sizes), most, *flat.shape[1:]),
                _filling(flat.dtype),
                float if flat.dtype.kind in "iu" else flat.dtype,
            )
            filled[place, row] = flat
            whole[name] = ((*self.dims, *dims), filled.reshape(*sizes, *filled.shape[1:]), *label)
        coords = {name: policies[name] for name in (*STACKED_DIMS, *WORDS, "state") if name in policies.coords}
        result = labelled(whole, {**coords, over: np.arange(most)})
        hashes = [hash_of(said, mixture.q[0]) for said, mixture in zip(self.words, self.mixtures, strict=True)]
        texts = {**texts, "policy_sha256": hashes}
        for name, values in texts.items():
            filled = np.full(np.prod(sizes), "", np.array(values).dtype)
            filled[self.places] = values
            result[name] = (self.dims, filled.reshape(sizes))
        return result


def as_games(policy: xr.Dataset | Population, name: str = "policy") -> Games:
    """The arrays of one policy, a stack of policies or a population; InputError if it is none."""
    if isinstance(policy, Population) or not isinstance(policy, xr.Dataset) or not set(STACKED_DIMS) & set(policy.dims):
        one = as_population(policy)
        return Games([one.mixture], [one.name], [one.words], one, policy, [], [])
    policies = validate_policy(policy, name)
    policies = policies.squeeze([dim for dim in STACKED_DIMS if policies.sizes.get(dim) == 1])
    dims = [dim for dim in STACKED_DIMS if dim in policies.dims]
    if not dims:
        return as_games(policies, name)
    labels = "word_label" if "word_label" in policies.coords else "word"
    q, words = (_each(policies[key], policies, dims) for key in ("q", labels))
    models = _each(policies["model"], policies, dims) if "model" in policies.coords else None
    places = np.flatnonzero(~np.isnan(q).all((1, 2))).tolist()
    if not places:
        raise InputError(f"{name} holds no policy: every combination of model and pair is NaN")
    said = [tuple(map(str, words[place])) for place in places]
    before = ["" if models is None else f"{models[place]} " for place in places]
    names = [f"{model}{{{', '.join(one)}}}" for model, one in zip(before, said, strict=True)]
    return Games([Mixture.alone(q[place]) for place in places], names, said, None, policies, dims, places)


def _each(values: xr.DataArray, policies: xr.Dataset, dims: list[str]) -> np.ndarray:
    """`values` of each policy, along one axis."""
    absent = {dim: policies.sizes[dim] for dim in dims if dim not in values.dims}
    whole = values.expand_dims(absent).transpose(*dims, ...).values
    return whole.reshape(-1, *whole.shape[len(dims) :])


def each_of_stack(function: Callable[Arguments, xr.Dataset]) -> Callable[Arguments, xr.Dataset]:
    """`function` of one policy, its first argument, for a stack too: a result for each policy, over the stack's dims.

    Where results differ in length, shorter ones are filled: numbers with NaN, texts with '', truth values with False.
    Attributes that differ become variables. As in `solve`, words are numbered and `word_label` names them.
    """
    first = next(iter(inspect.signature(function).parameters))

    @wraps(function)
    def call(*arguments: Arguments.args, **options: Arguments.kwargs) -> xr.Dataset:
        policy = arguments[0] if arguments else options.get(first)
        if not isinstance(policy, xr.Dataset) or not set(STACKED_DIMS) & set(policy.dims):
            return function(*arguments, **options)
        policies = validate_policy(policy, first)
        dims = [dim for dim in STACKED_DIMS if policies.sizes.get(dim, 1) > 1]
        if not dims:
            return function(*arguments, **options)
        found: dict[tuple[int, ...], xr.Dataset] = {}
        for place in np.ndindex(*(policies.sizes[dim] for dim in dims)):
            one = policies.isel(dict(zip(dims, place, strict=True)))
            if not np.isnan(one["q"].values).all():
                alone: Any = (one, *arguments[1:]) if arguments else ()
                found[place] = function(*alone, **({**options, first: one} if not arguments else options))
        if not found:
            raise InputError(f"{first} holds no policy: every combination of model and pair is NaN")
        return _together(found, policies, dims)

    return call


def _together(found: dict[tuple[int, ...], xr.Dataset], policies: xr.Dataset, dims: list[str]) -> xr.Dataset:
    parts = [_numbered(one) for one in found.values()]
    first = parts[0]
    # "policy" names model and pair, which are coordinates here
    keys = dict.fromkeys(key for one in parts for key in one.attrs if key != "policy")
    apart = [key for key in keys if len({str(one.attrs.get(key)) for one in parts}) > 1]
    parts = [one.assign({key: one.attrs.get(key, "") for key in apart}) for one in parts]
    fill = {name: _filling(values.dtype) for name, values in parts[0].variables.items() if name not in first.dims}
    whole = xr.concat(parts, "place", join="outer", fill_value=fill, combine_attrs="drop_conflicts", data_vars="all")
    places = pd.MultiIndex.from_tuples(list(found), names=[f"{dim}_place" for dim in dims])
    whole = whole.assign_coords(xr.Coordinates.from_pandas_multiindex(places, "place")).unstack(
        "place", fill_value=fill
    )
    whole = whole.rename({f"{dim}_place": dim for dim in dims}).transpose(*dims, ...)
    kept = {name: policies[name] for name in (*STACKED_DIMS, *WORDS) if name in policies.coords}
    missing = {dim: range(policies.sizes[dim]) for dim in dims if whole.sizes[dim] < policies.sizes[dim]}
    return whole.reindex(missing, fill_value=fill).drop_vars(dims).assign_coords(kept)


def _numbered(one: xr.Dataset) -> xr.Dataset:
    """Words by number, all dims numbered, and no coordinate that belongs to the policy alone."""
    one = one.drop_vars([name for name in (*WORDS, *STACKED_DIMS) if name in one.coords])
    numbers = {dim: np.arange(size) for dim, size in one.sizes.items() if dim not in one.coords}
    whole = {name: values.astype(float) for name, values in one.data_vars.items() if values.dtype.kind in "iu"}
    return one.assign(whole).assign_coords(numbers)


def _filling(dtype: np.dtype) -> Any:
    """For absent entries; whole numbers have become floats."""
    return {"U": "", "b": False}.get(dtype.kind, np.nan)
