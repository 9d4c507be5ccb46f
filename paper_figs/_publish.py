"""Computing and drawing the items of papers, one after the other, into a folder with an index."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
import xarray as xr

import meanfield
from meanfield.toolbox import whole_file
from paper_figs._index import Entry, write_index
from paper_figs._item import Item, items
from paper_figs._study import NotAtHandError, Study
from paper_figs._style import styled


def publish(found: Iterable[Item], study: Study, out: Path, say: Callable[[str], None] = print) -> list[Entry]:
    """Write each item's numbers and drawing into `out`, by paper, and an index of all of them.

    Earlier results with the same data and settings are read from `out`; drawings are made anew. An item that
    can't be made is an entry of the index with its reason. The index also shows what earlier calls drew.
    """
    made: dict[Item, Entry] = {}
    for item in found:
        made[item] = _entry(item, study, out)
        say(f"[{item.paper}] {item.number}: {made[item].reason or item.title}")
        # After each, so that the index is complete when the work is interrupted
        write_index([entry for one in items() if (entry := made.get(one) or _earlier(one, out))], out, study.quick)
    return list(made.values())


def _earlier(item: Item, out: Path) -> Entry | None:
    """The entry of an item that an earlier call drew."""
    endings = ("nc", "png", "pdf", "html", "csv")
    names = [f"{item.name}.{ending}" for ending in endings if (out / item.paper / f"{item.name}.{ending}").exists()]
    return Entry(item, files=tuple(names)) if len(names) > 1 else None


def _entry(item: Item, study: Study, out: Path) -> Entry:
    if item.numbers is None:
        return Entry(item, item.reason)
    try:
        numbers = item.numbers(study)
    except NotAtHandError as error:
        return Entry(item, str(error))
    folder = out / item.paper
    folder.mkdir(parents=True, exist_ok=True)
    meanfield.save(numbers, folder / f"{item.name}.nc")
    return Entry(item, files=(f"{item.name}.nc", *_drawn(item, numbers, folder)))


@styled
def _drawn(item: Item, numbers: xr.Dataset, folder: Path) -> list[str]:
    """The names of the files with the drawing; the index shows the first."""
    assert item.draw is not None
    drawing = item.draw(numbers)
    if isinstance(drawing, pd.DataFrame):
        with whole_file(folder / f"{item.name}.csv") as path:
            drawing.to_csv(path, lineterminator="\n")
        with whole_file(folder / f"{item.name}.html") as path:
            path.write_text(drawing.to_html(na_rep=""), encoding="utf-8", newline="\n")
        return [f"{item.name}.html", f"{item.name}.csv"]
    names = [f"{item.name}.png", f"{item.name}.pdf"]
    for name in names:
        with whole_file(folder / name) as path:
            # A date would make files differ that are equal
            drawing.savefig(path, **({"metadata": {"CreationDate": None}} if name.endswith("pdf") else {}))
    plt.close(drawing)
    return names
