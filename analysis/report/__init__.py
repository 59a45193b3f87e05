"""One page about a store: what was run, on what, and what came of it beside the published numbers.

`collect` gathers everything from the store; `page` turns it into HTML that needs nothing else.
"""
