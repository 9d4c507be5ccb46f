"""Back ends, which answer prompts: local models, models behind an API, and tables of answers."""

from policy_extraction.backends._backend import Backend as Backend
from policy_extraction.backends._backend import Scores as Scores
from policy_extraction.backends._open import open_backend as open_backend
from policy_extraction.backends._table import TableBackend as TableBackend
