"""Short programs on the datasets that ship, one per task, for ``maxmargin demo``.

Each module has a function ``run``, whose source the command shows, and a class for what came out of it.
"""
