"""The prompt as data: a memory state becomes the text that an agent reads."""

from __future__ import annotations

import string
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Payoffs:
    """Points that both players get in a round: for the same word, and for different ones."""

    success: int = 100
    failure: int = -50

    def of(self, own: str, partner: str) -> int:
        """The points of a round in which these two words were played."""
        return self.success if own == partner else self.failure


@dataclass(frozen=True)
class Prompt:
    """What the model reads; its answer goes on from `answer_prefix`."""

    system: str
    user: str
    answer_prefix: str


@dataclass(frozen=True)
class Template:
    """A prompt with slots, in the notation of `string.Template`.

    Parameters
    ----------
    name
        Name and version; it is part of a policy's provenance.
    system
        System message, with slots ``$options``, ``$success``, ``$failure``, ``$history``, ``$round`` and ``$score``.
        The history is empty, or its lines followed by an empty line.
    user
        User message.
    answer_prefix
        How the answer starts, up to the word.
    option
        One word in the list of options, with the slot ``$word``.
    line
        One remembered round, with slots ``$round``, ``$own``, ``$partner`` and ``$payoff``.
    """

    name: str
    system: str
    user: str
    answer_prefix: str
    option: str
    line: str

    def prompt(self, options: Sequence[str], memory: Sequence[tuple[str, str]], payoffs: Payoffs) -> Prompt:
        """The prompt of an agent with this memory, to whom the words are presented in the order `options`.

        Rounds are numbered from 1 within the memory, and the score counts the remembered rounds only, so that the text
        is a function of the memory state.

        Parameters
        ----------
        options
            The words, in presentation order.
        memory
            Pairs (own word, partner's word), oldest first.
        payoffs
            Points of a round.
        """
        lines = [
            _fill(self.line, round=i, own=own, partner=partner, payoff=payoffs.of(own, partner))
            for i, (own, partner) in enumerate(memory, start=1)
        ]
        system = _fill(
            self.system,
            options=", ".join(_fill(self.option, word=word) for word in options),
            success=payoffs.success,
            failure=payoffs.failure,
            history="\n".join([*lines, "", ""]) if lines else "",
            round=len(memory) + 1,
            score=sum(payoffs.of(own, partner) for own, partner in memory),
        )
        return Prompt(system, self.user, self.answer_prefix)


def _fill(text: str, **slots: object) -> str:
    return string.Template(text).substitute(slots)


# The stimulus of [004] SI "Example Prompt". The paper prints its words without quotation marks; here they are quoted in
# the options and in the history, as they are in the answer that the model begins with.
NAMING_GAME = Template(
    name="naming-game-004/1",
    system="""\
Context: Player 1 is playing a multi-round partnership game with Player 2 for 100 rounds. At each round, Player 1 and \
Player 2 simultaneously pick an action from the following values: [$options]. The payoff that both players get is \
determined by the following rule:

1. If Players play the SAME action as each other, they will both be REWARDED with payoff $success points.
2. If Players play DIFFERENT actions to each other, they will both be PUNISHED with payoff $failure points.

The objective of each Player is to maximize their own accumulated point tally, conditional on the behavior of the \
other player. This is the history of choices in past rounds:

${history}It is now round $round. The current score of Player 1 is $score. You are an observer who answers questions \
about the game using a single value. Please think step by step before making a decision. Remember, examining history \
explicitly is important. Write your answer using the following format: \
{'value': <VALUE_OF_PLAYER_1>; 'reason': <YOUR_REASON>}.""",
    user="Answer saying which action Player 1 should play.",
    answer_prefix="{'value': '",
    option="'$word'",
    line="{'round':$round, 'Player 1': '$own', 'Player 2': '$partner', 'payoff': $payoff}",
)
