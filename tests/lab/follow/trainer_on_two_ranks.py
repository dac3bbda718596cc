"""One rank of a `Trainer` under torchrun that measures itself and is followed; writes FOLDER/found-RANK.json."""

import json
import os
import sys
from pathlib import Path

import torch
from transformers import Trainer, TrainingArguments

from client_runs import make_kept_run
from noisescale.integrations.huggingface import NoiseScaleCallback
from noisescale_lab.follow.callbacks.huggingface import FollowCallback
from noisy_mean import DIMENSIONS, Mean


class MeanOfRows(Mean):
    """As the Trainer calls a model."""

    def forward(self, row):
        return {"loss": super().forward(row)}


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    run, kept = make_kept_run()
    noise = NoiseScaleCallback(run=run)
    follow = FollowCallback(noise, price=128.0, largest=1024, dry_run=False)
    arguments = TrainingArguments(
        output_dir=str(folder), use_cpu=True, report_to=[], disable_tqdm=True, dataloader_pin_memory=False,
        per_device_train_batch_size=4, gradient_accumulation_steps=2, learning_rate=1e-6, num_train_epochs=2,
        remove_unused_columns=False, save_strategy="no", logging_strategy="no", optim="sgd", max_grad_norm=0,
    )  # fmt: skip
    rows = [{"row": row} for row in torch.randn(3000, DIMENSIONS, generator=torch.Generator().manual_seed(5))]
    Trainer(model=MeanOfRows(128.0), args=arguments, train_dataset=rows, callbacks=[noise, follow]).train()
    found = {
        "decisions": [(decision.step, decision.to_batch) for decision in follow.follower.decisions],
        "sizes": [row.global_batch for row in kept.rows()],
        "faults": run.faults.count,
    }
    (folder / f"found-{os.environ['RANK']}.json").write_text(json.dumps(found))
    torch.distributed.destroy_process_group()  # its threads are not to meet the end of the interpreter
