"""Commands that draw: figures, explore, a page for a browser, and demo, the whole chain."""

from __future__ import annotations

import re
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from meanfield import InputError
from meanfield.cli._common import POLICIES, Model, Pair, PolicyFile, Seed, app, captured, read_policies
from meanfield.cli._options import split
from meanfield.cli._output import Output, check_place, console, say
from meanfield.cli._populations import compare_policies

if TYPE_CHECKING:
    import xarray as xr

OF_POLICIES = "004"  # the other papers have data of their own


@app.command(epilog="Example: meanfield figures --paper 004 --out figures; meanfield figures solution.nc --out results")
def figures(
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder to write into; made if it is not there.")],
    results: Annotated[
        list[Path] | None, typer.Argument(metavar="RESULTS…", help="Files from solve, stability or validate.")
    ] = None,
    paper: Annotated[list[str] | None, typer.Option(help="Draw the items of a paper, such as 004.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Draw the items of all papers.")] = False,
    only: Annotated[list[str] | None, typer.Option(help="Of a paper these items only: 3, S9, Table S1.")] = None,
    policies: Annotated[str, typer.Option(help=POLICIES)] = "llm-group-size",
    model: Model = None,
    quick: Annotated[bool, typer.Option(help="A tenth of the simulated runs.")] = False,
    seed: Seed = 1,
) -> None:
    """Draw results as in the papers, a file for each; or a paper's own figures and tables, with an index.

    For a paper everything is computed from the published policies. The same call goes on where it was interrupted.
    """
    papers = paper or []
    if bool(papers or every) == bool(results):
        raise InputError("results and --paper: expected files to draw, or a paper")
    check_place(out, folder=True)
    if not (papers or every):
        _draw_results(results or [], out)
        return
    from paper_figs._item import chosen, items
    from paper_figs._publish import publish
    from paper_figs._study import Study

    known = sorted({item.paper for item in items()})
    found = chosen(known if every else papers, split(only or []))
    of_policies = any(item.paper == OF_POLICIES for item in found)
    data = _stack(read_policies(policies, model)) if of_policies else None
    study = Study(data, out / "numbers", quick=quick, seed=seed, progress=sys.stderr.isatty())
    entries = publish(found, study, out, say)
    drawn = sum(bool(entry.files) for entry in entries)
    say(f"wrote {out / 'index.html'}: {drawn} of {len(entries)} drawn")
    if not drawn:
        source = "of the data at hand" if data is None else f"from policies = {policies}"
        raise InputError(f"nothing can be drawn {source}; {out / 'index.html'} says why")


def _stack(policies: xr.Dataset) -> xr.Dataset:
    for dim in ("model", "pair"):
        if dim in policies.coords and dim not in policies.dims:
            policies = policies.expand_dims(dim)
    return policies


def _draw_results(results: list[Path], out: Path) -> None:
    import meanfield
    from paper_figs import mean_field_dynamics, table_s1, theory_and_simulation

    makers = {
        "solution": (mean_field_dynamics.draw, ".png"),
        "comparison": (theory_and_simulation.draw, ".png"),
        "stability_table": (table_s1.draw, "_against_paper.csv"),
    }
    loaded = {path: meanfield.load(path) for path in results}
    for path, result in loaded.items():
        if result.attrs.get("kind") not in makers:
            raise InputError(f"{path}: expected a file from solve, stability or validate")
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out) as folder:
        drawn = []
        for path, result in loaded.items():
            draw, ending = makers[result.attrs["kind"]]
            for name, one in _by_model(path.stem, result):
                drawn.append(draw(one, Path(folder) / f"{name}{ending}"))
        for path in drawn:
            say(f"wrote {path.replace(out / path.name)}")


@app.command(epilog="Example: meanfield explore smollm2 --out explorer.html")
def explore(
    policies: PolicyFile,
    out: Annotated[Path, typer.Option("--out", "-o", help="HTML file to write; - is stdout.")] = Path("explorer.html"),
    model: Model = None,
    pair: Pair = None,
) -> None:
    """Write a page for a browser in which anybody can explore policies: one file, no server, no network."""
    output = Output(out, forms=("html",))
    from meanfield._explore.explore import entries_of
    from meanfield._explore.page import page_of

    entries = entries_of(read_policies(policies, model, pair))
    number = "1 policy" if len(entries) == 1 else f"{len(entries)} policies"
    output.write(None, lambda form: page_of(entries), note=f"{number}, to open in a browser")


@app.command(epilog="Example: meanfield demo --out results")
def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder to write into; made if it is not there.")] = Path(
        "results"
    ),
) -> None:
    """The whole chain on the embedded SmolLM2: extract, solve, check against simulation, draw, explain."""
    check_place(out, folder=True)
    import meanfield
    from paper_figs import mean_field_dynamics, theory_and_simulation
    from policy_extraction import SMOLLM2
    from policy_extraction import extract as extract_policy

    out.mkdir(parents=True, exist_ok=True)
    begun = time.monotonic()

    def step(number: int, text: str) -> None:
        console.rule(f"{number} of 4, {time.monotonic() - begun:.0f} s: {text}")

    pairs = [("his", "her"), ("woman", "man"), ("Mexican", "American")]
    step(1, "policies, what SmolLM2-135M says in 21 memories")
    policies = extract_policy(SMOLLM2, words=pairs, memory_length=2, progress=sys.stderr.isatty())
    Output(out / "policies.nc").write(policies, note=captured(policies))
    step(2, "theory, fixed points and their stability")
    table = meanfield.stability_table(policies, progress=sys.stderr.isatty())
    console.print(meanfield.stability_report(table))
    Output(out / "stability.nc").write(table)
    solution = meanfield.solve(policies)
    Output(out / "mean_field_dynamics.nc").write(solution)
    step(3, "check, 400 exact simulations of 24, 200 and 2,000 agents")
    comparison = compare_policies(list(meanfield.each_policy(policies)), [24, 200, 2000], 400, 1, 300, 30)
    Output(out / "theory_and_simulation.nc").write(comparison)
    step(4, "figures")
    drawn = [
        mean_field_dynamics.draw(solution, out / "mean_field_dynamics.png"),
        theory_and_simulation.draw(comparison, out / "theory_and_simulation.png"),
    ]
    console.rule("What it means")
    for sentence in meanfield.describe_stability(table):
        say(sentence)
    say(f"The model was unsure of the task: {captured(policies)}.")
    written = [*sorted(path.name for path in out.glob("*.nc")), *(path.name for path in drawn)]
    say(f"Files in {out}: {', '.join(written)}.")


def _by_model(name: str, result: xr.Dataset) -> list[tuple[str, xr.Dataset]]:
    """The result split by model, with a name for each."""
    if "model" not in result.dims:
        return [(name, result)]
    return [(f"{name}_{_in_a_file_name(model)}", result.sel(model=model)) for model in result["model"].values]


def _in_a_file_name(model: str) -> str:
    """Names on a hub have a slash, names on a server a colon."""
    return re.sub(r'[<>:"/\\|?*]', "_", model)
