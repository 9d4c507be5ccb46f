"""Random language models of a few thousand weights, and tokenizers that spell letter by letter."""

from __future__ import annotations

import string

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import AutoConfig, AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

torch.set_num_threads(1)  # of several threads each tiny product waits for all, much so beside other processes

LETTERS = "abcdehiknorsty'"
CHAT = "{% for m in messages %}<{{ m.role }}>{{ m.content }}\n{% endfor %}{% if add_generation_prompt %}<a>{% endif %}"

SIZES = {
    **{"hidden_size": 32, "intermediate_size": 48, "initializer_range": 0.25},
    **{"num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2},
    **{"max_position_embeddings": 2048, "bos_token_id": None, "eos_token_id": None, "pad_token_id": None},
}


def letter_tokenizer(letters: str = string.printable, merges: list[tuple[str, str]] | None = None, chat: str = ""):
    """One token a letter, and one a merge; letters that are not listed are unknown."""
    merges = merges or []
    vocabulary = {token: i for i, token in enumerate(["<unk>", *letters, *(a + b for a, b in merges)])}
    inner = Tokenizer(models.BPE(vocab=vocabulary, merges=merges, unk_token="<unk>"))
    if not merges:
        inner.pre_tokenizer = pre_tokenizers.Split("", "isolated")  # pyright: ignore
    inner.decoder = decoders.Fuse()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=inner, unk_token="<unk>")
    if chat:
        tokenizer.chat_template = chat
    return tokenizer


def random_model(vocabulary: int, context: int = 2048, seed: int = 0) -> LlamaForCausalLM:
    """A Llama with two layers whose predictions depend visibly on what it has read."""
    torch.manual_seed(seed)
    sizes = SIZES | {"max_position_embeddings": context}
    return LlamaForCausalLM(LlamaConfig(vocab_size=vocabulary, **sizes)).eval()


def tiny(chat: str = CHAT, context: int = 2048):
    """A pair (model, tokenizer)."""
    tokenizer = letter_tokenizer(chat=chat)
    return random_model(len(tokenizer), context), tokenizer


# Attention that is the plain causal one, in forms that differ in heads, positions, norms, experts and sizes of values.
PLAIN = {
    "llama": {},
    "gpt2": {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 2048},
    "gpt_neox": {},
    "gemma": {"head_dim": 16},
    "qwen3": {"head_dim": 16},
    "opt": {"ffn_dim": 48, "word_embed_proj_dim": 32},
    "mixtral": {"num_local_experts": 4, "num_experts_per_tok": 2},
    "deepseek_v3": {
        "num_key_value_heads": 4,
        "q_lora_rank": 16,
        "kv_lora_rank": 16,
        "qk_rope_head_dim": 8,
        "qk_nope_head_dim": 8,
        "v_head_dim": 8,
        "n_routed_experts": 4,
        "num_experts_per_tok": 2,
        "n_group": 1,
        "topk_group": 1,
        "moe_intermediate_size": 16,
        "first_k_dense_replace": 1,
    },
}
# A window, capped scores, sinks, distances in place of positions, and recurrent layers, alone and beside attention.
OTHER = {
    "mistral": {"sliding_window": 24},
    "gemma2": {"head_dim": 16, "sliding_window": 4096, "query_pre_attn_scalar": 16, "attn_logit_softcapping": 1.0},
    "gpt_oss": {"head_dim": 16, "num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": 4096},
    "bloom": {"n_layer": 2, "n_head": 4},
    "mamba": {},
    "lfm2": {"num_hidden_layers": 3, "layer_types": ["conv", "full_attention", "conv"]},
}


def architecture(name: str, vocabulary: int, seed: int = 0):
    """A random model of one of these architectures."""
    torch.manual_seed(seed)
    sizes = {"vocab_size": vocabulary, **SIZES, **(PLAIN | OTHER)[name]}
    return AutoModelForCausalLM.from_config(AutoConfig.for_model(name, **sizes)).eval()
