"""A wrapper caches masks by the identity of its input, and no input ever comes twice."""

import tensorflow as tf

from leakkit.scenarios import Scenario, Step, main

SCENARIO = Scenario(
    name="cache-keyed-by-identity",
    family="tensors",
    needs=("tensorflow",),
    grows=("live_tensors", "native_heap", "python_heap"),
    rate="an input and its mask a step: two tensors, some 18 KB",
    diagnosis="cache-keyed-by-identity",
    symptom="A wrapper layer, a bijector or a memoised loss leaks with the number of batches.",
    cause="The table is keyed by x.ref() (or id(x)); each batch is a new object, so the table "
    "has one entry a step, and a ref() holds its tensor.",
    remedy="Compute it again, or pass it along with the batch; where a cache must be, bound it "
    "or key it by value or weakly.",
    reports=(
        "tensorflow/tensorflow#33441",
        "tensorflow/tensorflow#34827",
        "tensorflow/tensorflow#34379",
    ),
    seen_on="TensorFlow 2.0 to 2.21",
    leaks_on={"tensorflow": ">=2.0"},
)


class Masked:
    """Averages what isn't padding."""

    def __init__(self) -> None:
        self.masks: dict[object, tf.Tensor] = {}

    def mask(self, tokens: tf.Tensor) -> tf.Tensor:
        """1 where there is a token."""
        return tf.cast(tokens > 0, tf.float32)

    def cached_mask(self, tokens: tf.Tensor) -> tf.Tensor:
        """The same, looked up by the tensor's identity."""
        key = tokens.ref()
        if key not in self.masks:
            self.masks[key] = self.mask(tokens)
        return self.masks[key]


def leaky() -> Step:
    """Look the mask up."""
    return _averaging(Masked().cached_mask)


def corrected() -> Step:
    """Compute the mask, which is cheaper than the look-up."""
    return _averaging(Masked().mask)


def _averaging(mask_of) -> Step:
    corpus = tf.random.stateless_normal([8, 256], seed=[0, 1])

    def step(i: int) -> float:
        tokens = corpus + tf.cast(corpus < 0, tf.float32)  # a new tensor for each batch
        mask = mask_of(tokens)
        return float(tf.reduce_sum(tokens * mask) / tf.reduce_sum(mask))

    return step


if __name__ == "__main__":
    raise SystemExit(main(__file__))
