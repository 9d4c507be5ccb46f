"""Emergence of norms among generative agents of [003], as a reaction model for each behaviour.

- Theory: `emergence`, `emergence_measures`, `fixed_points`, `entrepreneur_threshold`, `sensitivity`.
- The model: `reaction_model` and `observables`, from `default_operations`, `validate_operations`, `NormRates`,
  `initial_composition` and `starting_fractions`.
- Agents and norms: `AGENTS`, `as_ordinary`, `BEHAVIOURS`, `NormAgent`, `Behaviour`, `PersonalNorm`, `NormDatabase`.
- Agents with operations of your own: `SocietyOperations`, with `Observation`, `Information`, `Plan` and `Action`.

`validation.norms` simulates the agents, `policy_extraction.norms` asks language models for their operations.
"""

from theory.norms._contract import Action as Action
from theory.norms._contract import Information as Information
from theory.norms._contract import Observation as Observation
from theory.norms._contract import Plan as Plan
from theory.norms._contract import SocietyOperations as SocietyOperations
from theory.norms._emergence import emergence as emergence
from theory.norms._emergence import emergence_measures as emergence_measures
from theory.norms._fixed_points import fixed_points as fixed_points
from theory.norms._model import CHANNELS as CHANNELS
from theory.norms._model import reaction_model as reaction_model
from theory.norms._observables import observables as observables
from theory.norms._operations import OPERATIONS as OPERATIONS
from theory.norms._operations import default_operations as default_operations
from theory.norms._operations import validate_operations as validate_operations
from theory.norms._personal_norm import KINDS as KINDS
from theory.norms._personal_norm import SYNTHESIS_THRESHOLD as SYNTHESIS_THRESHOLD
from theory.norms._personal_norm import NormDatabase as NormDatabase
from theory.norms._personal_norm import PersonalNorm as PersonalNorm
from theory.norms._rates import NormRates as NormRates
from theory.norms._sensitivity import sensitivity as sensitivity
from theory.norms._society import AGENTS as AGENTS
from theory.norms._society import BEHAVIOURS as BEHAVIOURS
from theory.norms._society import STANDARDS as STANDARDS
from theory.norms._society import TYPES as TYPES
from theory.norms._society import Behaviour as Behaviour
from theory.norms._society import NormAgent as NormAgent
from theory.norms._society import as_ordinary as as_ordinary
from theory.norms._society import behaviour_of as behaviour_of
from theory.norms._start import initial_composition as initial_composition
from theory.norms._start import starting_fractions as starting_fractions
from theory.norms._states import NORM_STATES as NORM_STATES
from theory.norms._states import NormState as NormState
from theory.norms._threshold import entrepreneur_threshold as entrepreneur_threshold
