"""Notations that describe tasks: names of groups, tables of automata in files, regular expressions. No torch."""
