"""Counts how often a framework calls a method of its own."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any


class CallCounter:
    """Counts calls of ``owner.method`` from now until ``close()``.

    Args:
        owner: the class whose method is wrapped.
        method: its name.
        amount: asked after the call with the instance for how many events the call counts; a
            truth value will do.
        error: count calls that raise this instead of calls that return.

    Frameworks keep no count of most of these events; wrapping the method is the one way to see
    each of them once, also when the object is gone by the next boundary.
    """

    def __init__(
        self,
        owner: type,
        method: str,
        *,
        amount: Callable[[Any], int] | None = None,
        error: type[BaseException] | None = None,
    ) -> None:
        self.total = 0
        self._owner, self._method = owner, method
        self._original = owner.__dict__[method]
        self._wrapper = self._failures(error) if error else self._returns(amount)
        setattr(owner, method, self._wrapper)

    def _returns(self, amount: Callable[[Any], int] | None) -> Callable[..., Any]:
        original = self._original

        @wraps(original)
        def wrapper(instance: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(instance, *args, **kwargs)
            self.total += 1 if amount is None else amount(instance)
            return result

        return wrapper

    def _failures(self, error: type[BaseException]) -> Callable[..., Any]:
        original = self._original

        @wraps(original)
        def wrapper(instance: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                return original(instance, *args, **kwargs)
            except error:
                self.total += 1
                raise

        return wrapper

    def close(self) -> None:
        """Put the method back, unless someone has wrapped it again since: then leave both."""
        if self._owner.__dict__.get(self._method) is self._wrapper:
            setattr(self._owner, self._method, self._original)
