"""Gradient accumulation over sequences of unequal length: small batches are marked with their counted tokens."""

import os

import torch

import noisescale

NUM_STEPS = int(os.environ.get("NUM_STEPS", "200"))
VOCABULARY, LENGTH = 50, 32

model = torch.nn.Sequential(torch.nn.Embedding(VOCABULARY, 32), torch.nn.Linear(32, VOCABULARY))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)

run = noisescale.init(
    project="examples",
    task="next-token",
    units=noisescale.Units("sequence", "tokens", per_example=LENGTH),
    config={"lr": 3e-3, "vocabulary": VOCABULARY},
    planned_steps=NUM_STEPS,
)
run.watch(model, optimizer, loss=noisescale.Loss(reduction="mean_over_tokens"))

with run:
    for step in range(NUM_STEPS):
        tokens = torch.randint(0, VOCABULARY, (64, LENGTH)).sort(dim=1).values
        is_counted = torch.arange(LENGTH) < torch.randint(LENGTH // 2, LENGTH, (64, 1))  # the rest is padding
        num_counted = int(is_counted[:, 1:].sum())
        step_loss = torch.zeros(())
        for sequences, counted in zip(tokens.chunk(8), is_counted.chunk(8), strict=True):
            with run.micro_batch(num_examples=int(counted[:, 1:].sum())):
                logits = model(sequences[:, :-1])
                losses = torch.nn.functional.cross_entropy(
                    logits.flatten(0, 1), sequences[:, 1:].flatten(), reduction="none"
                )
                loss = losses[counted[:, 1:].flatten()].sum() / num_counted  # the mean over the step's tokens
                loss.backward()
            step_loss += loss.detach()
        run.log_gradients(loss=step_loss, batch_size=64)  # the noise scale is in sequences
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        if step % 50 == 0:
            run.log_metrics(counted_tokens=num_counted)
    print(run.noise_scale())
