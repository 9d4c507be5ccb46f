"""Emergence of norms among generative agents of [003], as a reaction model for each behaviour."""

from theory.norms._emergence import emergence as emergence
from theory.norms._emergence import emergence_measures as emergence_measures
from theory.norms._model import CHANNELS as CHANNELS
from theory.norms._model import norm_model as norm_model
from theory.norms._observables import norm_observables as norm_observables
from theory.norms._operations import OPERATIONS as OPERATIONS
from theory.norms._operations import default_operations as default_operations
from theory.norms._operations import validate_operations as validate_operations
from theory.norms._personal_norm import KINDS as KINDS
from theory.norms._personal_norm import SYNTHESIS_THRESHOLD as SYNTHESIS_THRESHOLD
from theory.norms._personal_norm import NormDatabase as NormDatabase
from theory.norms._personal_norm import PersonalNorm as PersonalNorm
from theory.norms._rates import NormRates as NormRates
from theory.norms._sensitivity import norm_sensitivity as norm_sensitivity
from theory.norms._society import AGENTS as AGENTS
from theory.norms._society import BEHAVIOURS as BEHAVIOURS
from theory.norms._society import STANDARDS as STANDARDS
from theory.norms._society import TYPES as TYPES
from theory.norms._society import Behaviour as Behaviour
from theory.norms._society import NormAgent as NormAgent
from theory.norms._society import as_ordinary as as_ordinary
from theory.norms._society import behaviour_of as behaviour_of
from theory.norms._start import norm_fractions as norm_fractions
from theory.norms._start import norm_start as norm_start
from theory.norms._states import NORM_STATES as NORM_STATES
from theory.norms._states import NormState as NormState
