"""Mean-field theory of populations of language models.

A policy (what an agent says in every memory state) becomes a rate equation, its fixed points, their spectra and a
stability table. Results are labelled `xarray.Dataset`s.
"""

import jax

jax.config.update("jax_enable_x64", True)

from meanfield import datasets as datasets  # noqa: E402
from meanfield._errors import InputError as InputError  # noqa: E402
from meanfield._files import load as load  # noqa: E402
from meanfield._files import load_policy as load_policy  # noqa: E402
from meanfield._files import save as save  # noqa: E402
from meanfield._memory import MemorySpace as MemorySpace  # noqa: E402
from meanfield._policy import each_policy as each_policy  # noqa: E402
from meanfield._policy import make_policy as make_policy  # noqa: E402
from meanfield._policy import name_of as name_of  # noqa: E402
from meanfield._policy import policy_hash as policy_hash  # noqa: E402
from meanfield._policy import single_policy as single_policy  # noqa: E402
from meanfield._policy import space_of as space_of  # noqa: E402
from meanfield._policy import validate_policy as validate_policy  # noqa: E402
from meanfield._policy import word_index as word_index  # noqa: E402
from meanfield._policy import words_of as words_of  # noqa: E402
from meanfield._provenance import stamp as stamp  # noqa: E402
from meanfield._rate_equation import TIME_PER_ROUND as TIME_PER_ROUND  # noqa: E402
from meanfield._rate_equation import drift as drift  # noqa: E402
from meanfield._reaction import dense_tensor as dense_tensor  # noqa: E402
