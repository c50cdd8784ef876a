"""What TensorFlow itself keeps, for each tf.data object that came and went.

Found with native stacks in TensorFlow 2.21 (`docs/devices.md` has the measurements):

- an eager iterator that runs to its end leaves the rendezvous that its last error aborted:
  208 + 96 + 88 + 80 + 48 bytes. One that is dropped before its end leaves nothing of these.
- every iterator names two cells of tf.data's monitoring after its model's address, and they
  are never removed: 104 + 80 + 32 + 24 bytes, unless the address has been used before.
- every dataset operation leaves an empty statistics publisher: 8 bytes.
- every map function that tf.data traces leaves its name, in the Python heap.

malloc adds to each block, so the process' in-use bytes rise by more than the bytes asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from leakkit.frameworks import OwnGrowth

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from leakkit.series import Series

NAME = "tf_own_bytes"
PYTHON_NAME = "tf_own_python_bytes"

_ENDED = (208, 96, 88, 80, 48)
_MADE = (104, 80, 32, 24)
_DATASET = (8,)
# bytes object: 33, and a name such as __inference_Dataset_map_MapDataset_1234567
_MAP_FUNCTION = 33 + 63


def own_growth(series: Mapping[str, Series], version: str) -> Sequence[OwnGrowth]:
    """The native and the Python bytes that tf.data kept, from the events of each step.

    Args:
        series: those of one pass; ``native_heap`` of the trace pass is recognised by the absence
            of ``rss``, which only the watch pass reads.
        version: TensorFlow's version.

    Returns:
        At most one for ``native_heap`` and one for ``python_heap``; each is an upper bound.
    """
    if not {"tf_iterators_made", "tf_iterators_ended", "tf_datasets_made"} <= series.keys():
        return ()
    rounded = "rss" in series
    events = (
        (_events(series, "tf_iterators_ended"), _size(_ENDED, rounded)),
        (_events(series, "tf_iterators_made"), _size(_MADE, rounded)),
        (_events(series, "tf_datasets_made"), _size(_DATASET, rounded)),
    )
    native = sum((count * size for count, size in events), np.zeros(()))
    made = _events(series, "tf_iterators_made")
    found = [_native(np.cumsum(native), float(made.mean()), version)] if native.any() else []
    if "tf_data_traces" in series and (traced := _events(series, "tf_data_traces")).any():
        found.append(_python(np.cumsum(traced * _MAP_FUNCTION), float(traced.mean()), version))
    return found


def _events(series: Mapping[str, Series], name: str) -> NDArray[np.float64]:
    return np.nan_to_num(series[name].values)


def _size(blocks: tuple[int, ...], rounded: bool) -> int:
    """Bytes asked for, or what glibc takes for them: 8 more, in multiples of 16, at least 32."""
    if not rounded:
        return sum(blocks)
    return sum(max(32, (block + 8 + 15) // 16 * 16) for block in blocks)


def _native(values: NDArray[np.float64], iterators: float, version: str) -> OwnGrowth:
    per_step = values[-1] / len(values)
    return OwnGrowth(
        NAME,
        "native_heap",
        values,
        f"TensorFlow {version}",
        f"TensorFlow {version} keeps up to {per_step:,.0f} B a step for its {iterators:g} tf.data "
        "iterators a step (fit, evaluate and predict make two a call); not your code.",
    )


def _python(values: NDArray[np.float64], traces: float, version: str) -> OwnGrowth:
    per_step = values[-1] / len(values)
    return OwnGrowth(
        PYTHON_NAME,
        "python_heap",
        values,
        f"TensorFlow {version}",
        f"TensorFlow {version} keeps up to {per_step:,.0f} B a step for the names of {traces:g} "
        "tf.data functions that it traces a step (each dataset that is built with map or from "
        "numpy traces its own); not your code.",
    )
