"""Errors of the API, as `application/problem+json` (RFC 9457)."""

from http import HTTPStatus

from pydantic import BaseModel, Field, ValidationError
from starlette.requests import Request
from starlette.responses import Response

from lagwise_app.server.refusal import Refusal

MEDIA_TYPE = "application/problem+json"


class Problem(BaseModel):
    """Why there is no answer."""

    title: str = Field(description="the status in words")
    status: int = Field(description="the HTTP status")
    detail: str = Field(description="what is wrong, for a person")


def problem(refusal: Refusal, _: Request) -> Response:
    """A refusal as the response."""
    found = Problem(title=HTTPStatus(refusal.status).phrase, status=refusal.status, detail=refusal.why)
    return Response(found.model_dump_json(), refusal.status, media_type=MEDIA_TYPE)


def in_a_sentence(error: ValidationError) -> str:
    """What is wrong with the parameters of a query."""
    found = ((".".join(map(str, one["loc"][:1])), one) for one in error.errors(include_url=False))
    return "; ".join(
        f"unknown parameter {name!r}" if one["type"] == "extra_forbidden" else f"{name}: {one['msg']}"
        for name, one in found
    )
