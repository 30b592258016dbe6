"""Number formats that the benches compare."""

from __future__ import annotations

DTYPES = ("fp32", "bf16")
FASTEST = "fastest"
