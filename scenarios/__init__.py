"""The scenario library: known leaks, each with its corrected counterpart."""
