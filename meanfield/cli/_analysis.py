"""Commands that call one function: options and their help come from its arguments and docstring."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.console import RenderableType
from rich.markup import escape
from tqdm import tqdm

from meanfield.cli._common import Model, Pair, PolicyFile, app, numbered, over_pairs, read_policies
from meanfield.cli._options import Argument, Signature, parameter, read_signature, value
from meanfield.cli._output import Form, Output, Result, console, say

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from meanfield import Population

POLICY = ("policy", "policies", "population")
PROVENANCE = re.compile("kind|policy|policy_sha256|memory_length|(option|version)_.*")
# Of policies that become a population, where the function takes one and has no such arguments itself
FRACTIONS = "Take all policies of the file for one population, in these fractions."
POPULATION = {
    "committed": Argument("committed", "Mapping", None, "Fraction of all agents who always say a word, by word."),
    "fractions": Argument("fractions", "Sequence", None, FRACTIONS),
}


class Analysis(NamedTuple):
    """A command and its function.

    The points of the dims `rows` are the rows of the table of its result; `together` says that the function takes all
    policies at once; `summary` gives the printed lines in place of the table; `skip` are arguments that can't be typed;
    `first` are the columns that a narrow terminal shows before others; of those that begin as `largest` it shows the
    rows with the largest sizes.
    """

    name: str
    module: str
    function: str
    rows: tuple[str, ...]
    example: str
    together: bool = False
    summary: Callable[[Any], Iterable[RenderableType]] | None = None
    skip: tuple[str, ...] = ()
    first: tuple[str, ...] = ()
    largest: str = ""

    @property
    def signature(self) -> Signature:
        return read_signature(self.module, self.function)


def register(analyses: Iterable[Analysis]) -> None:
    """Make the commands, without importing the functions that they call."""
    signatures = {one.function: one.signature.arguments for one in analyses}
    for one in analyses:
        arguments = {name: a for name, a in one.signature.arguments.items() if name not in (*one.skip, "progress")}
        taken = [_keyword("out", Result), _keyword("format", Form)]
        if (first := next(iter(arguments))) in POLICY:
            subject = arguments.pop(first)
            taken += [_keyword("policies", PolicyFile, required=True), _keyword("model", Model), _keyword("pair", Pair)]
            if re.search("Population|Game", subject.annotation):  # a Game may be a Population
                arguments = POPULATION | arguments
        taken += [parameter(argument, _text(argument, signatures)) for argument in arguments.values()]
        _add(one, arguments, taken)


def _add(analysis: Analysis, arguments: Mapping[str, Argument], taken: list[inspect.Parameter]) -> None:
    def command(**given: Any) -> None:
        _run(analysis, arguments, given)

    command.__signature__ = inspect.Signature(taken)  # type: ignore[attr-defined]
    command.__annotations__ = {one.name: one.annotation for one in taken}
    command.__doc__ = escape(analysis.signature.summary)
    app.command(analysis.name, epilog=f"Example: meanfield {analysis.name} {analysis.example}")(command)


def _keyword(name: str, annotation: Any, required: bool = False) -> inspect.Parameter:
    default = inspect.Parameter.empty if required else None
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


def _text(argument: Argument, signatures: Mapping[str, Mapping[str, Argument]]) -> str:
    """The text of an argument in its docstring; 'As in `another`' is replaced by the text there."""
    referred = re.match(r"As (?:in|for) `(?:\w+\.)*(\w+)`", argument.text)
    there = signatures.get(referred[1], {}).get(argument.name) if referred else None
    if referred is None or there is None:
        return argument.text
    return there.text.removesuffix(".") + argument.text[referred.end() :]


def _run(analysis: Analysis, arguments: Mapping[str, Argument], given: dict[str, Any]) -> None:
    out = Output(given.pop("out"), given.pop("format"))
    place = [given.pop(name) for name in ("policies", "model", "pair") if name in given]
    typed = {name: one for name, one in given.items() if one is not None and one is not False}
    options = {name: value(arguments[name], one) for name, one in typed.items()}
    population = {name: options.pop(name) for name in [*options] if arguments[name] is POPULATION.get(name)}
    call = partial(getattr(import_module(analysis.module), analysis.function), **options)
    subjects = _subjects(read_policies(*place), analysis.together, population) if place else [None]
    seen = sys.stderr.isatty()
    has_bar = "progress" in inspect.signature(call).parameters
    if has_bar:
        call.keywords["progress"] = seen
    hidden = not seen or (has_bar and len(subjects) == 1)
    watched = tqdm(subjects, desc=analysis.name, unit="policy", disable=hidden, leave=False)
    results = [
        call() if subject is None else _named(_result(call, subject, len(subjects)), subject) for subject in watched
    ]
    if analysis.summary is not None:
        for line in (line for result in results for line in analysis.summary(result)):
            say(line) if isinstance(line, str) else console.print(line)
    elif out.path is None:
        from meanfield._tables.result_table import shown_table

        table = _table(results, analysis)
        if analysis.largest:
            size = table.filter(regex=f"^{analysis.largest}").abs().max(axis=1)
            table = table.loc[size.sort_values(ascending=False, kind="stable").index]
        console.print(shown_table(table, console.width, analysis.rows, analysis.first))
    joined = None
    if out.form == "nc":  # attrs that differ would be lost
        joined = over_pairs(results if len(results) == 1 else [_with_notes(result) for result in results])
    out.write(joined, partial(_written, results, analysis))


def _subjects(policies: xr.Dataset, together: bool, population: dict[str, Any]) -> list[Any]:
    """The policies or populations with which the function is called, one by one."""
    import meanfield

    if "fractions" in population:
        return [meanfield.Population(list(meanfield.each_policy(policies)), **population)]
    if population:
        return [meanfield.Population(policy, **population) for policy in meanfield.each_policy(policies)]
    return [policies] if together else list(meanfield.each_policy(policies))


def _result(call: Callable[[Any], xr.Dataset], subject: Any, number: int) -> xr.Dataset:
    """The result of one of a number of policies; a refusal names the policy."""
    import xarray as xr

    from meanfield import InputError
    from meanfield.toolbox import name_of

    try:
        return call(subject)
    except InputError as error:
        if isinstance(subject, xr.Dataset) and {"model", "pair"} & {*subject.dims}:
            raise
        name = name_of(subject) if isinstance(subject, xr.Dataset) else subject.name
        told = f"{error}" if name in f"{error}" else f"{name}: {error}"
        more = f" (--model and --pair take one of {number} policies)" if number > 1 else ""
        raise InputError(told + more) from error


def _named(result: xr.Dataset, subject: xr.Dataset | Population) -> xr.Dataset:
    """The result with the names of a population, which results don't have."""
    import xarray as xr

    if isinstance(subject, xr.Dataset):
        return result
    return result.assign_coords(model=subject.model, pair="/".join(subject.words))


def _table(results: Iterable[xr.Dataset], analysis: Analysis) -> pd.DataFrame:
    """One table of all results, with the attrs of each as columns."""
    import pandas as pd

    from meanfield._tables.result_table import result_table

    noted = [_with_notes(one) for one in results]
    if len({tuple(one["word"].values.tolist()) for one in noted if "word" in one.coords}) > 1:
        noted = numbered(noted)  # a column for each word of each pair would be empty in the rows of the others
    return pd.concat([result_table(one, analysis.rows) for one in noted], ignore_index=True)


def _with_notes(result: xr.Dataset) -> xr.Dataset:
    """The result with its attrs, except provenance, as coordinates."""
    import numpy as np

    taken = {*result.variables, *result.dims}
    notes = {name: note for name, note in result.attrs.items() if name not in taken and not PROVENANCE.fullmatch(name)}
    return result.assign({name: note for name, note in notes.items() if np.ndim(note) == 0})


def _written(results: Iterable[xr.Dataset], analysis: Analysis, form: str) -> str:
    from meanfield._tables.result_table import table_text

    return table_text(_table(results, analysis), form, analysis.signature.summary, analysis.name)
