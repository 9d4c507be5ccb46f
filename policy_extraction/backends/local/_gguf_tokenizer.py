"""Repair of tokenizers that transformers reads wrongly from GGUF files.

A GGUF file names how text is split before pairs of bytes are merged (`tokenizer.ggml.pre`). Releases of transformers up
to 5.23 ignore it for 'smollm', which splits off digits: the empty line before a number, ĊĊ, then becomes two tokens
that the model never saw there.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

SETS_DIGITS_APART = frozenset({"smollm"})


def mend_tokenizer(tokenizer: Any, gguf: Path) -> Any:
    """The tokenizer that was read from the file `gguf`, with digits split off if the file says so."""
    from gguf import GGUFReader
    from tokenizers import pre_tokenizers

    field = GGUFReader(gguf).fields.get("tokenizer.ggml.pre")
    if field is not None and field.contents() in SETS_DIGITS_APART:
        backend = tokenizer.backend_tokenizer
        backend.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.Digits(individual_digits=True), backend.pre_tokenizer]
        )
    return tokenizer
