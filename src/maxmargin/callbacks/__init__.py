"""Callbacks: look at a run at each certificate, log it, save it, stop it."""

from maxmargin.callbacks.base import Callback
from maxmargin.callbacks.checkpoint import Checkpoint
from maxmargin.callbacks.early_stopping import EarlyStopping
from maxmargin.callbacks.json_log import JsonLog
from maxmargin.callbacks.progress import Progress

__all__ = ["Callback", "Checkpoint", "EarlyStopping", "JsonLog", "Progress"]
