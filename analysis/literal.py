"""Figures show text as it is: a folder may be named `$\\frac{1}$`, and that is no mathematics."""

import matplotlib

LITERAL = {"text.parse_math": False}
"""For `matplotlib.rc_context`: it holds for what is made, or drawn, in there."""

literal = matplotlib.rc_context(LITERAL)  # of a function
