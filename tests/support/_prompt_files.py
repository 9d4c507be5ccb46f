"""Prompts: a short one for the naming game, and the packaged files with pieces exchanged."""

from __future__ import annotations

from pathlib import Path

import policy_extraction
from policy_extraction.prompts import Template

PACKAGED = Path(policy_extraction.__file__).parent / "prompts" / "templates"

# Short, so that a prompt has some fifty tokens.
SHORT = Template(
    name="short",
    system="[$options] $success $failure: ${history}$round, $score.",
    user="say",
    answer_prefix="'",
    option="'$word'",
    line="$round '$own' '$partner' $payoff",
)


def changed(packaged: Path, folder: Path, *changes: tuple[str, str]) -> Path:
    """A copy named mine/1 of a packaged file with these pieces exchanged, each of which it must hold."""
    text = packaged.read_text(encoding="utf-8")
    for old, new in ((f"{packaged.stem.replace('_', '-')}/1", "mine/1"), *changes):
        assert old in text
        text = text.replace(old, new)
    path = folder / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return path
