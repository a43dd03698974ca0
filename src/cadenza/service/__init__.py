"""The application: what can be done with runs."""

from __future__ import annotations

from cadenza.service.application import Service
from cadenza.service.options import MAX_TASK_BYTES, Options, check_text

__all__ = ["MAX_TASK_BYTES", "Options", "Service", "check_text"]
