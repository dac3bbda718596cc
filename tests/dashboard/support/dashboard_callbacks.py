"""Posts a callback to a dashboard as the browser would."""

import json
from typing import Any

import httpx


class Callbacks:
    """The callbacks of one dashboard, found by one of their outputs."""

    def __init__(self, client: httpx.AsyncClient, dependencies: list[dict[str, Any]]) -> None:
        self.client = client
        self.dependencies = dependencies

    @classmethod
    async def of(cls, client: httpx.AsyncClient) -> "Callbacks":
        return cls(client, (await client.get("/_dash-dependencies")).json())

    def server_side(self) -> list[dict[str, Any]]:
        return [dependency for dependency in self.dependencies if not dependency.get("clientside_function")]

    def output_called_by(self, button: str) -> str:
        """The first output of the callback that this button calls first, told apart from others of that name."""
        found = next(d for d in self.server_side() if d["inputs"][0]["id"] == button)
        return _outputs(found["output"])[0]

    def payload(self, output: str, values: dict[str, Any], *, triggered: str | None = None) -> dict[str, Any]:
        """The body of a call that has `values` ("id.prop" → value) for inputs and states, None for the others.

        What has triggered it is the first input unless it is said.
        """
        found = next(d for d in self.server_side() if output in _outputs(d["output"]))
        outputs = [
            dict(zip(("id", "property"), name.rsplit(".", 1), strict=True)) for name in _outputs(found["output"])
        ]

        def filled(parts: list[dict[str, str]]) -> list[dict[str, Any]]:
            return [{**part, "value": values.get(f"{part['id']}.{part['property']}")} for part in parts]

        return {
            "output": found["output"],
            "outputs": outputs if found["output"].startswith("..") else outputs[0],
            "inputs": filled(found["inputs"]),
            "state": filled(found["state"]),
            "changedPropIds": [triggered or f"{found['inputs'][0]['id']}.{found['inputs'][0]['property']}"],
        }

    async def post(self, output: str, values: dict[str, Any], headers: dict[str, str] | None = None) -> dict[str, Any]:
        """What the callback sets: "id" → {"prop": value}; {} when it changes nothing."""
        answer = await self.client.post("/_dash-update-component", json=self.payload(output, values), headers=headers)
        if answer.status_code == 204:
            return {}
        assert answer.status_code == 200, answer.text
        response: dict[str, Any] = json.loads(answer.content, object_hook=_with_figures)["response"]
        return response


def _with_figures(part: dict[str, Any]) -> dict[str, Any]:
    """What the browser makes of it: a figure comes as one text."""
    return json.loads(part["json"]) if set(part) == {"json"} else part


def _outputs(output: str) -> list[str]:
    return output.strip(".").split("...")
