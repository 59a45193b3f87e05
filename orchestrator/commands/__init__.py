"""One module per subcommand, named like it: it parses, calls the library, prints. Heavy imports stay inside."""
