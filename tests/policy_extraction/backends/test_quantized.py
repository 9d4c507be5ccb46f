"""Weights of four bits: `quantization_config` reaches transformers."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="language models need the extra llm")
pytest.importorskip("bitsandbytes", reason="needs the extra quantized")
pytest.importorskip("transformers", reason="language models need the extra llm")

import torch
import transformers

from _prompt_files import SHORT
from _tiny_models import CHAT, letter_tokenizer
from policy_extraction import extract

HIS_HER = ("his", "her")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("model")
    tokenizer = letter_tokenizer(chat=CHAT)
    torch.manual_seed(3)
    # Blocks of 64 weights share a scale, so a matrix must be as wide.
    sizes = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4}
    config = transformers.LlamaConfig(vocab_size=len(tokenizer), initializer_range=0.25, eos_token_id=None, **sizes)
    transformers.LlamaForCausalLM(config).save_pretrained(path)
    tokenizer.save_pretrained(path)
    return path


def test_four_bits(folder):
    four_bits = transformers.BitsAndBytesConfig(
        load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=torch.float32
    )
    options = {"words": HIS_HER, "memory_length": 2, "template": SHORT, "cache": False, "device_map": "cpu"}
    policy = extract(folder, quantization_config=four_bits, **options)
    whole = extract(folder, **options)
    assert abs(policy["log_probability"] - whole["log_probability"]).max() > 0.01, "these are the weights of four bits"
    assert policy.attrs["option_model_identity"] != whole.attrs["option_model_identity"]
    assert "bitsandbytes" in str(policy.attrs) and "bitsandbytes" not in str(whole.attrs)
