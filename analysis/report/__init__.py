"""One page about a store: what was run, where, and the results compared with the published numbers.

`collect` gathers everything from the store; `page` turns it into HTML that needs no other file.
"""
