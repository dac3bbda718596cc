"""Accelerate: watch what was prepared, and log after every `accelerator.backward()`."""

import os

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import noisescale
from noisescale.integrations.accelerate import watch

NUM_STEPS = int(os.environ.get("NUM_STEPS", "100"))


def main() -> None:
    """Train in batches of 256: eight micro-batches of 32."""
    accelerator = Accelerator(gradient_accumulation_steps=8)
    model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 1))
    inputs = torch.randn(256 * NUM_STEPS, 20)
    loader = DataLoader(TensorDataset(inputs, inputs.sum(1, keepdim=True) + torch.randn(len(inputs), 1)), batch_size=32)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)

    run = noisescale.init(project="examples", task="sum")
    noise = watch(accelerator, model, optimizer, run=run)  # 1: after prepare()
    for x, y in loader:
        with accelerator.accumulate(model):
            loss = nn.functional.mse_loss(model(x), y)
            accelerator.backward(loss)
            noise.log_gradients(loss, batch_size=len(x))  # 2: each micro-batch, before clipping
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
    print(run.noise_scale())
    run.finish()  # 3


if __name__ == "__main__":
    main()
