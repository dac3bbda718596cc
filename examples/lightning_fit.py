"""Lightning: the callback is all it takes; `accumulate_grad_batches` makes the small batches."""

import os

import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from noisescale.integrations.lightning import NoiseScaleCallback

NUM_STEPS = int(os.environ.get("NUM_STEPS", "100"))


class Regression(lightning.LightningModule):
    """A small network that learns the sum of its inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 1))

    def training_step(self, batch: list[torch.Tensor], batch_index: int) -> torch.Tensor:
        """The loss of one micro-batch."""
        inputs, targets = batch
        return nn.functional.mse_loss(self.layers(inputs), targets)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Plain gradient descent."""
        return torch.optim.SGD(self.parameters(), lr=0.01)


def main() -> None:
    """Train in batches of 256: eight micro-batches of 32."""
    inputs = torch.randn(8192, 20)
    targets = inputs.sum(1, keepdim=True) + torch.randn(8192, 1)
    callback = NoiseScaleCallback(project="examples", task="sum")
    trainer = lightning.Trainer(
        accelerator="cpu",
        max_steps=NUM_STEPS,
        max_epochs=-1,
        accumulate_grad_batches=8,
        gradient_clip_val=1.0,
        callbacks=[callback],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
    )
    trainer.fit(Regression(), DataLoader(TensorDataset(inputs, targets), batch_size=32, shuffle=True))
    assert callback.run is not None
    print(callback.run.noise_scale())


if __name__ == "__main__":
    main()
