"""Commands that make policies and what theory says of them: data, extract, solve, stability."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

import meanfield
from meanfield import InputError
from meanfield.cli._common import (
    Model,
    Out,
    Pair,
    PolicyFile,
    app,
    captured,
    check_out,
    console,
    read_policies,
    saved,
    say,
    select,
)
from meanfield.toolbox import CRITERIA, name_of


@app.command(epilog="Example: meanfield data llm-group-size --out published.nc")
def data(
    name: Annotated[
        str,
        typer.Argument(help="llm-group-size, the published policies of four language models, or smollm2, our own."),
    ],
    out: Out,
    path: Annotated[Path | None, typer.Option(help="Where q_dicts.zip is, if it is on this machine.")] = None,
) -> None:
    """Fetch published policies, or take those that come with the package, and write them as NetCDF."""
    if name not in ("llm-group-size", "smollm2"):
        raise InputError(f"name = {name!r}: expected llm-group-size or smollm2")
    if name == "smollm2" and path is not None:
        raise InputError(f"path = {path}: smollm2 comes with the package and has no other file")
    check_out(out)
    policies = meanfield.datasets.smollm2() if name == "smollm2" else meanfield.datasets.llm_group_size(path)
    models = np.unique(policies["model"].values)
    saved(policies, out, f"{', '.join(models)}: {policies.sizes['pair']} word pairs")


@app.command(
    epilog="Example: meanfield extract SmolLM2-135M-Instruct --words his/her --memory-length 3 --out policies.nc"
)
def extract(
    model: Annotated[str, typer.Argument(help="Hugging Face name, local path, or SmolLM2-135M-Instruct.")],
    words: Annotated[list[str], typer.Option(help="Word pair as first/second; may be given several times.")],
    out: Out,
    memory_length: Annotated[int, typer.Option("--memory-length", "-H", help="H, interactions remembered.")] = 5,
    temperature: Annotated[float, typer.Option(help="Sampling temperature of the agents.")] = 0.5,
    gguf_file: Annotated[str | None, typer.Option(help="GGUF file inside the model's folder.")] = None,
) -> None:
    """Measure the policy of a language model: its next-token probabilities in every memory state."""
    from policy_extraction import check_policy, policy_warnings
    from policy_extraction import extract as extract_policy

    check_out(out)
    policies = extract_policy(
        model,
        words=[_pair(pair) for pair in words],
        memory_length=memory_length,
        temperature=temperature,
        gguf_file=gguf_file,
        progress=sys.stderr.isatty(),
    )
    saved(policies, out, captured(policies))
    for warning in policy_warnings(check_policy(policies)):
        say(warning)


@app.command(epilog="Example: meanfield solve published.nc --model gpt-4o --out solution.nc")
def solve(policies: PolicyFile, out: Out, model: Model = None, pair: Pair = None) -> None:
    """Integrate the rate equation from empty memories."""
    check_out(out)
    selected = select(read_policies(policies), model, pair)
    with console.status("integrating the rate equation"):
        solution = meanfield.solve(selected)
    for one in meanfield.each_policy(selected):
        place = {dim: one[dim].item() for dim in solution["attractor"].dims}
        end = solution.sel(place)
        note = "" if end["steady"] else f" (not steady: still moving at t = {end['end_time'].item():g})"
        say(f"{name_of(one)}: {end['attractor'].item()}{note}")
    saved(solution, out)


@app.command(epilog="Example: meanfield stability published.nc --csv stability.csv")
def stability(
    policies: Annotated[list[Path], typer.Argument(metavar="POLICIES…", help="NetCDF files, or q_dicts.zip.")],
    csv: Annotated[Path | None, typer.Option(help="Write the table as CSV.")] = None,
    latex: Annotated[Path | None, typer.Option(help="Write the table for LaTeX (booktabs).")] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write the table as NetCDF.")] = None,
    model: Model = None,
    pair: Pair = None,
    all_criteria: Annotated[bool, typer.Option("--all-criteria", help="The strong word by basin and κ too.")] = False,
) -> None:
    """Candidates, true fixed points and leading eigenvalues: the stability table."""
    check_out(csv, latex, out)
    stacks = [select(read_policies(path), model, pair) for path in policies]
    criteria = CRITERIA if all_criteria else CRITERIA[:1]
    table = meanfield.stability_table(stacks, criteria=criteria, progress=sys.stderr.isatty())
    console.print(meanfield.stability_report(table))
    if latex is not None:
        meanfield.write_stability_latex(table, latex)
        say(f"wrote {latex}")
    if csv is not None:
        meanfield.write_stability_csv(table, csv)
        say(f"wrote {csv}")
    if out is not None:
        saved(table, out)


def _pair(text: str) -> tuple[str, ...]:
    words = tuple(text.split("/"))
    if len(words) < 2 or not all(words):
        raise InputError(f"words = {text!r}: expected words with a slash between them, as in his/her")
    return words
