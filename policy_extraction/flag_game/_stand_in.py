"""An agent without a language model: an ideal observer that reads the prompts and writes valid answers."""

from __future__ import annotations

import hashlib
import json
import re
import string
from collections.abc import Mapping, Sequence

import numpy as np

from meanfield import InputError
from meanfield.toolbox import instance, one_or_several, real_number, shown, whole_number
from policy_extraction.flag_game._asking import MOST_INFLUENTIAL, check_countries, check_crop
from policy_extraction.flag_game._prompts import ALLOWED, FLAG_GAME_002, TASKS, FlagGamePrompts, Task

ROUNDING = 1e-9  # tolerance of sums of probabilities
ANSWERS = ("likeliest", "sampled")


class StandIn:
    """An agent with known beliefs, for trials of a game without a paid language model.

    It knows the compatibility p of a crop with each country and starts from the belief x = p. Each report in its
    prompt, oldest first, moves the belief: x → (1 - α) x + α M [002, Eq. 5], where M is the reported country, or the
    mean of simultaneous reports. A grounded agent then multiplies x by p and normalises it [Eq. 6]; a report that would
    leave 0 is ignored. A manager without a crop has a flat p. The agent rewrites nothing (γ = 0) and reads no reasons.

    Parameters
    ----------
    compatibility, countries
        p over the countries, in their order, for each crop, by the bytes of its PNG file; each sums to 1.
    uptake
        α in [0, 1]; 0 trusts the crop only.
    grounded
        False leaves out Eq. 6; with α = 1 the agent then repeats the last report.
    answers
        'likeliest' for the likeliest country, with ties broken evenly, or 'sampled' from the belief; by the seed of the
        call.
    prompts, name
        The prompts that it can read, and its name.

    Raises
    ------
    InputError
        If an argument is out of range.

    Examples
    --------
    It sees France, and a report of Peru changes its mind.

    >>> from policy_extraction.flag_game import FLAG_GAME_002, StandIn
    >>> crop = theory.flag_game.png(np.zeros((1, 1, 3), np.uint8))
    >>> agent = StandIn({crop: [0.8, 0.2]}, ("France", "Peru"), uptake=0.9)
    >>> for memory in ("", '{"country": "Peru"}'):
    ...     print(agent.complete("", FLAG_GAME_002.message.text(agent.countries, 1, memory=memory), image_png=crop))
    {"country": "France"}
    {"country": "Peru"}
    """

    def __init__(
        self,
        compatibility: Mapping[bytes, Sequence[float] | np.ndarray],
        countries: Sequence[str],
        *,
        uptake: float,
        grounded: bool = True,
        answers: str = "likeliest",
        prompts: FlagGamePrompts = FLAG_GAME_002,
        name: str = "stand-in",
    ) -> None:
        self.countries = tuple(one_or_several(countries))
        check_countries(self.countries)
        real_number("uptake", uptake, least=0, most=1)
        if answers not in ANSWERS:
            raise InputError(f"answers = {answers!r}: expected {' or '.join(map(repr, ANSWERS))}")
        instance("prompts", prompts, FlagGamePrompts)
        instance("compatibility", compatibility, Mapping)
        self._p: dict[bytes, np.ndarray] = {}
        for crop, p in compatibility.items():
            check_crop("compatibility, a key", crop)
            self._p[crop] = row = np.array(p, dtype=np.float64)
            if row.shape != (len(self.countries),) or not (row >= 0).all() or not abs(row.sum() - 1) <= ROUNDING:
                raise InputError(
                    f"compatibility: a row has shape {row.shape} and the sum {row.sum()}, expected probabilities of "
                    f"{len(self.countries)} countries that sum to 1"
                )
        self._uptake, self._grounded, self._answers, self.name = uptake, grounded, answers, name
        self._prompts = [(kind, _reader(getattr(prompts, kind), prompts.retry)) for kind in TASKS]
        known = hashlib.sha256()
        for crop, p in self._p.items():
            known.update(crop + p.tobytes())
        self.identity = f"stand-in:{uptake}|{grounded}|{answers}|{known.hexdigest()}"

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
        """The answer to a prompt of the game; options other than the seed are ignored.

        Raises
        ------
        InputError
            If the prompt is not one of the game, or the crop is unknown.
        """
        tried = ((kind, reader.fullmatch(user)) for kind, reader in self._prompts if isinstance(user, str))
        kind, found = next((one for one in tried if one[1]), (None, None))
        if found is None:
            raise InputError(f"user: {self.name} reads prompts of the flag game only, not {shown(user)}")
        slots, seed = found.groupdict(), whole_number("seed", seed)
        if image_png is not None and not (isinstance(image_png, bytes) and image_png in self._p):
            raise InputError(f"image_png: {self.name} does not know this crop")
        k = len(self.countries)
        p = np.full(k, 1 / k) if image_png is None else self._p[image_png]
        belief = p
        reports = []  # simultaneous ones (agent, country), of 'id | model | country …' lines or a JSON list
        if kind == "manager":
            reports = [(number, report["country"]) for number, report in enumerate(json.loads(slots["reports"]))]
        elif kind == "decision":
            parts = (line.split(" | ") for line in slots["reports"].splitlines())
            reports = [(int(number), country) for number, _, country, *_ in parts]
        lines = [line for line in slots["memory"].splitlines() if line != "[]"]
        # A remembered line is a message in JSON, or the country itself
        remembered = [[json.loads(line)["country"] if line.startswith("{") else line] for line in lines]
        for said in filter(None, (*remembered, [country for _, country in reports])):
            message = np.array([said.count(country) for country in self.countries]) / len(said)
            moved = (1 - self._uptake) * belief + self._uptake * message
            moved = moved * p if self._grounded else moved
            belief = moved / moved.sum() if moved.sum() > 0 else belief
        rng = np.random.default_rng(seed)
        if self._answers == "sampled":
            choice = rng.choice(k, p=belief)
        else:
            choice = rng.choice(np.flatnonzero(belief >= belief.max() * (1 - ROUNDING)))
        country = self.countries[int(choice)]
        values = {
            "country": country,
            "model_identity": slots.get("model", ""),
            "influential_agent_ids": [number for number, said in reports if said == country][:MOST_INFLUENTIAL],
        }
        keys = re.findall(r'"(\w+)":', slots["schema"])
        return json.dumps({key: values.get(key, f"It looks like {country}.") for key in keys})


def _reader(task: Task, retry: str) -> re.Pattern[str]:
    """The pattern of a task's user message, first or repeated, whose groups are the slots."""
    known = {
        "allowed": rf"(?:{ALLOWED}[^\n]*\n)?",
        "susceptibility": rf"(?:(?:{_one_of(task.susceptibility)})\n)?",
        "schema": _one_of(task.schemas),
        "problem": r"[^\n]*",
    }
    return re.compile(f"{_backwards(task.user, known)}(?:\n{_backwards(retry, known)})?", re.DOTALL)


def _backwards(text: str, known: Mapping[str, str]) -> str:
    """The pattern of a text with slots; slots that are not in `known` may hold anything."""
    pattern, end, named = "", 0, set()
    for slot in string.Template.pattern.finditer(text):
        name = slot["named"] or slot["braced"]
        pattern, end = pattern + re.escape(text[end : slot.start()]), slot.end()
        if name is None:
            pattern += re.escape("$")
        else:
            pattern += f"(?P={name})" if name in named else f"(?P<{name}>{known.get(name, '.*?')})"
            named.add(name)
    return pattern + re.escape(text[end:])


def _one_of(texts: Sequence[str]) -> str:
    return "|".join(map(re.escape, texts)) or "(?!)"
