"""Servers that give the log-probabilities of chosen tokens after given tokens: vLLM, SGLang and llama.cpp's."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import count, islice
from typing import Any, TypeVar

import numpy as np

from meanfield import InputError
from policy_extraction.backends.api._limits import Usage
from policy_extraction.backends.api._reply import (
    NOT_KNOWN,
    UnusableReplyError,
    dict_of,
    dicts_of,
    expecting,
    first_position,
    log_probability,
    top_tokens_after,
)
from policy_extraction.backends.api._request import GO_ON_FIELDS, Request
from policy_extraction.backends.api._retries import Server
from policy_extraction.backends.api._words import ROUNDING

T = TypeVar("T")
Tokens = tuple[int, ...]
LARGEST_TOKEN = 2**31 - 1
# Servers compute the same token in other batches with other rounding; a filter changes its probability to 1.
SLACK = 0.3
FORCING = 1e4  # on a logit, which is of the order of 10
MOST_CHOSEN = 128  # tokens that vLLM takes at once
# vLLM takes filters that a request leaves out from the model's files.
DRAWN = {"temperature": 1.0, "top_p": 1.0, "top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0}
DRAWN |= {"return_tokens_as_token_ids": True}


async def recognised(server: Server, client: Any, listed: int) -> Dialect:
    """The dialect of the server, by the owner of its models; InputError for any other server."""
    cards = await _ask(server, client, lambda reply: dicts_of(reply.get("data")), "/v1/models")
    owners = {str(card.get("owned_by")).lower() for card in cards}
    if "vllm" in owners:
        return VLLM(server, listed, await _version(server, client, "/version"))
    if "sglang" in owners:
        return SGLang(server, await _version(server, client, "/server_info", "/get_server_info"))
    if "llamacpp" in owners:
        return LlamaCpp(server, listed)
    raise InputError(f"exact = True: {server.base_url} is neither vLLM nor SGLang nor llama.cpp's server")


async def tokenised(client: Any, dialect: Dialect, request: Request) -> Tokens:
    """The tokens in which the server reads this request; InputError if it does not tell."""
    try:
        return await dialect.tokens(client, request)
    except InputError as error:
        raise InputError(f"tokenizer = None: expected the model's, as the server does not tokenise ({error})") from None


class VLLM:
    """vLLM, by its interface in OpenAI's format.

    Recent releases give the log-probabilities of chosen tokens (`logprob_token_ids`; 0.11 has no such field, 0.32 has).
    Others list the most probable tokens, by number (`return_tokens_as_token_ids`, since 0.6), and a wanted token that
    is not listed becomes the only one allowed (`allowed_token_ids`), as log-probabilities are those before this filter:
    since engine V1 of 0.8, unless `--logprobs-mode` says otherwise.
    """

    def __init__(self, server: Server, listed: int, version: str) -> None:
        self.name = f"vLLM {version}".strip()
        self._server, self._listed = server, listed
        self._chosen = False  # whether it knows logprob_token_ids

    async def tokens(self, client: Any, request: Request) -> Tokens:
        """The tokens in which the server reads this request; InputError if it does not tell."""
        return await _tokenised(self._server, client, request, GO_ON_FIELDS)

    async def check(self, client: Any, tokens: Tokens) -> None:
        """Find the way to ask for tokens that are not listed; InputError if there is none."""
        _, listed = await self._list(client, tokens)
        others = list(islice((token for token in count() if token not in listed), 2))  # one of them may be drawn
        with suppress(InputError):
            self._chosen = set(others) <= set(await self._choose(client, tokens, others))
        if self._chosen:
            return
        possible = [item for item in listed.items() if np.isfinite(item[1])]
        known, log_p = min(possible, key=lambda item: item[1], default=(others[0], 0.0))
        with suppress(InputError):
            if abs(await self._allowed(client, tokens, known, 0.0) - log_p) < SLACK:
                return
        raise InputError("exact = True: the server gives no log-probabilities of chosen tokens, or filtered ones")

    async def after(self, client: Any, tokens: Tokens, wanted: Sequence[int]) -> dict[int, float]:
        """The log-probabilities of the wanted tokens right after these tokens, at temperature 1."""
        if self._chosen:
            parts = [wanted[first : first + MOST_CHOSEN] for first in range(0, len(wanted), MOST_CHOSEN)]
            return {t: p for part in parts for t, p in (await self._choose(client, tokens, part, every=True)).items()}
        most, found = await self._list(client, tokens)
        for token in wanted:
            if token not in found:
                found[token] = await self._allowed(client, tokens, token, most)
        return found

    async def _choose(
        self, client: Any, tokens: Tokens, wanted: Sequence[int], every: bool = False
    ) -> dict[int, float]:
        """The listed tokens by number; with `every` the wanted ones, or UnusableReplyError."""
        fields = {"logprobs": self._listed, "logprob_token_ids": list(wanted)}
        return await self._complete(
            client, tokens, lambda reply: _all(_listed(reply), wanted) if every else _listed(reply), **fields
        )

    async def _list(self, client: Any, tokens: Tokens) -> tuple[float, dict[int, float]]:
        """The log-probabilities of the most probable tokens by number, and an upper bound for any other."""
        return await self._complete(
            client,
            tokens,
            lambda reply: (top_tokens_after(reply, "", self._listed).unlisted, _listed(reply)),
            logprobs=self._listed,
        )

    async def _allowed(self, client: Any, tokens: Tokens, token: int, most: float) -> float:
        def read(reply: Mapping[str, Any]) -> float:
            written, log_p, _ = first_position(reply)
            if _number(written) != token:
                raise InputError("exact = True: the server does not know allowed_token_ids")
            if np.isnan(log_p):
                raise UnusableReplyError(f"the reply has no log-probability of token {token}")
            return _known(log_p, most)

        return await self._complete(client, tokens, read, logprobs=1, allowed_token_ids=[token])

    async def _complete(self, client: Any, tokens: Tokens, read: Callable[[dict[str, Any]], T], **fields: Any) -> T:
        """One token after these; the library `openai` would check such a request token by token, for 10 ms."""
        asked = {"model": self._server.model, "prompt": list(tokens), "max_tokens": 1, **DRAWN, **fields}
        return await _ask(self._server, client, read, "/v1/completions", len(tokens), **asked)


class SGLang:
    """SGLang, by its own `/generate`; releases to 0.5.3 or so tokenise plain text only, 0.5.23 also a conversation."""

    def __init__(self, server: Server, version: str) -> None:
        self.name = f"SGLang {version}".strip()
        self._server = server

    async def tokens(self, client: Any, request: Request) -> Tokens:
        # It refuses to be told that no turn is to be opened.
        return await _tokenised(self._server, client, request, {"continue_final_message": True})

    async def check(self, client: Any, tokens: Tokens) -> None:
        await self.after(client, tokens, tokens[-1:])

    async def after(self, client: Any, tokens: Tokens, wanted: Sequence[int]) -> dict[int, float]:
        # Where nothing is drawn, log-probabilities are a log-softmax of the logits, not the logarithm of a softmax.
        drawn = {"sampling_params": {"max_new_tokens": 1, "temperature": 0.0}, "return_logprob": True}
        fields = {"input_ids": list(tokens), "token_ids_logprob": list(wanted), **drawn}

        def read(reply: Mapping[str, Any]) -> dict[int, float]:
            told = dict_of(reply.get("meta_info"))
            if "output_token_ids_logprobs" not in told:
                raise InputError("exact = True: the server knows no token_ids_logprob, which SGLang has since 0.4.4")
            with expecting("the log-probabilities of the reply are not in SGLang's format"):
                found = {token: _known(log_probability(p)) for p, token, *_ in told["output_token_ids_logprobs"][0]}
            return _all(found, wanted)

        return await _ask(self._server, client, read, "/generate", len(tokens), **fields)


class LlamaCpp:
    """llama.cpp's server, by its own `/completion`.

    It lists the most probable tokens, by number since December 2024. A wanted token that is not listed is drawn by
    force, with a large bias: the log-probability of the drawn token is returned too, from before the bias.
    """

    def __init__(self, server: Server, listed: int) -> None:
        self.name = "llama.cpp"
        self._server, self._listed = server, max(2, listed)  # `check` needs a token that is not certain

    async def tokens(self, client: Any, request: Request) -> Tokens:
        server, text = self._server, request.fields.get("prompt")
        if text is None:
            asked = {"model": server.model, "messages": request.fields["messages"]}
            text = await _ask(server, client, _prompt, "/apply-template", **asked)
        fields = {"model": server.model, "content": text, "add_special": True, "parse_special": True}
        return await _ask(server, client, _tokens, "/tokenize", **fields)

    async def check(self, client: Any, tokens: Tokens) -> None:
        _, _, listed = await self._complete(client, tokens)
        token, log_p = min((item for item in listed.items() if np.isfinite(item[1])), key=lambda item: item[1])
        # Of two tokens one has at most half: a single one is what a filter leaves.
        if log_p > -SLACK or abs(await self._forced(client, tokens, token, 0.0) - log_p) > SLACK:
            raise InputError("exact = True: the server does not know logit_bias, or gives log-probabilities after it")

    async def after(self, client: Any, tokens: Tokens, wanted: Sequence[int]) -> dict[int, float]:
        _, _, found = await self._complete(client, tokens)
        most = min(filter(np.isfinite, found.values()))
        for token in wanted:
            if token not in found:
                found[token] = await self._forced(client, tokens, token, most)
        return _all(found, wanted)

    async def _forced(self, client: Any, tokens: Tokens, token: int, most: float) -> float:
        """Only an impossible token is not drawn."""
        drawn, log_p, _ = await self._complete(client, tokens, logit_bias=[[token, FORCING]])
        return _known(log_p, most) if drawn == token else -np.inf

    async def _complete(self, client: Any, tokens: Tokens, **fields: Any) -> tuple[int, float, dict[int, float]]:
        """The drawn token, its log-probability, and the most probable tokens with theirs."""
        fields |= {"model": self._server.model, "prompt": list(tokens), "n_predict": 1, "n_probs": self._listed}

        def read(reply: Mapping[str, Any]) -> tuple[int, float, dict[int, float]]:
            try:
                told = reply["completion_probabilities"][0]
                listed = [(each["id"], each["logprob"]) for each in told["top_logprobs"]]
                drawn, log_p = told["id"], log_probability(told["logprob"])
                found = {token: _known(log_probability(p)) for token, p in listed if p is not None}
            except (KeyError, IndexError, TypeError):
                raise InputError("exact = True: the server does not tell tokens by number") from None
            if not np.isfinite(list(found.values())).any():
                raise UnusableReplyError("the reply lists no log-probabilities")
            return drawn, log_p, found

        return await _ask(self._server, client, read, "/completion", len(tokens), temperature=0.0, **fields)


Dialect = VLLM | SGLang | LlamaCpp


async def _tokenised(server: Server, client: Any, request: Request, go_on: Mapping[str, bool]) -> Tokens:
    """Tokens as from `VLLM.tokens`; with the fields `go_on` a server tokenises an answer that is to be continued."""
    fields = {name: value for name, value in request.fields.items() if name not in GO_ON_FIELDS}
    fields |= go_on if request.kind == "chat" else {}
    return await _ask(server, client, _tokens, "/tokenize", model=server.model, **fields)


async def _ask(
    server: Server, client: Any, read: Callable[[dict[str, Any]], T], path: str, n_tokens: int = 0, **fields: Any
) -> T:
    """The reply by a path below the server's address without /v1; a token is written after `n_tokens`, if any."""
    return await server.ask(client, Request("native", fields, 0, Usage(n_tokens, min(n_tokens, 1)), path), read)


def _prompt(reply: Mapping[str, Any]) -> str:
    prompt = reply.get("prompt")
    if not isinstance(prompt, str):
        raise UnusableReplyError("the reply has no prompt")
    return prompt


async def _version(server: Server, client: Any, *paths: str) -> str:
    """The version, or '' if the server does not tell it there."""

    def read(reply: Mapping[str, Any]) -> str:
        version = reply.get("version")
        return version if isinstance(version, str) and re.fullmatch(r"[\w.+-]{1,50}", version) else ""

    for path in paths:
        with suppress(InputError):
            return await _ask(server, client, read, path)
    return ""


def _tokens(reply: Mapping[str, Any]) -> Tokens:
    tokens = reply.get("tokens")
    known = isinstance(tokens, list) and all(type(token) is int and 0 <= token <= LARGEST_TOKEN for token in tokens)
    if not tokens or not known:
        raise UnusableReplyError("the reply has no tokens")
    return tuple(tokens)


def _number(token: bytes) -> int:
    found = re.fullmatch(rb"token_id:(\d{1,10})", token)
    if found is None:
        raise InputError("exact = True: the server does not tell tokens by number, which vLLM does since 0.6")
    return int(found[1])


def _listed(reply: Mapping[str, Any]) -> dict[int, float]:
    """The log-probabilities of the listed tokens, by number; a token whose own is null counts as not listed."""
    return {_number(token): _known(log_p) for token, log_p in first_position(reply)[2] if not np.isnan(log_p)}


def _known(log_p: float, most: float = 0.0) -> float:
    """The log-probability, -inf for one that servers do not tell; `most` is what other answers leave for it."""
    if log_p > min(most + SLACK, ROUNDING):
        raise UnusableReplyError(f"a log-probability in the reply is {log_p:.4g}, expected at most {most:.4g}")
    return log_p if log_p > NOT_KNOWN else -np.inf


def _all(found: Mapping[int, float], wanted: Sequence[int]) -> dict[int, float]:
    """The wanted tokens; UnusableReplyError if one is missing, or they are too probable together."""
    missing = [token for token in wanted if token not in found]
    if missing:
        raise UnusableReplyError(f"the reply lacks the log-probability of token {missing[0]}")
    total = float(np.exp([found[token] for token in wanted]).sum())
    if total > 1 + ROUNDING:
        raise UnusableReplyError(f"the probabilities in the reply sum to {total:.4g}")
    return {token: found[token] for token in wanted}
