"""Emergence of norms among generative agents of [003], as a reaction model for each behaviour.

- Theory: `emergence`, `emergence_measures`.
- The model: `reaction_model` and `observables`, from `default_operations` and `NormRates`; it starts in
  `initial_composition`. `meanfield.fixed_points` and others take it.
- Agents and behaviours: `AGENTS`, `BEHAVIOURS`, `NormAgent`, `Behaviour`.

`validation.norms` simulates many agents, `policy_extraction.norms` asks language models for their operations, and
`paper_figs.norm_society` is an example of a society of language models.
"""

from typing import TYPE_CHECKING

from meanfield.toolbox import lazy_door

if TYPE_CHECKING:
    from theory.norms._emergence import emergence as emergence
    from theory.norms._emergence import emergence_measures as emergence_measures
    from theory.norms._model import reaction_model as reaction_model
    from theory.norms._observables import observables as observables
    from theory.norms._operations import default_operations as default_operations
    from theory.norms._rates import NormRates as NormRates
    from theory.norms._society import AGENTS as AGENTS
    from theory.norms._society import BEHAVIOURS as BEHAVIOURS
    from theory.norms._society import Behaviour as Behaviour
    from theory.norms._society import NormAgent as NormAgent
    from theory.norms._states import initial_composition as initial_composition
else:
    __getattr__, __dir__, __all__ = lazy_door(
        __name__,
        __file__,
        former=(
            *("CHANNELS", "KINDS", "NORM_STATES", "NormState", "OPERATIONS", "PersonalNorm", "STANDARDS", "TYPES"),
            *("as_ordinary", "behaviour_of", "entrepreneur_threshold", "fixed_points", "sensitivity"),
            *("starting_fractions", "validate_operations"),
        ),
    )
