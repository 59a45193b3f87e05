"""The overview of a store while a sweep runs and afterwards: a page (`orch serve`) and a terminal view (`orch watch`).

`overview` reads a store incrementally; `server` answers a browser; `terminal` draws the same overview with rich.
"""
