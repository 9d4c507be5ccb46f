"""The page that shows all drawn items, with the paper's result and the differences."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

from meanfield.toolbox import whole_file
from paper_figs._item import Item

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


def write_index(entries: Sequence[Entry], out: Path, quick: bool) -> Path:
    """Write `index.html` with a thumbnail, a caption, what the paper shows and what differs for each entry."""
    effort = "<p>Numbers in the texts are from seed 1 and all runs.</p>"
    effort += "<p>Drawn with a tenth of the runs that are stated.</p>" if quick else ""
    body = effort + "\n".join(_article(entry) for entry in entries)
    page = (
        '<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8"><title>Figures and tables of the papers</title>'
        f"<style>{STYLE}</style></head>\n<body>\n<h1>Figures and tables of the papers</h1>\n{body}\n</body>\n</html>\n"
    )
    out.mkdir(parents=True, exist_ok=True)
    with whole_file(out / "index.html") as path:
        path.write_text(page, encoding="utf-8", newline="\n")
    return out / "index.html"


def _article(entry: Entry) -> str:
    item, paper = entry.item, escape(entry.item.paper)
    number = item.number if " " in item.number else f"Fig. {item.number}"
    lines = [f"<h2>[{paper}] {escape(number)}. {escape(item.title)}</h2>", f"<p>The paper: {escape(item.shows)}</p>"]
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
