"""The noise scale in the active run of Weights & Biases."""

from collections.abc import Mapping

import wandb

from noisescale.guard import Notices

STEP = "noisescale/step"


class WandbMirror:
    """Adds its values to the row that the user's next `wandb.log()` writes.

    A row of its own would move W&B's step counter, and W&B drops what the user then logs with a smaller `step=`. So of
    several values between two rows of the user the last is kept, and the last of all is written when the run ends.

    Args:
        run: None: whichever run is active when values come.
    """

    def __init__(self, run: "wandb.Run | None" = None) -> None:
        self._run = run
        self._defined_in: str | None = None
        self._notices = Notices()

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Show the values over the optimizer steps; nothing while no run is active."""
        run = self._run or wandb.run
        if run is None:
            self._notices.once("no run", "the mirror 'wandb' shows nothing before wandb.init()")
            return
        if self._defined_in != run.id:
            self._defined_in = run.id
            run.define_metric(STEP, hidden=True)
            run.define_metric("noisescale/*", step_metric=STEP)
        run.log({**values, STEP: step}, commit=False)
