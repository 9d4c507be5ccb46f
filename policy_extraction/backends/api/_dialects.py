"""Servers that give the log-probabilities of chosen tokens after given tokens: vLLM, SGLang and llama.cpp's."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from itertools import count, islice
from typing import Any

import numpy as np

from meanfield import InputError
from policy_extraction.backends.api._limits import Usage
from policy_extraction.backends.api._reply import (
    NOT_KNOWN,
    UnusableReplyError,
    first_position,
    log_probability,
    top_tokens_after,
)
from policy_extraction.backends.api._request import GO_ON_FIELDS, Request, native_request
from policy_extraction.backends.api._retries import Server
from policy_extraction.backends.api._words import ROUNDING

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
    owners = await server.ask(client, native_request("/v1/models"), _owners)
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
    since engine V1 of 0.8, unless `--logprobs-mode` says otherwise. Where they are those after it, the token ends the
    prompt instead (`prompt_logprobs`, since 0.5.5), which is read anew without the prefix cache.
    """

    def __init__(self, server: Server, listed: int, version: str) -> None:
        self.name = f"vLLM {version}".strip()
        self._server, self._listed = server, listed
        self._chosen = False  # whether it knows logprob_token_ids
        self._one: Callable[[Any, Tokens, int, float], Awaitable[float]] = self._allowed

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
        for way in (self._allowed, self._ending):
            with suppress(InputError):
                if abs(await way(client, tokens, known, 0.0) - log_p) < SLACK:
                    self._one = way
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
                found[token] = await self._one(client, tokens, token, most)
        return found

    async def _choose(
        self, client: Any, tokens: Tokens, wanted: Sequence[int], every: bool = False
    ) -> dict[int, float]:
        """The listed tokens by number; with `every` the wanted ones, or UnusableReplyError."""
        request = self._request(tokens, logprobs=self._listed, logprob_token_ids=list(wanted))

        def read(reply: Mapping[str, Any]) -> dict[int, float]:
            found = _listed(reply)
            return _all(found, wanted) if every else found

        return await self._server.ask(client, request, read)

    async def _list(self, client: Any, tokens: Tokens) -> tuple[float, dict[int, float]]:
        """The log-probabilities of the most probable tokens by number, and an upper bound for any other."""
        request = self._request(tokens, logprobs=self._listed)

        def read(reply: Mapping[str, Any]) -> tuple[float, dict[int, float]]:
            return top_tokens_after(reply, "", self._listed).unlisted, _listed(reply)

        return await self._server.ask(client, request, read)

    async def _allowed(self, client: Any, tokens: Tokens, token: int, most: float) -> float:
        request = self._request(tokens, logprobs=1, allowed_token_ids=[token])

        def read(reply: Mapping[str, Any]) -> float:
            written, log_p, _ = first_position(reply)
            if _number(written) != token:
                raise InputError("exact = True: the server does not know allowed_token_ids")
            if np.isnan(log_p):
                raise UnusableReplyError(f"the reply has no log-probability of token {token}")
            return _known(log_p, most)

        return await self._server.ask(client, request, read)

    async def _ending(self, client: Any, tokens: Tokens, token: int, most: float) -> float:
        request = self._request((*tokens, token), prompt_logprobs=1)

        def read(reply: Mapping[str, Any]) -> float:
            try:
                told = reply["choices"][0]["prompt_logprobs"]
                return _known(log_probability(told[-1][str(token)]["logprob"]), most)
            except (KeyError, IndexError, TypeError):
                raise UnusableReplyError(f"the reply has no log-probability of token {token}") from None

        return await self._server.ask(client, request, read)

    def _request(self, tokens: Tokens, **fields: Any) -> Request:
        """A request for one token after these, which the library `openai` would check token by token, for 10 ms."""
        asked = {"model": self._server.model, "prompt": list(tokens), "max_tokens": 1, **DRAWN, **fields}
        return native_request("/v1/completions", Usage(len(tokens), 1), **asked)


class SGLang:
    """SGLang, by its own `/generate` with `token_ids_logprob`, since 0.4.4.

    Releases up to 0.5.3 or so tokenise plain text only, 0.5.23 also a conversation.
    """

    def __init__(self, server: Server, version: str) -> None:
        self.name = f"SGLang {version}".strip()
        self._server = server

    async def tokens(self, client: Any, request: Request) -> Tokens:
        """See `VLLM`."""
        # It refuses to be told that no turn is to be opened.
        return await _tokenised(self._server, client, request, {"continue_final_message": True})

    async def check(self, client: Any, tokens: Tokens) -> None:
        """See `VLLM`."""
        await self.after(client, tokens, tokens[-1:])

    async def after(self, client: Any, tokens: Tokens, wanted: Sequence[int]) -> dict[int, float]:
        """See `VLLM`."""
        request = native_request(
            "/generate",
            Usage(len(tokens), 1),
            input_ids=list(tokens),
            # Where nothing is drawn, log-probabilities are a log-softmax of the logits, not the logarithm of a softmax.
            sampling_params={"max_new_tokens": 1, "temperature": 0.0},
            return_logprob=True,
            token_ids_logprob=list(wanted),
        )

        def read(reply: Mapping[str, Any]) -> dict[int, float]:
            told = reply.get("meta_info")
            if not isinstance(told, dict) or "output_token_ids_logprobs" not in told:
                raise InputError("exact = True: the server knows no token_ids_logprob, which SGLang has since 0.4.4")
            try:
                found = {token: _known(log_probability(p)) for p, token, *_ in told["output_token_ids_logprobs"][0]}
            except (KeyError, IndexError, TypeError, ValueError):
                raise UnusableReplyError("the log-probabilities of the reply are not in SGLang's format") from None
            return _all(found, wanted)

        return await self._server.ask(client, request, read)


class LlamaCpp:
    """llama.cpp's server, by its own `/completion`.

    It lists the most probable tokens, by number since December 2024. A wanted token that is not listed is drawn by
    force, with a large bias: the log-probability of the drawn token is told too, and is that before the bias.
    """

    def __init__(self, server: Server, listed: int) -> None:
        self.name = "llama.cpp"
        self._server, self._listed = server, max(2, listed)  # `check` needs a token that is not certain

    async def tokens(self, client: Any, request: Request) -> Tokens:
        """See `VLLM`."""
        text = request.fields.get("prompt")
        if text is None:
            asked = native_request("/apply-template", model=self._server.model, messages=request.fields["messages"])
            text = await self._server.ask(client, asked, _prompt)
        fields = {"content": text, "add_special": True, "parse_special": True}
        return await self._server.ask(client, native_request("/tokenize", model=self._server.model, **fields), _tokens)

    async def check(self, client: Any, tokens: Tokens) -> None:
        """See `VLLM`."""
        _, _, listed = await self._complete(client, tokens)
        token, log_p = min((item for item in listed.items() if np.isfinite(item[1])), key=lambda item: item[1])
        # Of two tokens one has at most half: a single one is what a filter leaves.
        if log_p > -SLACK or abs(await self._forced(client, tokens, token, 0.0) - log_p) > SLACK:
            raise InputError("exact = True: the server does not know logit_bias, or gives log-probabilities after it")

    async def after(self, client: Any, tokens: Tokens, wanted: Sequence[int]) -> dict[int, float]:
        """See `VLLM`."""
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
        asked = {"model": self._server.model, "prompt": list(tokens), "n_predict": 1, "n_probs": self._listed, **fields}
        request = native_request("/completion", Usage(len(tokens), 1), temperature=0.0, **asked)

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

        return await self._server.ask(client, request, read)


Dialect = VLLM | SGLang | LlamaCpp


async def _tokenised(server: Server, client: Any, request: Request, go_on: Mapping[str, bool]) -> Tokens:
    """Tokens as from `VLLM.tokens`; with the fields `go_on` a server tokenises an answer that is to be continued."""
    fields = {name: value for name, value in request.fields.items() if name != "extra_body"}
    fields |= go_on if request.kind == "chat" else {}
    return await server.ask(client, native_request("/tokenize", model=server.model, **fields), _tokens)


def _prompt(reply: Mapping[str, Any]) -> str:
    prompt = reply.get("prompt")
    if not isinstance(prompt, str):
        raise UnusableReplyError("the reply has no prompt")
    return prompt


def _owners(reply: Mapping[str, Any]) -> set[str]:
    cards = reply.get("data")
    named = cards if isinstance(cards, list) else []
    return {str(card.get("owned_by")).lower() for card in named if isinstance(card, dict)}


async def _version(server: Server, client: Any, *paths: str) -> str:
    """The version, or '' if the server does not tell it there."""

    def read(reply: Mapping[str, Any]) -> str:
        version = reply.get("version")
        return version if isinstance(version, str) and re.fullmatch(r"[\w.+-]{1,50}", version) else ""

    for path in paths:
        with suppress(InputError):
            return await server.ask(client, native_request(path), read)
    return ""


def _tokens(reply: Mapping[str, Any]) -> Tokens:
    tokens = reply.get("tokens")
    if not isinstance(tokens, list) or not tokens or not all(_is_token(token) for token in tokens):
        raise UnusableReplyError("the reply has no tokens")
    return tuple(tokens)


def _is_token(token: object) -> bool:
    return type(token) is int and 0 <= token <= LARGEST_TOKEN


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
