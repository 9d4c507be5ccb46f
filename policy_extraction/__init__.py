"""From a language model to a policy: what it would say in every memory state of the naming game.

The record of a measurement (log-probabilities over the whole vocabulary) and the policy made of it (a softmax over the
words at some temperature) are kept apart. PyTorch and transformers are needed only when a model is really run.
"""

import os

# Spinning OpenMP threads beside another busy process slow each other 15-fold. The setting is read when PyTorch loads.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

from policy_extraction.backends import Backend as Backend
from policy_extraction.backends import Scores as Scores
from policy_extraction.backends import TableBackend as TableBackend
from policy_extraction.backends import open_backend as open_backend
from policy_extraction.backends.api import CostLimitError as CostLimitError
from policy_extraction.backends.api import Limits as Limits
from policy_extraction.backends.api import OpenAIBackend as OpenAIBackend
from policy_extraction.backends.api import ServerError as ServerError
from policy_extraction.backends.local import SMOLLM2 as SMOLLM2
from policy_extraction.backends.local import TransformersBackend as TransformersBackend
from policy_extraction.checks import check_policy as check_policy
from policy_extraction.checks import comprehension as comprehension
from policy_extraction.checks import generation_test as generation_test
from policy_extraction.checks import live_population as live_population
from policy_extraction.checks import policy_warnings as policy_warnings
from policy_extraction.measuring import Sampling as Sampling
from policy_extraction.measuring import extract as extract
from policy_extraction.measuring import lazy_policy as lazy_policy
from policy_extraction.measuring import newest_first as newest_first
from policy_extraction.measuring import policy_from_record as policy_from_record
from policy_extraction.measuring import prompt_variants as prompt_variants
from policy_extraction.measuring import standard_variants as standard_variants
from policy_extraction.measuring import tempered as tempered
from policy_extraction.measuring import unquoted as unquoted
from policy_extraction.measuring import variant_table as variant_table
from policy_extraction.prompts import NAMING_GAME as NAMING_GAME
from policy_extraction.prompts import TEMPLATES as TEMPLATES
from policy_extraction.prompts import Payoffs as Payoffs
from policy_extraction.prompts import Prompt as Prompt
from policy_extraction.prompts import Template as Template
from policy_extraction.prompts import load_template as load_template
from policy_extraction.prompts import orders as orders
