"""Parts of pages that more than one page uses."""
