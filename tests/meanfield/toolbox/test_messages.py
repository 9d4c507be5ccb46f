"""Messages of libraries and servers within a line."""

import pytest

from meanfield.toolbox import shortened
from meanfield.toolbox._errors import reason

SAID = "Max retries exceeded with url: /q_dicts.zip (Caused by NameResolutionError('Failed to resolve'))"


@pytest.mark.parametrize("most", range(60, len(SAID), 7))
def test_a_message_is_cut_between_words(most):
    short = shortened(SAID, most)
    assert len(short) <= most and short.endswith(" …")
    assert SAID.split()[: len(short.split()) - 1] == short.split()[:-1]


def test_what_fits_is_whole_and_a_text_without_blanks_is_cut():
    assert shortened(SAID, len(SAID)) == SAID
    assert shortened("x" * 300, 100) == "x" * 99 + "…"
    assert shortened("a " + "x" * 300, 100) == "a " + "x" * 97 + "…"
    assert reason(ValueError("\n".join(["several words"] * 100))).endswith("several words …")
    assert reason(ValueError()) == "ValueError"
