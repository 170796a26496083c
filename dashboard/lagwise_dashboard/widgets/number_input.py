"""A field for a number of the address."""

import streamlit as st

from lagwise.links.parameter_types import Number
from lagwise_dashboard import address


def number_input(
    parameter: Number, label: str, *, step: float, placeholder: str | None = None, help: str | None = None
) -> float | None:
    """Draw the field; what the address holds. ``step`` is how far a click on its buttons goes."""
    st.number_input(
        label,
        min_value=parameter.low,
        max_value=parameter.high,
        value=None,
        step=step,
        placeholder=placeholder,
        format="%d" if parameter.is_whole else "%g",
        help=help,
        **address.bound(parameter),
    )
    return address.get(parameter)
