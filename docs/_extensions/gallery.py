"""Writes the gallery: every figure and table of the papers, with its picture, its command and its code."""

from __future__ import annotations

import inspect
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.config import Config

from paper_figs._item import Item, items
from reference import keep

TITLES = {
    "000": "The dynamics of social conventions in LLM populations",
    "001": "Emergent social conventions and collective bias in LLM populations",
    "002": "Flag Game",
    "003": "Emergence of social norms in generative agent societies",
    "004": "Group size effects and collective misalignment",
}


def write(app: Sphinx, config: Config) -> None:
    folder = Path(app.srcdir) / "papers"
    for paper in TITLES:
        keep(folder / f"{paper}.md", page(paper, [item for item in items() if item.paper == paper], folder))


def page(paper: str, found: list[Item], folder: Path) -> str:
    drawn = [item for item in found if (folder / picture(item)).exists()]
    cards = "".join(card(item) for item in drawn)
    reasons = sum(bool(item.reason) for item in found)
    lines = [
        f"# [{paper}] {TITLES[paper]}",
        "",
        f"`meanfield figures --paper {paper} --out figures` makes {len(found) - reasons} figures and tables "
        "where their data are at hand" + (f"; {reasons} others can't be made, and say why." if reasons else "."),
        "",
        f"::::{{grid}} 2 3 4 4\n:gutter: 2\n\n{cards}::::" if cards else "",
        "",
    ]
    return "\n".join([*lines, *(entry(item, folder) for item in found)])


def picture(item: Item) -> str:
    return f"pictures/{item.paper}/{item.name}.webp"


def card(item: Item) -> str:
    where = f":link: {label(item)}\n:link-type: ref"
    return f":::{{grid-item-card}} {item.heading}\n:img-bottom: {picture(item)}\n{where}\n:::\n"


def label(item: Item) -> str:
    return f"{item.paper}-{item.name}".lower().replace("_", "-")


def entry(item: Item, folder: Path) -> str:
    parts = [f"({label(item)})=", f"## {item.heading}", "", f"The paper: {item.shows}", ""]
    if item.differs:
        parts += [f"Here: {item.differs}", ""]
    if item.reason:
        return "\n".join([*parts, f"Not drawn: {item.reason}.", ""])
    if (folder / picture(item)).exists():
        parts += [f"```{{image}} {picture(item)}\n:alt: {item.title}\n```", ""]
    parts += [f'    meanfield figures --paper {item.paper} --only "{item.number}" --out figures', ""]
    source = source_of(item).relative_to(folder.parents[1])
    parts += [
        f":::{{dropdown}} Code: {source.as_posix()}\n```{{literalinclude}} ../../{source.as_posix()}\n```\n:::",
        "",
    ]
    return "\n".join(parts)


def source_of(item: Item) -> Path:
    """The file in which an item is drawn."""
    return Path(inspect.getsourcefile(inspect.unwrap(item.draw))).resolve()


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("config-inited", write)
    return {"parallel_read_safe": True}
