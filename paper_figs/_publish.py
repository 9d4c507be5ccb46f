"""Computing and drawing the items of papers into a folder, with a page that shows them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

import pandas as pd

import meanfield
from meanfield.toolbox import whole_file
from paper_figs._item import Item, items
from paper_figs._study import NotAtHandError, Study
from paper_figs._style import styled, write_figure

STYLE = """
body { font: 15px/1.45 sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; color: #222 }
article { display: grid; grid-template-columns: 22rem 1fr; gap: 1.5rem; padding: 1.2rem 0; border-top: 1px solid #ddd }
img { max-width: 100% } h2 { font-size: 1.05rem; margin: 0 0 .4rem } p { margin: .3rem 0 } .none { color: #777 }
"""


class Entry(NamedTuple):
    """An item with its files, or the reason why it has none. The index shows the second file."""

    item: Item
    reason: str = ""
    files: tuple[str, ...] = ()


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
        _write_index([entry for one in items() if (entry := made.get(one) or _earlier(one, out))], out, study.quick)
    return list(made.values())


def _earlier(item: Item, out: Path) -> Entry | None:
    """The entry of an item that an earlier call drew."""
    names = [f"{item.name}.{ending}" for ending in ("nc", "png", "pdf", "html", "csv")]
    names = [name for name in names if (out / item.paper / name).exists()]
    return Entry(item, files=tuple(names)) if len(names) > 1 else None


@styled
def _entry(item: Item, study: Study, out: Path) -> Entry:
    if item.numbers is None or item.draw is None:
        return Entry(item, item.reason)
    try:
        numbers = item.numbers(study)
    except NotAtHandError as error:
        return Entry(item, str(error))
    files = out / item.paper / item.name
    files.parent.mkdir(parents=True, exist_ok=True)
    meanfield.save(numbers, files.with_suffix(".nc"))
    drawing = item.draw(numbers)
    if isinstance(drawing, pd.DataFrame):
        with whole_file(files.with_suffix(".csv")) as path:
            drawing.to_csv(path, lineterminator="\n")
        _write(files.with_suffix(".html"), drawing.to_html(na_rep=""))
    else:
        for ending in (".png", ".pdf"):
            write_figure(drawing, files.with_suffix(ending))
    return _earlier(item, out) or Entry(item)


def _write(path: Path, text: str) -> None:
    with whole_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def _write_index(entries: Sequence[Entry], out: Path, quick: bool) -> None:
    """Write `index.html` with a thumbnail, a caption, what the paper shows and what differs for each entry."""
    effort = "<p>Numbers in the texts are from seed 1 and all runs.</p>"
    effort += "<p>Drawn with a tenth of the runs that are stated.</p>" if quick else ""
    body = effort + "\n".join(_article(entry) for entry in entries)
    out.mkdir(parents=True, exist_ok=True)
    _write(
        out / "index.html",
        '<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8"><title>Figures and tables of the papers</title>'
        f"<style>{STYLE}</style></head>\n<body>\n<h1>Figures and tables of the papers</h1>\n{body}\n</body>\n</html>\n",
    )


def _article(entry: Entry) -> str:
    item, paper = entry.item, escape(entry.item.paper)
    lines = [f"<h2>[{paper}] {escape(item.heading)}</h2>", f"<p>The paper: {escape(item.shows)}</p>"]
    if item.differs:
        lines.append(f"<p>Here: {escape(item.differs)}</p>")
    if entry.reason:
        lines.append(f"<p>Not drawn: {escape(entry.reason)}.</p>")
    links = " · ".join(f'<a href="{paper}/{escape(name)}">{escape(name)}</a>' for name in entry.files)
    shown = entry.files[1] if entry.files else ""
    picture = f'<a href="{paper}/{escape(shown)}"><img src="{paper}/{escape(shown)}" alt="{escape(item.title)}"></a>'
    if not shown.endswith(".png"):
        picture = f'<p class="none">{"a table" if shown else "no drawing"}</p>'
    return f"<article><div>{picture}</div><div>{''.join(lines)}<p>{links}</p></div></article>"
