"""Writers of the small datasets that ship with the package; ``python -m tools.small_data`` writes them all again."""
