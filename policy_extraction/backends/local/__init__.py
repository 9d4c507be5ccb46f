"""Local language models: loaded with transformers, run over a prefix tree of prompts, within a memory budget."""

from policy_extraction.backends.local._source import SMOLLM2 as SMOLLM2
from policy_extraction.backends.local._transformers import TransformersBackend as TransformersBackend
