"""Language models as the agents of a norm society [003]: prompts, and the probabilities of its yes/no answers.

`probe_operations` measures the probabilities, and `operation_probabilities` makes the table of `theory.norms` from
them. `NORMS_003` are the prompts; `load_prompts` reads others. In `paper_figs.norm_society` a model also decides,
speaks and acts for the agents.

Agents, norms and behaviours are objects with the attributes that `theory.norms` gives them.
"""

from policy_extraction.norms._probe import operation_probabilities as operation_probabilities
from policy_extraction.norms._probe import probe_operations as probe_operations
from policy_extraction.norms._prompts import NORMS_003 as NORMS_003
from policy_extraction.norms._prompts import load_prompts as load_prompts
