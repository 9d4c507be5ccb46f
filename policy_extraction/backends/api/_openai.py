"""Language models behind an API in OpenAI's format."""

from __future__ import annotations

import base64
import importlib.util
import json
import os
import warnings
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, get_args

import numpy as np

from meanfield import InputError
from meanfield.toolbox import LARGEST_SEED, instance, real_number, shown, whole_number
from policy_extraction._toolbox.texts import MANY, check_name
from policy_extraction.backends._backend import NoLogProbabilitiesError, Scores
from policy_extraction.backends.api._batches import Batches
from policy_extraction.backends.api._chosen import ChosenTokens
from policy_extraction.backends.api._errors import RefusedLogprobsError
from policy_extraction.backends.api._journal import Journal
from policy_extraction.backends.api._limits import Limits, Meter
from policy_extraction.backends.api._pool import each
from policy_extraction.backends.api._reply import text_after, text_of, top_tokens_after
from policy_extraction.backends.api._request import CONTINUES, Prefill, Request, chat_request, request_for
from policy_extraction.backends.api._retries import Server
from policy_extraction.backends.api._wire import OPENAI, checked_address, find_key
from policy_extraction.backends.api._words import TopTokens, begins_anew, measure, openings_after
from policy_extraction.prompts._template import Prompt, checked_prompts, longest

MOST_LISTED = 1_000_000  # tokens; no vocabulary has more
MOST_AT_ONCE = 1000  # connections that the library opens
FOLLOW_UPS = 8  # further requests for a prompt whose words have several tokens
# The meaning of a measurement depends on them.
SET_HERE = (
    *("model", "messages", "prompt", "temperature", "top_p", "logprobs", "top_logprobs"),
    *("max_tokens", "max_completion_tokens", "seed", "n", "stream"),
)


class OpenAIBackend:
    """A language model behind an API in OpenAI's format: OpenAI's own, or any server at `base_url`.

    The probability of a word is read from the most probable tokens that the server lists right after the answer prefix
    (`logprobs`, `top_logprobs`). Tokens that spell the same word, with or without a space before it, are added; if the
    answer prefix does not end with a quotation mark, so are tokens with line breaks or such a mark. A word of several
    tokens takes further requests, if the server continues a given beginning of an answer. A word is censored if tokens
    which were not listed or not followed could add more than 1 % to its probability; its number is then an upper bound.
    Requests have temperature 1 and `top_p` 1.

    A server that refuses one of these, a seed or another field that it does not need, is asked without it; `provenance`
    names what was left out. Models that think before they answer, or give no log-probabilities, can only write answers:
    `measure` samples them, and `extract` refuses such a model after its first prompt or two.

    Parameters
    ----------
    model
        Name on the server. OpenAI moves its undated names to other models without notice; prefer dated names.
    base_url
        Address of the server, up to and including ``/v1``. None for the one in OPENAI_BASE_URL, else OpenAI's. Prompts
        go to this server alone; a redirection to another one is refused.
    api_key
        None for the one in OPENAI_API_KEY. Servers on this machine need none. Neither the key nor a password in the
        address is saved or shown, even if a server repeats it.
    prefill
        How the answer comes to begin with the prompt's `answer_prefix`.

        - ``'none'``: the model writes the prefix itself, as the prompt asks. The word is read after it, and an answer
          without it is asked for again, up to `max_retries` times. For OpenAI, whose models don't continue a given
          beginning.
        - ``'assistant'``: the prefix begins the assistant's turn, and the server continues it. For servers with open
          models, such as vLLM, SGLang and llama.cpp's.
        - ``'user'``: the user message ends with a request to go on from the prefix. This changes the prompt.
        - ``'text'``: system message, user message and prefix are one text for `/completions`. For base models.
    top_logprobs
        Tokens to list at each position, ≥ 1. OpenAI lists at most 20, vLLM at most its `--max-logprobs`, llama.cpp's
        server any number.
    limits
        Limits of requests, tokens and money.
    concurrency
        Requests at the same time.
    max_retries
        Further attempts after a failure: no connection, no answer in time, status 408, 409, 429 or 5xx, broken JSON,
        missing log-probabilities.
    backoff
        Seconds before the second attempt. The wait doubles with each attempt, up to two minutes, and is shortened by a
        random part of at most a quarter. A Retry-After of the server counts instead; more than two minutes is an error.
    timeout
        Seconds for an attempt.
    extra_body
        Further fields of every request, such as ``{"cache_prompt": False}`` for llama.cpp's server, or
        ``{"reasoning_effort": "low"}``. Fields that the back end sets, such as the temperature, are refused.
    exact
        Ask vLLM, SGLang or llama.cpp's server for exactly the tokens of the words, as for local models: no word is
        censored, and other spellings do not count. It needs `prefill` 'assistant' or 'text'. Any other server, or one
        that refuses, is asked for listed tokens, with a warning; `provenance` says which.
    tokenizer
        The model's tokenizer for `exact`: an object of transformers, or a name or path as in `extract`. None to let the
        server tokenise, with one more request for each prompt; old releases of SGLang do so for `prefill` 'text' only.
    batches
        Leave the prompts of `score` with the service in batches, which OpenAI answers within a day at half the price
        (`/files` and `/batches`). They have the answers of the same back end without it, under the same keys. A
        submitted batch is noted beside the kept answers, and a later call with the same cache fetches it. The longest
        prompt is asked at once and at the full price, to see that the model can be measured. A request that a batch
        leaves without a usable answer goes into another one, up to `max_retries` times. Limits a minute do not apply.
    poll
        Seconds between two looks at a batch.
    reasoning_tokens
        Tokens that the model may think before an answer that it writes, besides the answer's own; services charge
        them. None to find out: none at first, and up to 16,384 when answers end within their thoughts.

    Attributes
    ----------
    name, identity, provenance
        As in `Backend`. The identity consists of address, name and options, because an API does not tell when the model
        behind a name changes. The provenance has the model names and fingerprints of the replies, the numbers of
        requests, retries and tokens, and their cost if prices are given. It counts one measurement, which begins with
        the first `score` after a `check` or with other words.

    Raises
    ------
    InputError
        If there is no key, the library `openai` is not installed, or an argument is out of range.

    Examples
    --------
    >>> from policy_extraction import extract
    >>> from policy_extraction.backends.api import OpenAIBackend
    >>> server = OpenAIBackend("llama", base_url="http://127.0.0.1:8000/v1", prefill="assistant", top_logprobs=100)
    >>> server.name
    'llama'
    >>> policy = extract(server, words=("his", "her"), memory_length=3)  # doctest: +SKIP
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        prefill: Prefill = "none",
        top_logprobs: int = 20,
        limits: Limits = Limits(),  # noqa: B008  (frozen)
        concurrency: int = 8,
        max_retries: int = 6,
        backoff: float = 1.0,
        timeout: float = 120.0,
        extra_body: Mapping[str, Any] | None = None,
        exact: bool = False,
        tokenizer: Any = None,
        batches: bool = False,
        poll: float = 60.0,
        reasoning_tokens: int | None = None,
    ) -> None:
        if importlib.util.find_spec("openai") is None:
            raise InputError("an API needs the library openai, not installed here: pip install openai")
        check_name("model", model)
        if prefill not in get_args(Prefill):
            raise InputError(f"prefill = {prefill!r}: expected one of {', '.join(get_args(Prefill))}")
        top_logprobs = whole_number("top_logprobs", top_logprobs, 1, MOST_LISTED)
        concurrency = whole_number("concurrency", concurrency, 1, MOST_AT_ONCE)
        max_retries = whole_number("max_retries", max_retries, 0, LARGEST_SEED)
        real_number("timeout", timeout, above=0)
        real_number("backoff", backoff, least=0)
        real_number("poll", poll, above=0)
        if reasoning_tokens is not None:
            reasoning_tokens = whole_number("reasoning_tokens", reasoning_tokens, 0, MANY)
        if batches and exact:
            raise InputError("batches = True: expected exact = False, as such servers have no batches")
        extra = _checked_fields(extra_body)
        address = checked_address(base_url or os.environ.get("OPENAI_BASE_URL") or OPENAI)
        meter = Meter(instance("limits", limits, Limits))
        key = find_key(api_key, address)
        self._server = Server(model, address, key, meter, max_retries, backoff, timeout, extra, reasoning_tokens)
        self._prefill, self._top_logprobs, self._concurrency = prefill, top_logprobs, concurrency
        self._chosen = ChosenTokens(self._server, prefill, top_logprobs, tokenizer) if exact else None
        self._batches, self._poll = bool(batches), float(poll)
        self._measuring: tuple[str, ...] = ()
        self._good: object = None  # what was asked for last, once a caller could use an answer
        self.name = model
        # The number counts the rules of censoring: records made by another rule are measured again.
        asked = f"{model}|{prefill}|{top_logprobs}|{json.dumps(extra, sort_keys=True)}"
        asked += "" if self._chosen is None else f"|exact/1{self._chosen.tokenizer_name}"
        self.identity = self._server.secrets.hide(f"openai/2:{self._server.base_url}|{asked}")

    @property
    def provenance(self) -> dict[str, str | int | float]:
        """Address and settings of the server, and its answers and costs so far."""
        return {
            "base_url": self._server.base_url,
            "prefill": self._prefill,
            "top_logprobs": self._top_logprobs,
            **({} if self._chosen is None else {"asked": self._chosen.asked}),
            **self._server.count(),
        }

    def check(self, prompts: Sequence[Prompt], words: Sequence[str]) -> None:
        """Ask the longest prompt, at the cost of one request, and of a few more for `exact` or if fields are refused.

        With `batches` nothing is asked, as `score` begins with this prompt unless it finds earlier batches.

        Raises
        ------
        InputError
            If the server can't be reached, refuses key, model or prompt, gives no log-probabilities or not so many, or
            begins a new answer instead of continuing the prefix.
        """
        asked = longest(checked_prompts(prompts))
        self._measuring, self._good = (), None
        if self._batches or self._exactly(asked, words, anew=True):
            return

        async def job(client: Any) -> TopTokens:
            try:
                return await self._server.ask(client, *self._question(asked, ""))
            except RefusedLogprobsError as refused:
                try:
                    await self._server.ask(client, *self._question(asked, "", 1))
                except RefusedLogprobsError:
                    raise NoLogProbabilitiesError(f"{refused}; `measure` can sample its answers") from None
                raise InputError(f"{refused}; expected fewer, as 1 is taken") from None

        (top,) = self._each([job])
        self._check_continues(top, asked.answer_prefix, words)

    def _check_continues(self, top: TopTokens, prefix: str, words: Sequence[str]) -> None:
        again = begins_anew(top, prefix, words)
        if self._prefill != "none" and again > 0.5:
            raise InputError(
                f"prefill = {self._prefill!r}: {self.name} does not continue the answer prefix but begins with it "
                f"again (probability {again:.2f}); take 'none'"
            )

    def score(self, prompts: Sequence[Prompt], words: Sequence[str]) -> Iterator[Scores]:
        """See `Backend`; prompt by prompt, as the answers come.

        Prompts are sent in the order of their texts, in which neighbours share the longest beginnings: a server that
        keeps beginnings reads few of them twice. The first one is sent alone: if its answer is of no use, no more are.

        Raises
        ------
        InputError
            If the server refuses a request.
        ServerError
            If all attempts of a request failed, or a batch was cancelled. Everything measured before has been yielded.
        CostLimitError
            If the next request could exceed `max_cost`. Everything measured before has been yielded.
        """
        if self._batches:
            yield from self.score_later(prompts, words, journal=None, tell=lambda said: None)
            return
        self._begin(words)
        exactly = self._exactly(prompts[0], words) if prompts else None

        async def measured(number: int, client: Any) -> Scores:
            if exactly is not None:
                log_p = await exactly.measure(client, prompts[number], words)
                return Scores(np.array([number]), log_p[None], np.zeros((1, len(words)), dtype=bool))
            return await self._measured(number, prompts[number], words, partial(self._server.ask, client))

        yield from self._in_turn([partial(measured, number) for number in _in_order(prompts)], tuple(words))

    def score_later(
        self,
        prompts: Sequence[Prompt],
        words: Sequence[str],
        *,
        journal: Path | None,
        tell: Callable[[str], None],
        wait: bool = True,
    ) -> Iterator[Scores]:
        """See `Submitting`, with `batches`; else as `score`."""
        if not self._batches:
            if wait:
                yield from self.score(prompts, words)
            return
        self._begin(words)
        prefix = longest(prompts).answer_prefix if prompts else ""
        batches = Batches(
            self._server, self._poll, Journal(journal), tell, lambda top: self._check_continues(top, prefix, words)
        )
        for number in _in_order(prompts):
            batches.go_on(self._measured(number, prompts[number], words, batches.ask))
        while batches.waiting:
            try:
                (more,) = self._each([lambda client: batches.round(client, wait)])
            finally:
                yield from batches.results
                batches.results.clear()
            if not more:
                return

    def generate(
        self, prompts: Sequence[Prompt], *, max_tokens: int, temperature: float = 1.0, seed: int = 0
    ) -> list[str]:
        """See `Backend`. Each prompt has its own seed, made of `seed` and its number, which some servers ignore.

        With `prefill` 'none' a text can be a little longer than `max_tokens`.
        """

        async def written(number: int, client: Any) -> tuple[int, str]:
            prompt = prompts[number]
            fields = {"temperature": temperature, "top_p": 1, "seed": _seed(seed, number)}
            request = request_for(prompt, "", self._prefill, max_tokens, **fields)
            by_itself = self._prefill == "none"
            return number, await self._server.ask(
                client, request, lambda reply: text_after(reply, prompt.answer_prefix, required=by_itself)
            )

        texts = dict(self._in_turn([partial(written, number) for number in range(len(prompts))], temperature))
        return [texts[number] for number in range(len(prompts))]

    def complete(
        self,
        system: str,
        user: str,
        *,
        image_png: bytes | None = None,
        max_tokens: int = 512,
        temperature: float = 1.0,
        seed: int = 0,
    ) -> str:
        """The whole answer to a system and a user message, and an optional image (PNG), by `/chat/completions`.

        Several threads may call it at the same time; they share the limits.

        Raises
        ------
        InputError, ServerError, CostLimitError
            As in `score`.
        """
        messages: list[dict[str, Any]] = [{"role": "system", "content": system}] if system else []
        messages.append({"role": "user", "content": user})
        if image_png is not None:
            url = f"data:image/png;base64,{base64.b64encode(image_png).decode()}"
            image = {"type": "image_url", "image_url": {"url": url, "detail": "high"}}
            messages[-1]["content"] = [{"type": "text", "text": user}, image]
        request = chat_request(messages, max_tokens, temperature=temperature, top_p=1, seed=seed)

        async def job(client: Any) -> str:
            return await self._server.ask(client, request, text_of)

        (text,) = self._each([job])
        return text

    def tokens(self, words: Sequence[str]) -> list[str]:
        """'' for each word, as an API does not say how it spells words; the numbers of its tokens for `exact`."""
        return [""] * len(words) if self._chosen is None else self._chosen.tokens(words)

    def _exactly(self, prompt: Prompt, words: Sequence[str], anew: bool = False) -> ChosenTokens | None:
        """The measurer of exactly the words' tokens; None if listed tokens are asked for."""
        chosen = self._chosen
        if chosen is None:
            return None
        if anew or not chosen.asked:
            for _ in self._each([lambda client: chosen.decide(client, prompt, words)]):
                pass
            if chosen.dialect is None:
                warnings.warn(f"{self.name} is asked for {chosen.asked}", stacklevel=3)
        return None if chosen.dialect is None else chosen

    def _begin(self, words: Sequence[str]) -> None:
        """Count anew if this is another measurement."""
        if self._measuring != tuple(words):
            self._measuring = tuple(words)
            self._server.begin_count()

    async def _measured(
        self, number: int, prompt: Prompt, words: Sequence[str], ask: Callable[..., Awaitable[TopTokens]]
    ) -> Scores:
        """The words as answers to a prompt, by the tokens that are listed."""
        follow_ups = FOLLOW_UPS if self._prefill in CONTINUES else 0
        # An answer in a turn of its own may open the quotation again.
        openings = openings_after("" if self._prefill == "user" else prompt.answer_prefix)
        log_p, censored = await measure(words, lambda begun: ask(*self._question(prompt, begun)), follow_ups, openings)
        return Scores(np.array([number]), log_p[None], censored[None])

    def _in_turn(self, jobs: list[Any], what: object) -> Iterator[Any]:
        """Their results; the first job is alone until a caller goes on after an answer to `what` is asked."""
        alone = int(self._good != what)
        for part in filter(None, (jobs[:alone], jobs[alone:])):
            yield from self._each(part)
            self._good = what

    def _each(self, jobs: Any) -> Iterator[Any]:
        return each(self._server.client, jobs, self._concurrency)

    def _question(
        self, prompt: Prompt, begun: str, listed: int | None = None
    ) -> tuple[Request, Callable[[dict[str, Any]], TopTokens]]:
        """A request for the tokens after the prefix and `begun`, and what reads its reply."""
        listed = listed or self._top_logprobs
        fields: dict[str, Any] = {"temperature": 1, "top_p": 1}
        if self._prefill == "text":
            fields["logprobs"] = listed
        else:
            fields |= {"logprobs": True, "top_logprobs": listed}
        request = request_for(prompt, begun, self._prefill, 1, **fields)
        prefix = prompt.answer_prefix if self._prefill == "none" else ""
        return request, lambda reply: top_tokens_after(reply, prefix, listed)


def _in_order(prompts: Sequence[Prompt]) -> list[int]:
    """The numbers of the prompts in the order of their texts."""
    return sorted(range(len(prompts)), key=lambda number: (prompts[number].system, prompts[number].user))


def _seed(seed: int, number: int) -> int:
    """A seed below 2^31, as all servers take it, with room to add 1 at each attempt."""
    return int(np.random.SeedSequence([seed, number]).generate_state(1)[0]) % (2**31 - 1000)


def _checked_fields(extra_body: Mapping[str, Any] | None) -> dict[str, Any]:
    """Further fields of every request; InputError if JSON can't hold them, or the back end sets one of them."""
    if extra_body is None:
        return {}
    if not isinstance(extra_body, Mapping) or not all(isinstance(name, str) for name in extra_body):
        raise InputError(f"extra_body = {shown(extra_body)}: expected a dict of fields by name, or None")
    taken = [name for name in SET_HERE if name in extra_body]
    if taken:
        raise InputError(f"extra_body = {shown(extra_body)}: expected no {', '.join(taken)}, which the back end sets")
    try:
        json.dumps(dict(extra_body), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"extra_body: expected what JSON can hold ({error})") from None
    return dict(extra_body)
