"""Where oracles run; names load when they are first used."""

from maxmargin.lazy import lazy

_NAMES = {
    "executors": "Serial Threads make_executor",
    "processes": "Processes",
    "ray_workers": "Ray",
    "sharded": "ShardedOracle",
}

__all__, __getattr__, __dir__ = lazy(__name__, _NAMES)
