"""The TensorFlow adapter, on real TensorFlow in fresh processes."""

import fresh_process
import pytest

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

SETUP = """
import gc
import numpy as np, tensorflow as tf
from leakkit import frameworks
kept = []
ones = np.ones((8, 8), np.float32)
"""


@pytest.fixture(scope="module")
def counted():
    """One process that does each countable thing a known number of times."""
    return fresh_process.run(
        SETUP,
        """
        adapter = next(a for a in frameworks.active() if a.name == "TensorFlow")
        before = adapter.devices()  # does not start TensorFlow
        from tensorflow.python.eager import context
        started = context.context()._initialized
        x = tf.constant(ones)
        probes = frameworks.probes([adapter])
        init = lambda: tf.__internal__.FuncGraph.__init__
        wrapped = init()

        @tf.function
        def f(t, n=0):
            # the branches are graphs within the graph
            return tf.cond(tf.reduce_sum(t) > 0, lambda: tf.reduce_sum(t) * n, lambda: 0.0)

        f(x, n=-1)
        for _ in ("fill", "caches"):
            for _ in tf.data.Dataset.range(3).map(lambda a: a + 1): pass
        gc.collect(); gc.freeze()
        facts = {"start": read(probes)}
        for n in range(3): f(x, n=n)
        facts["retraced"] = read(probes)
        for n in range(3): f(x, n=n)
        facts["steady"] = read(probes)
        kept += [tf.constant(ones[i]) for i in range(5)]
        facts["kept"] = read(probes)
        data = tf.data.Dataset.range(3)
        facts["dataset"] = read(probes)
        for _ in data: pass
        facts["ended"] = read(probes)
        it = iter(data); next(it)
        facts["alive"] = read(probes)
        del it
        facts["dropped"] = read(probes)
        mapped = data.map(lambda a: a + 7)
        facts["mapped"] = read(probes)

        @tf.custom_gradient
        def g(t):
            return tf.identity(t), lambda dy: dy
        tf.function(lambda t: g(t))(x)
        facts["gradient"] = read(probes)
        for p in probes: p.close()
        f(x, n=99)
        say(**facts, notes=adapter.notes(), remarks=adapter.remarks(),
            versions=sorted(adapter.versions()),
            devices=[d.name for d in before], started=started,
            restored=init() is wrapped.__wrapped__,
            memory=adapter.memory(before[0]), closed=read(probes)["traces"])
        """,
    )


def new(counted, name, before, after):
    return counted[after][name] - counted[before][name]


def test_traces_count_functions_and_not_their_branches(counted):
    assert new(counted, "traces", "start", "retraced") == 3
    assert new(counted, "traces", "retraced", "steady") == 0


def test_map_functions_are_counted_apart_in_the_step_that_traces_them(counted):
    assert new(counted, "traces", "dropped", "mapped") == 0
    assert counted["mapped"]["tf_data_traces"] == 1
    assert counted["dropped"]["tf_data_traces"] == 0


def test_tensors_alive_and_their_bytes(counted):
    assert new(counted, "live_tensors", "steady", "kept") == 5
    assert new(counted, "live_tensor_bytes", "steady", "kept") == 5 * 8 * 4


def test_iterators_alive(counted):
    assert [counted[k]["tf_iterators"] for k in ("dataset", "alive", "dropped")] == [0, 1, 0]


def test_only_an_iterator_that_ends_leaves_its_rendezvous(counted):
    made = 104 + 80 + 32 + 24
    assert new(counted, "tf_own_bytes", "dataset", "ended") == made + 208 + 96 + 88 + 80 + 48
    assert new(counted, "tf_own_bytes", "ended", "dropped") == made


def test_registries_are_counted(counted):
    assert new(counted, "tf_gradient_registry", "mapped", "gradient") == 1
    assert new(counted, "tf_function_cache", "start", "retraced") >= 3


def test_closing_puts_tensorflow_back(counted):
    assert counted["restored"] is True
    assert counted["closed"] == counted["gradient"]["traces"]


def test_a_cpu_has_no_count_and_a_remark_says_what_stands_in(counted):
    assert counted["memory"] is None
    assert counted["notes"] == []
    [remark] = counted["remarks"]
    assert "live_tensor_bytes counts tensors, and native_heap counts what malloc gives" in remark
    assert counted["devices"] == ["CPU:0"]
    assert counted["started"] is False
    assert "tensorflow" in counted["versions"]


STEPS = {
    "mixed precision": """
        import keras
        keras.mixed_precision.set_global_policy("mixed_float16")
        model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(4)])
        model.compile("sgd", "mse")
        targets = np.ones((8, 4), np.float32)
        step = lambda: float(model.train_on_batch(ones, targets))
    """,
    "jit_compile": """
        w = tf.Variable(ones)
        x = tf.constant(ones)
        @tf.function(jit_compile=True)
        def train(t):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.matmul(t, w) ** 2)
            w.assign_sub(0.01 * tape.gradient(loss, w))
            return loss
        step = lambda: train(x)
    """,
    "two logical CPUs": """
        cpu, = tf.config.list_physical_devices("CPU")
        half = tf.config.LogicalDeviceConfiguration()
        tf.config.set_logical_device_configuration(cpu, [half, half])
        strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
        with strategy.scope():
            w = tf.Variable(1.0)
        x = tf.constant(2.0)
        @tf.function
        def train(t):
            return strategy.reduce("SUM", strategy.run(lambda u: w * u, args=(t,)), axis=None)
        step = lambda: float(train(x))
        assert [d.name for d in frameworks.find_devices("all")] == ["CPU:0", "CPU:1"]
        assert step() == 4.0
    """,
}


@pytest.mark.parametrize("name", STEPS)
def test_a_correct_step_is_flat_and_one_that_keeps_its_result_grows(name):
    said = fresh_process.run(
        SETUP,
        STEPS[name],
        """
        def keep():
            step()
            kept.append(tf.constant(ones))
        flat = summary(check(step))
        say(flat=flat, grown=summary(check(keep)))
        """,
    )
    assert said["flat"]["verdict"] == "flat", said["flat"]
    assert said["flat"]["trends"]["traces"] == ["flat", 0.0]
    assert said["grown"]["verdict"] == "grows"
    assert said["grown"]["trends"]["live_tensors"] == ["grows", 1.0]
    assert said["grown"]["trends"]["live_tensor_bytes"] == ["grows", 256.0]


def test_tensorflows_own_growth_is_said_and_hides_nothing():
    said = fresh_process.run(
        SETUP,
        """
        data = tf.data.Dataset.range(3)
        def iterate():
            for _ in data: pass
        def leak():
            for _ in data: pass
            kept.append(tf.constant(ones))
        @tf.function
        def loop(d):
            return d.reduce(tf.constant(0, tf.int64), lambda a, b: a + b)
        flat = summary(check(iterate))
        limited = summary(check(iterate, limits={"tf_own_bytes": "100 B"}))
        say(flat=flat, limited=limited, grown=summary(check(leak)),
            looped=summary(check(lambda: loop(data))))
        """,
    )
    flat, grown = said["flat"], said["grown"]
    assert flat["verdict"] == "flat", flat
    assert flat["trends"]["tf_own_bytes"] == ["grows", 760.0]
    assert any("keeps up to 760 B a step" in note for note in flat["notes"])
    assert said["looped"]["verdict"] == "flat", said["looped"]
    assert said["looped"]["trends"]["tf_own_bytes"] == ["grows", 256.0]
    assert said["limited"]["verdict"] == "grows"  # the test's own limit
    assert grown["verdict"] == "grows"
    assert grown["trends"]["native_heap"][1] > 256  # the kept tensor's bytes are all there


def test_the_audit_names_the_cache_that_grows_and_by_how_much():
    said = fresh_process.run(
        SETUP,
        """
        adapter = next(a for a in frameworks.active() if a.name == "TensorFlow")
        count = iter(range(10**6))
        def audit(step, steps=40):
            for _ in range(5): step()
            found = adapter.audit()
            found.begin()
            for _ in range(steps):
                step(); gc.collect(); found.boundary()
            return found.end()
        named = audit(lambda: tf.Variable(ones, name=f"v{next(count)}"))
        scalars = audit(lambda: [tf.constant(next(count) * 0.5) for _ in range(20)])
        # refills kernels every fourth step only, and keeps none
        def rarely():
            if next(count) % 4 == 0:
                tf.matmul(ones, ones)
        say(named=named, scalars=scalars, rarely=audit(rarely), short=audit(rarely, steps=3))
        """,
    )
    assert 20_000 < said["named"]["tf_kernel_cache"] < 60_000
    assert said["named"]["tf_scalar_cache"] < 100
    assert 20 * 200 < said["scalars"]["tf_scalar_cache"] < 20 * 1000
    assert said["rarely"]["tf_kernel_cache"] < 1_000
    assert said["short"] == {}


def test_what_a_version_has_moved_is_a_note_and_no_failure():
    """A fake of a later TensorFlow: the private names are taken away from the real one."""
    said = fresh_process.run(
        SETUP,
        """
        from tensorflow.python.data.ops import iterator_ops
        from tensorflow.python.framework import ops
        from tensorflow.python.eager.polymorphic_function import atomic_function
        x = tf.constant(ones)
        del iterator_ops.OwnedIterator, ops.gradient_registry, atomic_function.RUNTIME_FUNCTION_REFS
        del tf.__internal__.EagerTensor
        adapter = next(a for a in frameworks.active() if a.name == "TensorFlow")
        probes = frameworks.probes([adapter])
        say(names=[q.name for p in probes for q in p.quantities], notes=adapter.notes())
        """,
    )
    assert said["names"] == ["traces", "tf_data_traces", "tf_function_cache"]
    assert any("live tensors are not counted" in note for note in said["notes"])
    assert any("what tf.data keeps is not counted" in note for note in said["notes"])
