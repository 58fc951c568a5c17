"""The faces of other libraries, so that scripts written for them run after a change of the import."""
