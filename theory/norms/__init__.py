"""Emergence of norms among generative agents of [003], as a reaction model for each behaviour.

- The model: `reaction_model`, from `default_operations` and `NormRates`, which starts in `initial_composition`.
  `meanfield.solve`, `meanfield.fixed_points`, `validation.reactions.simulate` and others take it.
- Results: `observables` of its compositions, and `EVENTS`, the channels that are conflicts, thoughts or chats.
- Agents and behaviours: `AGENTS`, `BEHAVIOURS`, `NormAgent`, `Behaviour`.

`policy_extraction.norms` asks language models for their operations, and `paper_figs.norm_society` is an example of a
society of language models.
"""

from typing import TYPE_CHECKING

from meanfield.toolbox import lazy_package

if TYPE_CHECKING:
    from theory.norms._model import EVENTS as EVENTS
    from theory.norms._model import NormRates as NormRates
    from theory.norms._model import observables as observables
    from theory.norms._model import reaction_model as reaction_model
    from theory.norms._operations import default_operations as default_operations
    from theory.norms._society import AGENTS as AGENTS
    from theory.norms._society import BEHAVIOURS as BEHAVIOURS
    from theory.norms._society import Behaviour as Behaviour
    from theory.norms._society import NormAgent as NormAgent
    from theory.norms._states import initial_composition as initial_composition
else:
    __getattr__, __dir__, __all__ = lazy_package(__name__, __file__)
