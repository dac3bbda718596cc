"""A loop that follows its noise scale: first it says what it would do; `FOLLOW=1` lets it act."""

import os

import torch
from torch.nn.functional import cross_entropy

import noisescale

NUM_STEPS = int(os.environ.get("NUM_STEPS", "400"))
MICRO_BATCH = 8

run = noisescale.init(project="examples", task="blobs", planned_steps=NUM_STEPS)
torch.manual_seed(0)
centers = torch.randn(10, 50)
model = torch.nn.Sequential(torch.nn.Linear(50, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, NUM_STEPS)
run.watch(model, optimizer)

follower = noisescale.follow(
    run,
    optimizer,
    batches=noisescale.Batches(now=4 * MICRO_BATCH, micro_batch=MICRO_BATCH, largest=2048),
    scheduler=schedule,
    price=256,  # one step less is worth 256 more examples: overhead of a step over the time of an example
    dry_run="FOLLOW" not in os.environ,
)

with run:
    for _ in range(NUM_STEPS):
        for _ in range(follower.accumulation_steps):
            labels = torch.randint(0, 10, (MICRO_BATCH,))
            loss = cross_entropy(model(centers[labels] + 2 * torch.randn(MICRO_BATCH, 50)), labels)
            (loss / follower.accumulation_steps).backward()
        run.log_gradients(loss=loss)
        optimizer.step()
        optimizer.zero_grad()
        schedule.step()
        follower.step()  # last: batch and rate change between two steps

print(follower)
print(f"ended at batch {follower.batch_size}, learning rate {follower.learning_rate_factor:.2f} x as scheduled")
