"""Language models that run here: loaded with transformers, asked over a prefix tree, within a memory budget."""

from policy_extraction.backends.local._source import SMOLLM2 as SMOLLM2
from policy_extraction.backends.local._transformers import TransformersBackend as TransformersBackend
