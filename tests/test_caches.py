"""What a loop adds to the standard library's caches is taken out again, and nothing else."""

import fnmatch
import functools
import linecache
import re

from leakkit.heap.caches import StandardCaches


def fill(cache_function, count, prefix):
    for number in range(count):
        cache_function(f"{prefix}{number}*")


def entries():
    return fnmatch._compile_pattern.cache_info().currsize


def test_what_a_step_only_reads_stays():
    re.purge()
    fnmatch.filter([], "stays*")
    caches = StandardCaches()
    for _ in range(5):
        fnmatch.filter([], "stays*")
        caches.trim()
    assert entries() >= 1


def test_a_new_entry_a_step_never_adds_up():
    fnmatch._compile_pattern.cache_clear()
    fill(functools.partial(fnmatch.filter, []), 30, "before")
    caches = StandardCaches()
    most = []
    for step in range(60):
        fnmatch.filter([], f"step-{step}*")
        caches.trim()
        most.append(entries())
    assert max(most) <= 2


def test_a_full_cache_is_emptied_so_that_it_does_not_trade_old_entries_for_new_ones():
    fill(re.compile, re._MAXCACHE + 1, "pattern")
    caches = StandardCaches()
    kept = []
    for step in range(20):
        re.compile(f"step-{step}")
        caches.trim()
        kept.append(len(re._cache))
    assert max(kept) <= 2


def test_lines_of_files_are_forgotten_and_those_of_generated_code_are_the_users():
    caches = StandardCaches()
    caches.trim()
    made = [f"<generated {number}>" for number in range(5)]
    try:
        for number, name in enumerate(made):
            linecache.cache[name] = (12, None, ["x = 1\n"], name)
            linecache.cache[f"read{number}.py"] = (12, 1.7e9, ["x = 1\n"], f"read{number}.py")
            caches.trim()
        assert set(made) <= set(linecache.cache)
        assert not [name for name in linecache.cache if name.startswith("read")]
    finally:
        for name in made:
            linecache.cache.pop(name, None)
