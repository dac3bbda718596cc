"""An OpenID Connect provider in a thread that signs whatever it is told to, and remembers what it was asked."""

import base64
import hashlib
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from joserfc import jwt
from joserfc.jwk import OctKey, RSAKey

CLIENT_ID = "noisescale"
CLIENT_SECRET = "between us, 32 characters at least"
CODE = "a code"


@dataclass
class Stub:
    """What it answers, and what it was asked.

    Attributes:
        issuer: Its address.
        claims: Of the token, besides those that fit.
        without: Claims that the token lacks.
        key: Signs the token.
        algorithm: Of the signature.
        description: Changes to what it says of itself.
        tokens: Fields of every request for a token, with the `Authorization` header.
        num_descriptions: How often it was asked what it is.
        challenge: Where set, a token needs the verifier of it (RFC 7636).
    """

    issuer: str
    key: Any
    claims: dict[str, Any] = field(default_factory=dict)
    without: tuple[str, ...] = ()
    algorithm: str = "RS256"
    description: dict[str, Any] = field(default_factory=dict)
    tokens: list[dict[str, str]] = field(default_factory=list)
    num_descriptions: int = 0
    challenge: str | None = None

    def answer(self, path: str, fields: dict[str, str]) -> tuple[int, Any]:
        """Status and JSON of a request."""
        if path == "/.well-known/openid-configuration":
            self.num_descriptions += 1
            names = {"authorization_endpoint": "authorize", "token_endpoint": "token", "jwks_uri": "keys"}
            return 200, {
                "issuer": self.issuer,
                **{name: f"{self.issuer}/{path}" for name, path in names.items()},
                **self.description,
            }
        if path == "/keys":
            return 200, {"keys": [KEY.as_dict(private=False)]}
        self.tokens.append(fields)
        if self.challenge is not None and challenge_of(fields.get("code_verifier", "")) != self.challenge:
            return 400, {"error": "invalid_grant"}
        return 200, {"access_token": "x", "token_type": "Bearer", "id_token": self._token()}

    def _token(self) -> str:
        now = int(time.time())
        claims = {"iss": self.issuer, "aud": CLIENT_ID, "sub": "ada", "exp": now + 300, "iat": now, "nonce": "n"}
        claims = {name: value for name, value in (claims | self.claims).items() if name not in self.without}
        return jwt.encode({"alg": self.algorithm}, claims, self.key, algorithms=[self.algorithm])


KEY = RSAKey.generate_key(2048, parameters={"kid": "one", "use": "sig"}, private=True)
OTHER_KEY = RSAKey.generate_key(2048, parameters={"kid": "one", "use": "sig"}, private=True)
SHARED_KEY = OctKey.import_key(CLIENT_SECRET)


def challenge_of(verifier: str) -> str:
    """The S256 challenge of RFC 7636, section 4.2, written out."""
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode("ascii")).digest()).rstrip(b"=").decode()


@contextmanager
def oidc_stub() -> Iterator[Stub]:
    """One on loopback."""
    stub = Stub("", KEY)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._say(*stub.answer(urlsplit(self.path).path, {}))

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            fields = {name: values[0] for name, values in parse_qs(body).items()}
            self._say(*stub.answer(self.path, fields | {"authorization": self.headers.get("Authorization", "")}))

        def _say(self, status: int, content: Any) -> None:
            body = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    stub.issuer = f"http://127.0.0.1:{server.server_port}"
    try:
        yield stub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
