"""The noise scale in the active run of MLflow."""

from collections.abc import Mapping

import mlflow

from noisescale.guard import Notices


class MlflowMirror:
    """Logs metrics to the active run, from MLflow's own thread: a call that waits for the store takes 10 to 60 ms.

    Args:
        run: None: whichever run is active when values come.
    """

    def __init__(self, run: "mlflow.ActiveRun | None" = None) -> None:
        self._run = run
        self._notices = Notices()

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Show the values at this step; nothing while no run is active, where MLflow itself would start one."""
        run = self._run or mlflow.active_run()
        if run is None:
            self._notices.once("no run", "the mirror 'mlflow' shows nothing before mlflow.start_run()")
            return
        mlflow.log_metrics(dict(values), step=step, run_id=run.info.run_id, synchronous=False)
