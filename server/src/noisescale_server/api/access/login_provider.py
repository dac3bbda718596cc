"""Logging in with the organisation's OpenID Connect provider: there by a redirect, back with a code."""

import secrets
from dataclasses import dataclass
from typing import Any, Final

import httpx2
from authlib.common.errors import AuthlibBaseError
from authlib.integrations.httpx_client import AsyncOAuth2Client
from authlib.oauth2.rfc7636 import create_s256_code_challenge
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from noisescale_server.api.platform.refusals import ProviderFailed

SECONDS: Final = 10.0
ALGORITHMS: Final = ["RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "EdDSA"]
"""Of signatures with the provider's own key; none that a client's secret or nothing would sign."""
LEEWAY_SECONDS: Final = 60
ENDPOINTS: Final = ("issuer", "authorization_endpoint", "token_endpoint", "jwks_uri")
"""What a provider's description has to name."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Who has logged in at the provider."""

    subject: str
    name: str
    email: str | None


@dataclass(frozen=True, slots=True)
class Departure:
    """Where to send a browser, and what has to be the same when it comes back."""

    address: str
    nonce: str
    verifier: str


class Provider:
    """An OpenID Connect provider, known by its issuer; its description is read at the first login.

    Args:
        issuer: Its address, as its description and its tokens name it.
        client_id: This server's name there.
        client_secret: Its secret there.
        return_address: Where the provider sends browsers back to; it has to know it.
    """

    def __init__(self, *, issuer: str, client_id: str, client_secret: str, return_address: str) -> None:
        self.issuer = issuer
        self._client_id = client_id
        self._client_secret = client_secret
        self._return_address = return_address
        self._description: dict[str, Any] | None = None

    async def departure(self, state: str) -> Departure:
        """Where to send a browser whose way back is known by `state`.

        Raises:
            ProviderFailed: When the provider's description cannot be read.
        """
        description = await self._described()
        nonce, verifier = secrets.token_urlsafe(32), secrets.token_urlsafe(48)
        async with self._client() as client:
            address, _ = client.create_authorization_url(
                description["authorization_endpoint"],
                state=state,
                nonce=nonce,
                code_challenge=create_s256_code_challenge(verifier),
                code_challenge_method="S256",
            )
        return Departure(address, nonce, verifier)

    async def identity(self, *, code: str, nonce: str, verifier: str) -> Identity:
        """Whom the provider vouches for.

        Raises:
            ProviderFailed: When the code is not taken, or the token is not what it should be.
        """
        description = await self._described()
        try:
            async with self._client() as client:
                answer = await client.fetch_token(description["token_endpoint"], code=code, code_verifier=verifier)
            keys = await _read(description["jwks_uri"])
            claims = self._claims(str(answer["id_token"]), keys, nonce)
        except (httpx2.HTTPError, JoseError, KeyError, ValueError, AuthlibBaseError) as error:
            raise ProviderFailed(f"its answer was not accepted ({type(error).__name__})") from error
        subject, email = str(claims["sub"]), claims.get("email")
        name = claims.get("name") or claims.get("preferred_username") or email or subject
        return Identity(f"{self.issuer}|{subject}", str(name)[:200], None if email is None else str(email)[:200])

    def _claims(self, token: str, keys: dict[str, Any], nonce: str) -> dict[str, Any]:
        decoded = jwt.decode(token, KeySet.import_key_set(keys), algorithms=ALGORITHMS)  # type: ignore[arg-type]
        registry = jwt.JWTClaimsRegistry(
            leeway=LEEWAY_SECONDS,
            iss={"essential": True, "value": self.issuer},
            aud={"essential": True, "value": self._client_id},
            sub={"essential": True},
            exp={"essential": True},
            nonce={"essential": True, "value": nonce},
        )
        registry.validate(decoded.claims)
        return decoded.claims

    async def _described(self) -> dict[str, Any]:
        if self._description is None:
            address = self.issuer.rstrip("/") + "/.well-known/openid-configuration"
            try:
                found = await _read(address)
            except (httpx2.HTTPError, ValueError) as error:
                raise ProviderFailed(f"{address} cannot be read ({type(error).__name__})") from error
            if not isinstance(found, dict) or not all(isinstance(found.get(name), str) for name in ENDPOINTS):
                raise ProviderFailed(f"{address} does not describe an OpenID Connect provider")
            if found["issuer"] != self.issuer:
                raise ProviderFailed(f"{address} is of another issuer: set NOISESCALE_OIDC_ISSUER to what it says")
            self._description = found
        return self._description

    def _client(self) -> AsyncOAuth2Client:
        return AsyncOAuth2Client(
            self._client_id,
            self._client_secret,
            scope="openid profile email",
            redirect_uri=self._return_address,
            timeout=SECONDS,
        )


async def _read(address: str) -> Any:
    """The JSON at an address of the provider; no redirect is followed."""
    async with httpx2.AsyncClient(timeout=SECONDS) as client:
        return (await client.get(address)).raise_for_status().json()
