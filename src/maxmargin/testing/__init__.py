"""Checks for authors of models."""

from maxmargin.testing.check_model import check_model
from maxmargin.testing.report import ModelError, Report

__all__ = ["ModelError", "Report", "check_model"]
