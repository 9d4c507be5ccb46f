"""Rates at which agents meet, plan and synthesise."""

from __future__ import annotations

from dataclasses import dataclass

from meanfield import InputError
from meanfield.toolbox import one_of, real_number


@dataclass(frozen=True)
class NormRates:
    """Rates at which an agent meets, plans and synthesises, and the weight of its other norms.

    The threshold is from [003], the other values are our choice. In [003] over 70 % of the agents accept each norm
    within a quarter of a day, and comply with the injunctive ones after nearly three quarters. With the default
    operations encounters set the first time, plans and synthesis the second.

    Parameters
    ----------
    encounters_per_day
        Rate at which an agent observes another one in one behaviour; positive.
    plans_per_day
        Rate at which it makes a plan that involves the behaviour.
    syntheses_per_day
        Rate at which it looks through its norms once their utilities exceed the threshold.
    other_utility_entrepreneur, other_utility_ordinary
        Total utility of the agent's qualified norms for other behaviours; a constant, so that the model closes for one
        behaviour. An entrepreneur starts with five norms, four of them others. By default tipping brings an ordinary
        agent exactly to the threshold, and so to no synthesis.
    threshold
        Total utility above which norms are synthesised; 350 in [003] Appendix A.

    Raises
    ------
    InputError
        If a value is negative or not finite, or there are no encounters.

    Examples
    --------
    >>> rates = theory.norms.NormRates(other_utility_ordinary=200.0)
    >>> rates.synthesises("entrepreneur", utility=95), rates.synthesises("ordinary", utility=95)
    (True, False)
    """

    encounters_per_day: float = 160.0
    plans_per_day: float = 1.1
    syntheses_per_day: float = 1.0
    other_utility_entrepreneur: float = 340.0
    other_utility_ordinary: float = 270.0
    threshold: float = 350.0

    def __post_init__(self) -> None:
        for name, value in list(vars(self).items()):
            number = real_number(name, value, **{"above" if name == "encounters_per_day" else "least": 0})
            object.__setattr__(self, name, number)

    def synthesises(self, type: str, utility: float) -> bool:
        """Whether a norm of this utility brings an agent of this type above the threshold."""
        others = {"entrepreneur": self.other_utility_entrepreneur, "ordinary": self.other_utility_ordinary}
        return others[one_of("type", type, others)] + real_number("utility", utility) > self.threshold


def rates_of(rates: NormRates | None) -> NormRates:
    """The rates, or the default ones; InputError for anything else."""
    if rates is not None and not isinstance(rates, NormRates):
        raise InputError(f"rates = {rates!r}: expected NormRates")
    return rates or NormRates()
