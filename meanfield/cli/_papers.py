"""The figures and tables of the papers, for the `figures` command."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from meanfield import InputError
from meanfield.cli._common import read_policies
from meanfield.cli._output import say


def publish_papers(
    papers: Sequence[str], only: Sequence[str], out: Path, *, policies: str, model: str | None, quick: bool, seed: int
) -> None:
    """Draw the items of these papers; '' among them is all papers."""
    from paper_figs._item import chosen, items
    from paper_figs._publish import publish
    from paper_figs._study import Study

    known = sorted({item.paper for item in items()})
    found = chosen(known if "" in papers else papers, [part.strip() for text in only for part in text.split(",")])
    data = read_policies(policies, model)
    for dim in ("model", "pair"):
        data = data.expand_dims(dim) if dim in data.coords and dim not in data.dims else data
    study = Study(data, out / "numbers", quick=quick, seed=seed, progress=sys.stderr.isatty())
    entries = publish(found, study, out, say)
    drawn = sum(bool(entry.files) for entry in entries)
    say(f"wrote {out / 'index.html'}: {drawn} of {len(entries)} drawn")
    if not drawn:
        raise InputError(f"policies = {policies}: nothing can be drawn from them; {out / 'index.html'} says why")
