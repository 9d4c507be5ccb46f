"""Language models as the agents of a norm society [003]: its prompts, its operations, and their probabilities.

With `NormOperations` a model decides, speaks and acts for the agents of `validation.norms.simulate_society`.
`probe_operations` measures the probabilities of its yes/no answers, and `operation_probabilities` makes the table of
`theory.norms` from them. `NORMS_003` are the prompts; `load_prompts` reads others.

Agents, norms and behaviours are objects with the attributes that `theory.norms` gives them; nothing here knows the
society's rules.
"""

from policy_extraction.norms._operations import NormOperations as NormOperations
from policy_extraction.norms._probe import operation_probabilities as operation_probabilities
from policy_extraction.norms._probe import probe_operations as probe_operations
from policy_extraction.norms._prompts import NORMS_003 as NORMS_003
from policy_extraction.norms._prompts import load_prompts as load_prompts
