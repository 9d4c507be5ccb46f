"""The examples in docs/how_to/large_models.md work as they stand, on a server of this machine."""

from __future__ import annotations

import re
import textwrap

import pytest

from _paths import ROOT

pytest.importorskip("openai", reason="APIs need the extra api")

from _batch_server import BatchService
from _openai_server import FIRST_WORDS, Behaviour, KnownModel, serving
from policy_extraction import extract
from policy_extraction.backends.api import OpenAIBackend


def test_the_page_shows_what_it_prints(capsys, monkeypatch, tmp_path):
    """The blocks of the page that ask a server of one's own, the one about costs and the one about batches."""
    monkeypatch.setenv("MEANFIELD_CACHE", str(tmp_path))
    page = (ROOT / "docs" / "how_to" / "large_models.md").read_text()
    shown = re.findall(r"```python\n((?:(?!```).)+)```\n\n((?:    [^\n]*\n)+)", page, re.DOTALL)
    assert len(shown) == 4
    names = {"OpenAIBackend": OpenAIBackend, "extract": extract}
    seen = Behaviour(KnownModel.of(FIRST_WORDS), name="llama", dialect="vllm", batches=BatchService())
    with serving(seen) as url:
        paid = f'"llama", base_url="{url}", poll=0.01'
        # Fewer prompts than the page asks, of a service on this machine.
        here = {
            "http://127.0.0.1:8000/v1": url,
            "memory_length=3": "memory_length=2",
            '"gpt-4o-2024-08-06"': paid,
            "progress=True": "undecided='bound'",
        }
        for code, output in shown:
            for old, new in here.items():
                code = code.replace(old, new)
            exec(code, names)
            assert capsys.readouterr().out == textwrap.dedent(output)
