"""Weights of four bits: `quantization_config` reaches transformers, and the tree gives what plain passes give."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch", reason="language models need the extra llm")
pytest.importorskip("bitsandbytes", reason="needs the extra quantized")
pytest.importorskip("transformers", reason="language models need the extra llm")

import torch
import transformers

from _tiny_models import CHAT, SHORT, letter_tokenizer
from meanfield import MemorySpace
from policy_extraction import extract, policy_from_record
from policy_extraction.backends.local._tokens import render
from policy_extraction.prompts import Payoffs

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


@pytest.fixture(scope="module")
def four_bits():
    return transformers.BitsAndBytesConfig(
        load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=torch.float32
    )


def plain(folder, config):
    """P(his), P(her) by one pass for each prefix of an answer, for memories of up to two rounds, in both orders."""
    model = transformers.AutoModelForCausalLM.from_pretrained(
        folder, quantization_config=config, dtype=torch.float32, device_map="cpu"
    ).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    space = MemorySpace(2, 2)
    log_p = np.zeros((2, space.n_states, 2))
    for place in np.ndindex(log_p.shape):
        order, state, word = place
        memory = [(HIS_HER[a], HIS_HER[b]) for a, b in space.memory(state)]
        text = render(tokenizer, SHORT.prompt(HIS_HER[:: 1 - 2 * order], memory, Payoffs()))
        context = tokenizer(text, add_special_tokens=False)["input_ids"]
        answer = tokenizer(HIS_HER[word], add_special_tokens=False)["input_ids"]
        with torch.no_grad():
            logits = model(torch.tensor([context + answer])).logits[0, len(context) - 1 : -1].double()
        log_p[place] = logits.log_softmax(-1)[range(len(answer)), answer].sum().item()
    return log_p


def test_four_bits_by_tree_and_by_plain_passes(folder, four_bits):
    options = {"words": HIS_HER, "memory_length": 2, "template": SHORT, "cache": False, "device_map": "cpu"}
    policy = extract(folder, quantization_config=four_bits, **options)
    np.testing.assert_allclose(policy["log_probability"], plain(folder, four_bits), rtol=0, atol=1e-4)
    whole = extract(folder, **options)
    moved = abs(policy["log_probability"] - whole["log_probability"]).max()
    assert moved > 0.01, "these are the weights of four bits"
    assert policy.attrs["option_model_identity"] != whole.attrs["option_model_identity"]
    assert "bitsandbytes" in str(policy.attrs)
    assert "bitsandbytes" not in str(whole.attrs)
    np.testing.assert_allclose(policy["q"], policy_from_record(policy.drop_vars("q"), 0.5)["q"], rtol=0, atol=1e-12)
