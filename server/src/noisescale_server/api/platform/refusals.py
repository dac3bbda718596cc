"""What the API itself refuses, before any service is asked; `errors.py` says with which status."""

from noisescale_server.services.platform.errors import DomainError


class BodyTooLarge(DomainError):
    """The body is over a limit, before or after inflating."""

    members = ("limit",)

    def __init__(self, kind: str, limit: int) -> None:
        way_out = "send smaller batches, or without gzip" if kind == "inflated" else "send smaller batches"
        super().__init__(f"the {kind} body is over {limit} bytes: {way_out}")
        self.limit = limit


class MediaTypeNotSupported(DomainError):
    """The body is not JSON, or packed in a way that is not supported."""


class TooManyAttempts(DomainError):
    """Somebody tries keys."""

    retry_after_seconds = 60

    def __init__(self) -> None:
        super().__init__(
            "this key or login is wrong, and so were too many from this address in the last minute: "
            "try another one in 60 s, or a right one now"
        )


class ProviderFailed(DomainError):
    """The organisation's login did not answer, or not as it should."""

    def __init__(self, what: str) -> None:
        super().__init__(f"the organisation's login failed: {what}. Try again, or ask who runs this server")


class TooManyBatches(DomainError):
    """A sender is over its share; it may go on when it has waited."""

    members = ("limit_per_minute",)

    def __init__(self, limit_per_minute: int, retry_after_seconds: int) -> None:
        super().__init__(
            f"more than {limit_per_minute} batches a minute from one sender: try again in {retry_after_seconds} s, "
            "or raise NOISESCALE_BATCHES_PER_MINUTE"
        )
        self.limit_per_minute = limit_per_minute
        self.retry_after_seconds = retry_after_seconds


class TooManyReads(DomainError):
    """A sender reads more than its share; it may go on when it has waited."""

    members = ("limit_per_minute",)

    def __init__(self, limit_per_minute: int, retry_after_seconds: int) -> None:
        super().__init__(
            f"more than {limit_per_minute} reads a minute from one key, person or address: try again in "
            f"{retry_after_seconds} s, or raise NOISESCALE_READS_PER_MINUTE"
        )
        self.limit_per_minute = limit_per_minute
        self.retry_after_seconds = retry_after_seconds


class Busy(DomainError):
    """The sender's own reads have kept this one waiting; the same request may succeed soon."""

    retry_after_seconds = 2

    def __init__(self, waited_seconds: float, at_once: int) -> None:
        super().__init__(
            f"this read has waited {waited_seconds:g} s for others of the same key or person, of which {at_once} "
            "are worked on at once: try again in 2 s, with fewer at a time"
        )


class VersionNotSupported(DomainError):
    """The batch is in a version of the wire format that this server does not read."""

    members = ("supported",)

    def __init__(self, shown_version: str, supported: int) -> None:
        super().__init__(
            f"proto is {shown_version}, this server reads {supported}: send that version, or upgrade the server"
        )
        self.supported = [supported]
