"""What a project takes for granted of prices, as a mapped class."""

from datetime import datetime
from uuid import UUID

from sqlalchemy import CheckConstraint, ForeignKey, func
from sqlalchemy.orm import Mapped, mapped_column

from noisescale_server.storage.platform.tables import Table


class ProjectDefault(Table):
    """Price of a device and worth of a step where neither a run nor a question says them.

    A project has one row or none. The price is in `currency`, of which one unit is worth `usd_per_unit`.
    """

    __tablename__ = "project_default"
    __table_args__ = (
        CheckConstraint("device_hour_price > 0 AND usd_per_unit > 0", name="prices"),
        CheckConstraint(
            "num_nonnulls(preference, examples_per_step, nullif(fixed_hardware, false)) <= 1", name="worth"
        ),
    )

    project_id: Mapped[UUID] = mapped_column(ForeignKey("project.id", ondelete="CASCADE"), primary_key=True)
    device_hour_price: Mapped[float | None]
    currency: Mapped[str] = mapped_column(server_default="USD")
    usd_per_unit: Mapped[float] = mapped_column(server_default="1")
    preference: Mapped[float | None]
    examples_per_step: Mapped[float | None]
    fixed_hardware: Mapped[bool] = mapped_column(server_default="false")
    changed_at: Mapped[datetime] = mapped_column(server_default=func.now())
