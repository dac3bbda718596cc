"""One of two gloo ranks that train with the callback; what each has seen and measured goes into a folder.

Run by `test_huggingface_ranks.py` under `torch.distributed.run`.
"""

import json
import os
import sys
from pathlib import Path

import torch
from transformers import Trainer, TrainingArguments

from client_runs import make_kept_run
from noisescale.integrations.huggingface import NoiseScaleCallback
from trainer_runs import MICRO_BATCH_SIZE, NUM_MICRO_BATCHES, SeenSteps, make_llama, make_sequences


def main(folder: Path, average_tokens: bool) -> None:
    rank = int(os.environ["RANK"])
    run, kept = make_kept_run()
    seen = SeenSteps()
    arguments = TrainingArguments(
        output_dir=str(folder),
        use_cpu=True,
        ddp_backend="gloo",
        report_to=[],
        disable_tqdm=True,
        dataloader_pin_memory=False,
        remove_unused_columns=False,
        per_device_train_batch_size=MICRO_BATCH_SIZE,
        gradient_accumulation_steps=NUM_MICRO_BATCHES,
        max_steps=2,
        learning_rate=0.01,
        max_grad_norm=0.01,
        logging_steps=1,
        save_strategy="no",
        average_tokens_across_devices=average_tokens,
    )
    Trainer(
        model=make_llama(),
        args=arguments,
        train_dataset=make_sequences(64),
        data_collator=seen.collate,
        callbacks=[NoiseScaleCallback(run=run), seen],
    ).train()
    torch.save({"models": seen.models, "micro_batches": seen.micro_batches}, folder / f"seen-{rank}.pt")
    rows = [
        {
            name: getattr(row, name)
            for name in ("sum_trace_cov", "sum_grad_sq_norm", "sum_loss", "global_batch", "flags")
        }
        | {"num_micro_batches": row.num_micro_batches, "step": row.step}
        for row in kept.rows()
    ]
    (folder / f"rows-{rank}.json").write_text(json.dumps(rows))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2] == "average")
