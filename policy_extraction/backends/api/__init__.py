"""Language models behind an API in OpenAI's format, within limits of rate and cost."""

from policy_extraction.backends.api._errors import ServerError as ServerError
from policy_extraction.backends.api._limits import CostLimitError as CostLimitError
from policy_extraction.backends.api._limits import Limits as Limits
from policy_extraction.backends.api._openai import OpenAIBackend as OpenAIBackend
