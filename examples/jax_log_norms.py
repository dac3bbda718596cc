"""JAX and optax: squared norms of each micro-batch on each device, handed to `log_norms()`.

The small batches are devices × micro-batches. Each one's squared norm is taken before `pmean` joins the devices, and
the sums are all that leaves them.
"""

import os
from functools import partial

import jax
import jax.numpy as jnp
import optax
from jax.sharding import Mesh, PartitionSpec

import noisescale

NUM_STEPS = int(os.environ.get("NUM_STEPS", "100"))
NUM_MICRO_BATCHES = 4  # on each device
BATCH_SIZE, INPUTS, HIDDEN = 256, 16, 32

optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.sgd(0.02))


def loss_of(parameters, batch):
    """The mean over the examples of a batch."""
    inputs, targets = batch
    outputs = jnp.tanh(inputs @ parameters["inner"]) @ parameters["outer"]
    return jnp.mean((outputs[:, 0] - targets) ** 2)


def sq_norm(tree):
    """|g|² over all parameters, in at least single precision."""
    return sum(jnp.sum(jnp.square(leaf.astype(jnp.float32))) for leaf in jax.tree.leaves(tree))


def gradient_with_norms(parameters, batch):
    """The mean gradient of the step, the loss, Σ |g_k|² over all small batches, and |ḡ|²."""
    # Without this the gradient of a replicated parameter arrives already summed over the devices.
    parameters = jax.lax.pcast(parameters, "data", to="varying")
    micro_batches = jax.tree.map(lambda part: part.reshape(NUM_MICRO_BATCHES, -1, *part.shape[1:]), batch)

    def add(sums, micro_batch):
        loss, gradient = jax.value_and_grad(loss_of)(parameters, micro_batch)
        return jax.tree.map(jnp.add, sums, (gradient, loss, sq_norm(gradient))), None

    nothing = jax.tree.map(jnp.zeros_like, (parameters, *jax.lax.pcast((0.0, 0.0), "data", to="varying")))
    (gradient, loss, sum_small_sq_norm), _ = jax.lax.scan(add, nothing, micro_batches)
    gradient, loss = jax.tree.map(lambda part: jax.lax.pmean(part / NUM_MICRO_BATCHES, "data"), (gradient, loss))
    return gradient, loss, jax.lax.psum(sum_small_sq_norm, "data"), sq_norm(gradient)


def make_step(mesh):
    """One compiled optimizer step: (parameters, state, batch) -> (parameters, state, norms)."""
    everywhere, split = PartitionSpec(), PartitionSpec("data")
    norms_of = jax.shard_map(gradient_with_norms, mesh=mesh, in_specs=(everywhere, split), out_specs=everywhere)

    @jax.jit
    def step(parameters, state, batch):
        gradient, loss, sum_small_sq_norm, big_sq_norm = norms_of(parameters, batch)  # before clipping
        updates, state = optimizer.update(gradient, state, parameters)
        norms = {"loss": loss, "sum_small_sq_norm": sum_small_sq_norm, "big_sq_norm": big_sq_norm}
        return optax.apply_updates(parameters, updates), state, norms

    return step


def make_parameters(key):
    """Two layers."""
    inner, outer = jax.random.split(key)
    return {
        "inner": jax.random.normal(inner, (INPUTS, HIDDEN)) / INPUTS**0.5,
        "outer": jax.random.normal(outer, (HIDDEN, 1)) / HIDDEN**0.5,
    }


def make_batch(key):
    """Examples of a noisy sum of inputs."""
    inputs_key, noise_key = jax.random.split(key)
    inputs = jax.random.normal(inputs_key, (BATCH_SIZE, INPUTS))
    return inputs, inputs.sum(1) + jax.random.normal(noise_key, (BATCH_SIZE,))


def main():
    """Train, and log each step while the device computes the next."""
    jax.config.update("jax_num_cpu_devices", 4)  # stands in for four accelerators; no effect on others
    mesh = Mesh(jax.devices(), ("data",))
    num_small = len(jax.devices()) * NUM_MICRO_BATCHES
    step = make_step(mesh)
    parameters = make_parameters(jax.random.key(0))
    state = optimizer.init(parameters)
    with noisescale.init(
        project="examples", task="jax-sum", machine=noisescale.Machine(num_devices=len(jax.devices()))
    ) as run:
        log = partial(
            run.log_norms, small_batch_size=BATCH_SIZE / num_small, big_batch_size=BATCH_SIZE, num_small=num_small
        )
        before = None
        for number in range(NUM_STEPS):
            parameters, state, norms = step(parameters, state, make_batch(jax.random.key(number + 1)))
            if before is not None:
                log(step=number - 1, **jax.device_get(before))
            before = norms
        log(step=NUM_STEPS - 1, **jax.device_get(before))
        print(run.noise_scale())


if __name__ == "__main__":
    main()
