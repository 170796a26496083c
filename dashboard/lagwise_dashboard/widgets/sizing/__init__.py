"""Sizing, as the pages Capacity and Plan draw it: whose numbers, the advice, what if, and what can be taken away."""
