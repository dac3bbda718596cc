"""Two optimizers in one loop: a generator and a discriminator, each with a noise scale of its own."""

import os

import torch
from torch.nn import functional

import noisescale

NUM_STEPS = int(os.environ.get("NUM_STEPS", "300"))
MICRO_BATCHES = 8

generator = torch.nn.Sequential(torch.nn.Linear(4, 32), torch.nn.ReLU(), torch.nn.Linear(32, 2))
discriminator = torch.nn.Sequential(torch.nn.Linear(2, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
of_generator = torch.optim.Adam(generator.parameters(), lr=1e-3)
of_discriminator = torch.optim.Adam(discriminator.parameters(), lr=1e-3)

run = noisescale.init(project="examples", task="gan", units=noisescale.Units(example="point"), planned_steps=NUM_STEPS)
run.watch(discriminator, of_discriminator, name="discriminator")  # the run itself
run.watch(generator, of_generator, name="generator")  # a run beside it, of task "gan/generator"


def sample(count: int) -> torch.Tensor:
    """Points of a ring."""
    angle = 2 * torch.pi * torch.rand(count)
    return torch.stack([angle.cos(), angle.sin()], dim=1) + 0.05 * torch.randn(count, 2)


with run:
    for _ in range(NUM_STEPS):
        for real, noise in zip(sample(256).chunk(MICRO_BATCHES), torch.randn(256, 4).chunk(MICRO_BATCHES), strict=True):
            fake = generator(noise).detach()
            loss = functional.softplus(-discriminator(real)).mean() + functional.softplus(discriminator(fake)).mean()
            (loss / MICRO_BATCHES).backward()
        run.log_gradients(loss=loss, batch_size=256, name="discriminator")
        of_discriminator.step()
        of_discriminator.zero_grad()

        for noise in torch.randn(256, 4).chunk(MICRO_BATCHES):
            with run.ignore("discriminator"):  # this backward goes through it, and is none of its own
                loss = functional.softplus(-discriminator(generator(noise))).mean()
                (loss / MICRO_BATCHES).backward()
        run.log_gradients(loss=loss, batch_size=256, name="generator")
        of_generator.step()
        of_generator.zero_grad()
        of_discriminator.zero_grad()
    print("discriminator:", run.noise_scale(name="discriminator"))
    print("generator:", run.noise_scale(name="generator"))
