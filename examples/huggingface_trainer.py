"""Hugging Face `Trainer`: the callback is all it takes. The model is made from a config; nothing is downloaded."""

import os
import tempfile

import torch
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

from noisescale import Units
from noisescale.integrations.huggingface import NoiseScaleCallback

NUM_STEPS = int(os.environ.get("NUM_STEPS", "100"))
VOCABULARY, LENGTH = 64, 32


def make_rows(num_rows: int) -> list[dict[str, torch.Tensor]]:
    """Sorted tokens; the end of each row is padding that does not count."""
    rows = []
    for _ in range(num_rows):
        tokens = torch.randint(0, VOCABULARY, (LENGTH,)).sort().values
        labels = tokens.clone()
        labels[int(torch.randint(LENGTH // 2, LENGTH, ())) :] = -100
        rows.append({"input_ids": tokens, "labels": labels})
    return rows


def main() -> None:
    """Train a small Llama in batches of 64 rows: eight micro-batches of eight."""
    config = LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4
    )
    callback = NoiseScaleCallback(project="examples", task="sorted-tokens", units=Units("sequence", "tokens", LENGTH))
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder,
            per_device_train_batch_size=8,
            gradient_accumulation_steps=8,
            max_steps=NUM_STEPS,
            learning_rate=3e-3,
            logging_steps=20,
            save_strategy="no",
            report_to=[],
        )
        Trainer(
            model=LlamaForCausalLM(config), args=arguments, train_dataset=make_rows(2048), callbacks=[callback]
        ).train()
    assert callback.run is not None
    print(callback.run.noise_scale())


if __name__ == "__main__":
    main()
