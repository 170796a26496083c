"""The charts of a page that an AppTest opened, as the browser gets them."""

import json
from typing import Any


def figures(app: Any) -> list[dict[str, Any]]:
    """The figures of all charts, in the order of the page."""
    sent = [one.proto for one in app.get("bidi_component") if one.proto.component_name == "lagwise_chart"]
    return [json.loads(proto.bytes)["figure"] for proto in sent]
