"""Functions of one policy that take stacks over model and pair as well."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float

from meanfield._population.compositions import fractions_in_order, validate_composition
from meanfield._population.mixture import Mixture
from meanfield._population.policy_schema import STACKED_DIMS, validate_policy
from meanfield._population.population import Population, as_population
from meanfield._population.provenance import Option, stamp
from meanfield._population.single_policy import hash_of, names_of
from meanfield.toolbox._columns import Columns, labelled
from meanfield.toolbox._errors import InputError
from meanfield.toolbox._labels import in_order

WORDS = ("word", "word_label", "word_number")
COMPONENT = ("component", "component_policy", "component_fraction", "committed")


@dataclass(frozen=True)
class Games:
    """One policy, a stack of policies or a population as arrays, with what labels their results."""

    mixtures: list[Any]  # each a `Mixture` or, where that is allowed, `Groups`
    names: list[str]
    words: list[tuple[str, ...]]
    population: Population | None  # None for a stack
    given: xr.Dataset | Population
    dims: list[str]  # of a stack
    places: list[int]  # of its policies, along its dims

    def compositions(self, composition: xr.DataArray | np.ndarray) -> list[Float[np.ndarray, "kinds states"]]:
        """A composition for each game, the same one or along the dims of the stack; InputError as it is validated."""
        policies: Any = self.given
        # Of a dim of size 1 a result of `solve` has the label along it
        known = policies.coords if isinstance(policies, xr.Dataset) else {}
        for dim in {*STACKED_DIMS} & {*known} - {*self.dims}:
            if isinstance(composition, xr.DataArray) and dim in composition.dims:
                composition = in_order(composition, {dim: [policies[dim].item()]}, "composition").squeeze(dim)
        if self.population is not None:
            return [validate_composition(composition, self.population)]
        along = [dim for dim in self.dims if isinstance(composition, xr.DataArray) and dim in composition.dims]
        if along:
            composition = in_order(composition, {dim: policies[dim].values.tolist() for dim in along}, "composition")
        states = self.mixtures[0].space.n_states
        places = np.unravel_index(self.places, [policies.sizes[dim] for dim in self.dims])
        each = []
        for place in zip(*places, strict=True):
            at = {dim: number for dim, number in zip(self.dims, place, strict=True) if dim in along}
            one = composition.isel(at) if at else composition
            each.append(fractions_in_order(one, (1, states), {"component": range(1), "state": range(states)}))
        return each

    def labels(self, name: str) -> list[str]:
        """The `model` or the `pair` of each game, '' if it has none; a population has its own words for them."""
        if isinstance(self.given, Population):
            return [self.given.model if name == "model" else "/".join(self.given.words)]
        if name not in self.given.coords:
            return [""] * len(self.mixtures)
        each = _each(self.given[name], self.given, self.dims)
        return [str(each[place]) for place in self.places or [0]]

    def labelled(self, each: Sequence[Columns], *numbered: str, **texts: Sequence[Any]) -> xr.Dataset:
        """A Dataset of the columns of each game, as for `toolbox._columns.labelled`; dims `numbered` get numbers.

        In a stack shorter columns are filled: numbers with NaN, texts with '', truth values with False. `texts`, one a
        game, are attributes, and variables of a stack.
        """
        if not isinstance(self.given, Population):
            each = [{name: _without_component(*column) for name, column in columns.items()} for columns in each]
        columns = each[0] if self.population is not None else self._stacked(each)
        dims = {dim for own, *_ in columns.values() for dim in own}
        coords = self._coords(dims)
        result = labelled(columns, coords)
        result = result.assign_coords({dim: np.arange(result.sizes.get(dim, 0)) for dim in numbered})
        if self.population is not None:
            attrs = {"policy": self.names[0], **{key: text for key, (text,) in texts.items()}}
            return result.assign_coords(names_of(self.given)).assign_attrs(attrs)
        hashes = [hash_of(said, mixture.q[0]) for said, mixture in zip(self.words, self.mixtures, strict=True)]
        for name, values in {**texts, "policy_sha256": hashes}.items():
            result[name] = (self.dims, self._placed([np.asarray(value) for value in values]))
        return result

    def _coords(self, dims: set[str]) -> dict[str, Any]:
        """Coordinates of the policies along these dims."""
        if self.population is None:
            policies: Any = self.given
            return {name: policies[name] for name in (*STACKED_DIMS, *WORDS) if name in policies.coords} | (
                {"state": policies["state"]} if "state" in dims else {}
            )
        without = {"state"} - dims | ({*COMPONENT} if "component" not in dims else set())
        return {name: values for name, values in self.population.coords.items() if name not in without}

    def _stacked(self, each: Sequence[Columns]) -> Columns:
        return {
            name: ((*self.dims, *own), self._placed([np.asarray(columns[name][1]) for columns in each]), *label)
            for name, (own, _, *label) in each[0].items()
        }

    def _placed(self, parts: list[np.ndarray]) -> np.ndarray:
        """The arrays of all games over the dims of the stack."""
        shape = np.max([part.shape for part in parts], axis=0).astype(int)
        kind = np.result_type(*parts)
        sizes = tuple(self.given.sizes[dim] for dim in self.dims)
        whole = np.full((np.prod(sizes), *shape), _filling(kind), float if kind.kind in "iu" else kind)
        for place, part in zip(self.places, parts, strict=True):
            whole[(place, *(slice(size) for size in part.shape))] = part
        return whole.reshape(*sizes, *shape)

    def stamped(self, result: xr.Dataset, kind: str, **options: Option) -> xr.Dataset:
        """`result` with attrs that say where it comes from."""
        result = stamp(result, kind, self.given, **options)
        if self.population is None:
            del result.attrs["policy_sha256"]  # each policy has its own
        return result


def _without_component(dims: tuple[str, ...], values: Any, *label: str) -> tuple:
    """A column of a single policy."""
    if "component" not in dims:
        return dims, values, *label
    return tuple(dim for dim in dims if dim != "component"), np.take(values, 0, dims.index("component")), *label


def as_games(
    policy: xr.Dataset | Population, name: str = "policy", *, in_groups: bool = False, on_graph: bool = False
) -> Games:
    """The arrays of one policy, a stack of policies or a population; InputError if it is none of these.

    A population in groups is refused unless `in_groups`, and one on a graph unless `on_graph`: then its arrays leave
    out the graph.
    """
    if isinstance(policy, Population) or not isinstance(policy, xr.Dataset) or not set(STACKED_DIMS) & set(policy.dims):
        one = as_population(policy)
        if on_graph and one.degree is not None:
            mixture = Mixture(*one.arrays[:3])
        else:
            mixture = one.all_mix if in_groups else one.mixture
        return Games([mixture], [one.name], [one.words], one, policy, [], [])
    policies = validate_policy(policy, name)
    policies = policies.squeeze([dim for dim in STACKED_DIMS if policies.sizes.get(dim) == 1])
    dims = [dim for dim in STACKED_DIMS if dim in policies.dims]
    if not dims:
        return as_games(policies, name)
    labels = "word_label" if "word_label" in policies.coords else "word"
    q, words = (_each(policies[key], policies, dims) for key in ("q", labels))
    places = np.flatnonzero(~np.isnan(q).all((1, 2))).tolist()
    if not places:
        raise InputError(f"{name} holds no policy: every combination of model and pair is NaN")
    said = [tuple(map(str, words[place])) for place in places]
    games = Games([Mixture.alone(q[place]) for place in places], [], said, None, policies, dims, places)
    for model, one in zip(games.labels("model"), said, strict=True):
        games.names.append(f"{model} {{{', '.join(one)}}}".lstrip())
    return games


def _each(values: xr.DataArray, policies: xr.Dataset, dims: list[str]) -> np.ndarray:
    """`values` of each policy, along one axis."""
    absent = {dim: policies.sizes[dim] for dim in dims if dim not in values.dims}
    whole = values.expand_dims(absent).transpose(*dims, ...).values
    return whole.reshape(-1, *whole.shape[len(dims) :])


def _filling(dtype: np.dtype) -> Any:
    """For absent entries; whole numbers have become floats."""
    return {"U": "", "b": False}.get(dtype.kind, np.nan)
