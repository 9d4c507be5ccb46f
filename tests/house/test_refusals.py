"""The page of what theory does not answer quotes reasons that occur in the source."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_quoted_reasons_occur():
    page = (ROOT / "docs/theory/refusals.md").read_text(encoding="utf-8")
    quoted = [re.sub(r"\s+", " ", text) for text in re.findall(r"`([^`]*)`", page) if len(text.split()) > 1]
    rooms = ("_finite_size", "_large_deviations")
    source = "".join(
        file.read_text(encoding="utf-8") for room in rooms for file in (ROOT / "meanfield" / room).glob("*.py")
    )
    joined = re.sub(r'"\s*f?"', "", source)  # strings over several lines
    assert len(quoted) > 20
    assert [text for text in quoted if text not in joined] == []
