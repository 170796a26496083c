"""What a capacity question is answered with, to look at and to take away. Nothing here knows Streamlit: the page draws
it, and ``lagwise size`` writes the same files."""
