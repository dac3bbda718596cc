"""What a stand-in for the API says of comments on runs and of a project's baseline."""

from typing import Any

from fastapi import FastAPI, Request, Response

from fakes_access import MOMENT

NAMES = ["Ada", "Ada Lovelace", "Grace"]
FOREIGN = {
    "id": "00000000-0000-4000-b000-00000000000f",
    "author": "Grace",
    "text": "@Ada Lovelace: look\nat the rate",
    "mentions": ["Ada Lovelace"],
    "created_at": MOMENT,
    "edited_at": None,
    "is_own": False,
}


def add_comment_routes(app: FastAPI) -> None:
    """Put the routes on an app whose state has the stand-in: its `comments`, newest first, and its `baseline_id`."""

    @app.get("/api/v1/runs/{run_id}/comments")
    async def list_comments(request: Request, limit: int = 100) -> Any:
        said = request.app.state.stand_in.comments
        return {"comments": said[:limit], "total": len(said), "next_cursor": None, "mentionable": NAMES}

    @app.post("/api/v1/runs/{run_id}/comments", status_code=201)
    async def add_comment(request: Request) -> Any:
        said = request.app.state.stand_in.comments
        comment_id = f"00000000-0000-4000-b000-{len(said):012d}"
        body = await request.json()
        one = FOREIGN | {"id": comment_id, "author": "Ada", "mentions": [], "is_own": True, **body}
        said.insert(0, one)
        return one

    @app.patch("/api/v1/runs/{run_id}/comments/{comment_id}")
    async def edit_comment(request: Request, comment_id: str) -> Any:
        one = next(one for one in request.app.state.stand_in.comments if one["id"] == comment_id)
        one.update(await request.json(), edited_at=MOMENT)
        return one

    @app.delete("/api/v1/runs/{run_id}/comments/{comment_id}", status_code=204)
    async def delete_comment(request: Request, comment_id: str) -> Response:
        api = request.app.state.stand_in
        api.comments = [one for one in api.comments if one["id"] != comment_id]
        return Response(status_code=204)

    @app.get("/api/v1/projects/{project}/baseline")
    async def read_baseline(request: Request) -> Any:
        return {"baseline": _baseline(request.app.state.stand_in)}

    @app.put("/api/v1/projects/{project}/baseline")
    async def pin_baseline(request: Request) -> Any:
        api = request.app.state.stand_in
        api.baseline_id = (await request.json())["run_id"]
        return {"baseline": _baseline(api)}

    @app.delete("/api/v1/projects/{project}/baseline", status_code=204)
    async def unpin_baseline(request: Request) -> Response:
        request.app.state.stand_in.baseline_id = None
        return Response(status_code=204)


def _baseline(api: Any) -> dict[str, Any] | None:
    run = None if api.baseline_id is None else api.find(api.baseline_id)
    return None if run is None else {"run_id": run.id, "name": run.name, "pinned_at": MOMENT}
