"""Files of prompts: the packaged ones with pieces exchanged."""

from __future__ import annotations

from pathlib import Path

import policy_extraction

PACKAGED = Path(policy_extraction.__file__).parent / "prompts" / "templates"


def changed(packaged: Path, folder: Path, *changes: tuple[str, str]) -> Path:
    """A copy named mine/1 of a packaged file with these pieces exchanged, each of which it must hold."""
    text = packaged.read_text(encoding="utf-8")
    for old, new in ((f"{packaged.stem.replace('_', '-')}/1", "mine/1"), *changes):
        assert old in text
        text = text.replace(old, new)
    path = folder / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return path
