"""A random language model of a few thousand weights, and tokenizers that spell letter by letter."""

from __future__ import annotations

import string

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from policy_extraction import Template

LETTERS = "abcdehiknorsty'"
CHAT = "{% for m in messages %}<{{ m.role }}>{{ m.content }}\n{% endfor %}{% if add_generation_prompt %}<a>{% endif %}"

# Short, so that a prompt has some fifty tokens.
SHORT = Template(
    name="short",
    system="[$options] $success $failure: ${history}$round, $score.",
    user="say",
    answer_prefix="'",
    option="'$word'",
    line="$round '$own' '$partner' $payoff",
)


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
    config = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=context,
        initializer_range=0.25,
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=None,
    )
    return LlamaForCausalLM(config).eval()


def tiny(chat: str = CHAT, context: int = 2048):
    """A pair (model, tokenizer)."""
    tokenizer = letter_tokenizer(chat=chat)
    return random_model(len(tokenizer), context), tokenizer
