"""Which database is behind a server's address: what another one has taken records of is not sent to it unasked."""

from noisescale.transport.spool.stream_folder import StreamFolder
from noisescale.transport.upload.http import HttpServer


class DatabaseBehind:
    """Asks the server at most once, and only where a stream says which database it belongs to.

    Args:
        server: Whom to ask.
    """

    def __init__(self, server: HttpServer) -> None:
        self._server = server
        self._answer: tuple[str | None] | None = None

    def is_another(self, folder: StreamFolder) -> bool:
        """Whether another database than this one has taken records of a stream; not where either does not say.

        Raises:
            TransportError: Where the server cannot be asked now.
        """
        known = folder.database_id()
        if known is None:
            return False
        if self._answer is None:
            self._answer = (self._server.database_id(),)
        return self._answer[0] not in (None, known)
