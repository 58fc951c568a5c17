"""The linear program over some planes, and the methods that solve it."""
