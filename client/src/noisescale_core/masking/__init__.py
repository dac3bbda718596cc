"""Configs without the secrets that people leave in them: one list of rules, for the job and for the server.

By names (`names.py`: `hf_token`, `db.password`), by what stands before a value in a text (`texts.py`: `--api-key x`,
`PASSWORD=x`, `postgresql://ada:x@db`) and by the shape of the value itself (there, too: `hf_…`, `sk-…`, webhooks).
"""

from noisescale_core.masking.config import masked
from noisescale_core.masking.texts import MASK, masked_text

__all__ = ["MASK", "masked", "masked_text"]
