"""A proxy on a port of its own, in front of a real server: what it does not answer itself, it hands on."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx

from simulated_proxy import Proxy

PATIENCE_SECONDS = 30.0


class _Quiet(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A job that was killed has left its connection, or the server has, and so the job is left, too."""


@contextmanager
def proxied(proxy: Proxy, server_url: Callable[[], str]) -> Iterator[str]:
    """The address of a proxy, while the block runs.

    Args:
        proxy: What it answers.
        server_url: Where it hands requests on to, asked for each.
    """
    upstream = httpx.Client(timeout=PATIENCE_SECONDS, trust_env=False)
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _handle(self) -> None:
            content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            with lock:
                said = proxy.own_answer(content)
            if said is None or said.is_forwarded:
                served = self._served(content)
            if said is None:
                kept = (
                    [(b"Retry-After", served.headers["Retry-After"].encode())]
                    if "Retry-After" in served.headers
                    else []
                )
                self._send(served.status_code, kept, served.content)
            else:
                self._send(said.status, said.all_headers, said.content, wrong_length=said.wrong_length)

        def _send(
            self, status: int, headers: list[tuple[bytes, bytes]], content: bytes, *, wrong_length: int = 0
        ) -> None:
            body = b"" if status in (204, 304) else content
            self.send_response(status)
            for name, value in headers:
                self.send_header(name.decode(), value.decode("latin-1"))
            self.send_header("Content-Length", str(max(0, len(body) + wrong_length)))
            self.end_headers()
            self.wfile.write(body)
            # nobody waits for the bytes that are missing
            self.close_connection = self.close_connection or wrong_length > 0

        def _served(self, content: bytes) -> httpx.Response:
            headers = {name: value for name, value in self.headers.items() if name.lower() != "host"}
            return upstream.request(self.command, f"{server_url()}{self.path}", content=content, headers=headers)

        do_GET = do_POST = _handle

        def log_message(self, *arguments: object) -> None:
            pass

    running = _Quiet(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=running.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{running.server_port}"
    finally:
        running.shutdown()
        thread.join()
        running.server_close()
        upstream.close()
