"""Files of models, checkpoints and networks; names load when they are first used."""

from maxmargin.lazy import lazy

_NAMES = {
    "model_file": "read_model write_model",
    "checkpoint": "load_checkpoint save_checkpoint",
    "bif": "Bif read_bif write_bif",
}

__all__, __getattr__, __dir__ = lazy(__name__, _NAMES)
