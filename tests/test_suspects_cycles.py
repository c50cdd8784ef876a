"""Objects in reference cycles, and who they are."""

import gc

from leakkit.suspects.cycles import Cycles


class Node:
    def __init__(self):
        self.me = self


def test_what_only_the_collector_frees_is_named():
    gc.collect()
    gc.disable()
    try:
        for _ in range(3):
            Node()
        cycles = Cycles()
        cycles.collect()
    finally:
        gc.enable()
    [suspect] = cycles.suspects()
    assert suspect.where == f"Node objects (module {__name__})"
    assert "3 Node" in suspect.what
    assert not any(isinstance(o, Node) for o in gc.garbage)
    assert gc.get_debug() == 0


def test_nothing_found_is_no_suspect():
    gc.collect()
    cycles = Cycles()
    cycles.collect()
    assert cycles.suspects() == []
