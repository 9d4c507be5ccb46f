"""What docs/how_to/large_models.md shows works as it stands there, on a server of this machine."""

from __future__ import annotations

import re
import textwrap

import pytest

from _paths import ROOT

pytest.importorskip("openai", reason="APIs need the extra api")

from _openai_server import FIRST_WORDS, Behaviour, KnownModel, serving
from policy_extraction import extract
from policy_extraction.backends.api import OpenAIBackend


def test_the_page_shows_what_it_prints(capsys, monkeypatch, tmp_path):
    """The blocks of the page that ask a server of one's own, and the one about costs."""
    monkeypatch.setenv("MEANFIELD_CACHE", str(tmp_path))
    page = (ROOT / "docs" / "how_to" / "large_models.md").read_text()
    shown = re.findall(r"```python\n((?:(?!```).)+)```\n\n((?:    [^\n]*\n)+)", page, re.DOTALL)
    assert len(shown) == 3
    names = {"OpenAIBackend": OpenAIBackend, "extract": extract}
    with serving(Behaviour(KnownModel.of(FIRST_WORDS), name="llama", dialect="vllm")) as url:
        for code, output in shown:
            # Fewer prompts than the page asks.
            exec(code.replace("http://127.0.0.1:8000/v1", url).replace("memory_length=3", "memory_length=2"), names)
            assert capsys.readouterr().out == textwrap.dedent(output)
