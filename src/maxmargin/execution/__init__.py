"""Where oracles run; names load when they are first used."""

from maxmargin.lazy import lazy

_NAMES = {
    "executors": "Processes Serial Threads make_executor",
    "sharded": "ShardedOracle",
}
_PLACES = {name: f"maxmargin.execution.{module}" for module, names in _NAMES.items() for name in names.split()}

__all__ = [*_PLACES]
__getattr__, __dir__ = lazy(__name__, _PLACES)
