"""Every parameter of every public function, given values that it was not made for.

The other arguments are those of the first call in the example of the function. A call gives a result or a
MeanfieldError, in a short time and in little memory.
"""

from __future__ import annotations

import doctest
import inspect
from collections.abc import Callable, Iterator
from functools import cache, partial
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import meanfield
import policy_extraction
import theory
import validation
from _fuzz import Fault, fuzz
from _public_names import PUBLIC, things
from _refusals import refused
from meanfield import MeanfieldError

KNOWN = {
    **{"np": np, "pd": pd, "xr": xr, "Path": Path},
    **{"meanfield": meanfield, "policy_extraction": policy_extraction, "theory": theory, "validation": validation},
}
AWKWARD = ["-1", "2**31", "2**63", "10**400", "1e-300", "np.nan", "np.inf", "True", "1+5j", "np.array(1.0)", "None"]
AWKWARD += ["[10**400]", "'x'", "'\\0'", "'x' * 300", "[]", "['x', 1]", "object()", "iter('x')"]

# Arrays in, arrays out, under jax.jit.
ELSEWHERE = tuple(package for package in PUBLIC if package.startswith("meanfield.core"))
# As many rounds, interactions or encounters are played as were asked for.
LONG_GAMES = ("max_rounds", "rounds", "interactions", "interactions_per_agent", "encounters", "kappa")
LONG = {(name, "2**31") for name in LONG_GAMES}
LONG |= {("validation.minimal_naming_game.simulate", "n_agents", "2**31")}  # in batches, and they need little memory
LONG |= {("theory.flag_game.mechanism1.posterior", "warmup", "2**31")}  # draws that are not kept need none


class Recorded(BaseException):
    """Stands for the call that an example makes."""


class Public(NamedTuple):
    """A public function, class or method, by its names."""

    package: str
    names: str

    @property
    def owner(self) -> Any:
        *outer, _ = self.names.split(".")
        return getattr(import_module(self.package), outer[0]) if outer else import_module(self.package)

    @property
    def name(self) -> str:
        return self.names.rpartition(".")[2]


def public() -> Iterator[Public]:
    """All public functions, classes and methods, each where it is found first."""
    seen = set()
    for package in PUBLIC:
        for name, thing in things(package):
            if thing in seen or (isinstance(thing, type) and issubclass(thing, BaseException)):
                continue
            seen.add(thing)
            yield Public(package, name)
            if isinstance(thing, type):
                inner = (one for one, value in vars(thing).items() if inspect.isfunction(value))
                yield from (Public(package, f"{name}.{one}") for one in inner if not one.startswith("_"))


@cache
def example(one: Public) -> tuple[Callable[..., Any], inspect.BoundArguments]:
    """The callable, and the arguments of the first call in its example or in its class's."""
    thing = getattr(one.owner, one.name)
    signature = inspect.signature(thing)

    def record(*args: Any, **kwargs: Any) -> None:
        raise Recorded(signature.bind(*args, **kwargs))

    texts = [inspect.getdoc(thing), *([inspect.getdoc(one.owner)] if "." in one.names else [])]
    for text in filter(None, texts):
        names = {**KNOWN, "_public": import_module(one.package)}
        with mock.patch.object(one.owner, one.name, record):
            for part in doctest.DocTestParser().get_examples(text):
                try:
                    exec(compile(part.source, "<example>", "single"), names)
                except Recorded as call:
                    return thing, call.args[0]
                except Exception:  # an example that shows an error
                    continue
    raise LookupError(f"{one.names} is not called in its example")


def make_example(one: Public, random: object) -> None:
    """A case that takes the time of the example."""
    example(one)


def calls(one: Public, parameter: str, value: str, random: object) -> None:
    """A case: a call with this value of the parameter."""
    thing, first = example(one)
    bound = inspect.BoundArguments(first.signature, {**first.arguments, parameter: eval(value, KNOWN)})
    thing(*bound.args, **bound.kwargs)


def parameters(one: Public) -> list[str]:
    """Those that a user gives; any value says whether there is progress to show."""
    listed = inspect.signature(getattr(one.owner, one.name)).parameters.values()
    variable = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD
    return [each.name for each in listed if each.kind not in variable and each.name not in ("self", "progress")]


def listed(raw: object) -> list[object]:
    """A function as it must not be.

    >>> _public.listed([1])
    """
    return list(raw)


NAMED = [
    *(("meanfield", "save", "dataset", value) for value in ("None", "'x'")),
    *(("meanfield.toolbox", "words_of", "policy", value) for value in ("None", "[]")),
    *(("meanfield", "solve", name, "10**400") for name in ("max_time", "times")),
    *(("meanfield", name, "n_agents", "'10'") for name in ("finite_size", "group_size_law", "transition_rates")),
    *(("meanfield", "lifetime", name, "'x'") for name in ("masses", "n_agents")),
    *(("meanfield", "basins", "starts", value) for value in ("10**400", "2**63 - 1")),
    ("meanfield", "Population", "committed", "'x'"),
    ("meanfield", "load", "path", "'x' * 300"),
    *(("meanfield", "describe_stability", "table", value) for value in ("None", "xr.Dataset()")),
    *(("validation.naming_game", "committed_minority", "n_agents", value) for value in ("2**31", "10**400")),
    *(("validation.naming_game", "committed_minority", "runs", value) for value in ("2**40", "10**400")),
    *(("validation.naming_game", "committed_minority", name, "10**400") for name in ("rounds", "numbers", "seed")),
    ("validation.naming_game", "consensus_times", "quantiles", "'x'"),
    ("validation", "simulate", "committed", "{'A': 2**63}"),
    ("validation", "simulate", "runs", "10**400"),
    ("validation", "rare_event", "replications", "2**31"),
    *(("validation.reactions", "simulate", "counts", value) for value in ("np.array(3)", "'x'", "b'xx'")),
    ("theory.flag_game", "draw", "width", "2**31"),
]


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(("package", "names", "parameter", "value"), NAMED)
def test_refused_before_anything_is_spent(package: str, names: str, parameter: str, value: str) -> None:
    with refused():
        calls(Public(package, names), parameter, value, None)


@pytest.mark.slow
@pytest.mark.parametrize("one", [one for one in public() if one.package not in ELSEWHERE], ids=".".join)
def test_every_parameter(one: Public) -> None:
    if fuzz(partial(make_example, one), 1, allowed=(), deadline=200, memory=5, may_write=True):
        pytest.skip("not called in its example")
    assert faults(one) == []


def faults(one: Public) -> list[Fault]:
    name = f"{one.package}.{one.names}"
    given = product(parameters(one), AWKWARD)
    tried = (partial(calls, one, *each) for each in given if not {each, (name, *each)} & LONG)
    return [fault for case in tried for fault in fuzz(case, 1, allowed=(MeanfieldError,), deadline=60, may_write=True)]


@pytest.mark.slow
def test_raw_errors_are_found() -> None:
    assert len(faults(Public(__name__, "listed"))) > 5
