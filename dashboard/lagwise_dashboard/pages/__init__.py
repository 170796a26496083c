"""The pages, a folder each. The module with the folder's name draws the page; the others serve it alone."""
