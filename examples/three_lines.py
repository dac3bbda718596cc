"""The three lines that any PyTorch loop needs; settings come from the environment (NOISESCALE_URL, ...)."""

import os

import torch

import noisescale  # 1

NUM_STEPS = int(os.environ.get("NUM_STEPS", "300"))

model = torch.nn.Sequential(torch.nn.Linear(20, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
noisescale.watch(model, optimizer)  # 2

for _ in range(NUM_STEPS):
    inputs = torch.randn(256, 20)
    targets = inputs[:, :1] * inputs[:, 1:2] + 0.1 * torch.randn(256, 1)
    for x, y in zip(inputs.chunk(8), targets.chunk(8), strict=True):  # 8 small batches: what noise is measured from
        loss = torch.nn.functional.mse_loss(model(x), y) / 8
        loss.backward()
    noisescale.log_gradients(loss=loss * 8)  # 3: before clipping and optimizer.step()
    optimizer.step()
    optimizer.zero_grad()

print(noisescale.noise_scale())
