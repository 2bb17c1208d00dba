"""How fast the parts are, alone and together, and against a named peer. Nothing imports this."""
