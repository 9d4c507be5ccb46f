"""The figures and tables of the papers, for the `figures` command."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from meanfield import InputError
from meanfield.cli._common import read_policies
from meanfield.cli._output import say

if TYPE_CHECKING:
    import xarray as xr


OF_POLICIES = "004"  # the other papers have data of their own


def publish_papers(
    papers: Sequence[str], only: Sequence[str], out: Path, *, policies: str, model: str | None, quick: bool, seed: int
) -> None:
    """Draw the items of these papers; '' among them is all papers."""
    from paper_figs._item import chosen, items
    from paper_figs._publish import publish
    from paper_figs._study import Study

    known = sorted({item.paper for item in items()})
    found = chosen(known if "" in papers else papers, [part.strip() for text in only for part in text.split(",")])
    data = _stack(read_policies(policies, model)) if any(item.paper == OF_POLICIES for item in found) else None
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
