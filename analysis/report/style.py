"""How the page looks: light or dark as the reader's system is, on a desk or on a phone."""

from analysis.report.figures import COLOURS

# As `figures.COLOURS`, bright enough for a dark page.
_ON_DARK = (
    "#6cb2f5",
    "#ff8a7a",
    "#5fcf93",
    "#f0b34a",
    "#b79df0",
    "#45cfd6",
    "#ee8fd6",
    "#b5d04f",
    "#cfa184",
    "#a9b1bd",
)


def _variables(colours: tuple[str, ...]) -> str:
    return " ".join(f"--line-{i}: {colour};" for i, colour in enumerate(colours))


SHEET = f""":root {{
  color-scheme: light dark;
  --ink: #22262b; --soft: #59626d; --paper: #ffffff; --panel: #f4f6f8; --rule: #dde2e7;
  {_variables(COLOURS)}
}}
@media (prefers-color-scheme: dark) {{
  :root {{
    --ink: #e3e7eb; --soft: #a0a9b4; --paper: #14171b; --panel: #1d2127; --rule: #333a43;
    {_variables(_ON_DARK)}
  }}
}}
* {{ box-sizing: border-box; }}
body {{
  margin: 0 auto; max-width: 84rem; padding: 1rem clamp(0.9rem, 3vw, 2.5rem) 3rem;
  background: var(--paper); color: var(--ink);
  font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif;
}}
h1 {{ font-size: 1.6rem; line-height: 1.25; margin: 0.5rem 0; overflow-wrap: anywhere; }}
h2 {{ font-size: 1.2rem; margin: 2.2rem 0 0.6rem; padding-top: 0.8rem;
  border-top: 1px solid var(--rule); }}
h3 {{ font-size: 1rem; margin: 1.2rem 0 0.4rem; overflow-wrap: anywhere; }}
p {{ max-width: 48rem; margin: 0.5rem 0; color: var(--soft); }}
nav {{ display: flex; flex-wrap: wrap; gap: 0.2rem 1.1rem; }}
a {{ color: var(--line-0); text-decoration: none; }}
a:hover {{ text-decoration: underline; }}
.grid {{ display: grid; gap: 0.8rem; margin: 0.8rem 0; align-items: start;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 21rem), 1fr)); }}
@media (min-width: 46rem) {{ .pairs {{ grid-template-columns: repeat(2, minmax(0, 34rem)); }} }}
figure {{ margin: 0; padding: 0.5rem; background: var(--panel); border-radius: 0.5rem; }}
svg {{ display: block; width: 100%; height: auto; max-width: 34rem;
  stroke-linejoin: round; font-family: inherit; }}
.key {{ list-style: none; display: flex; flex-wrap: wrap; gap: 0.2rem 1.2rem; padding: 0;
  margin: 0.5rem 0; }}
.key li {{ overflow-wrap: anywhere; }}
.line {{ display: inline-block; width: 1.4em; height: 0.28em; margin-right: 0.45em;
  border-radius: 0.14em; vertical-align: middle; }}
.scroll {{ overflow-x: auto; margin: 0.6rem 0; }}
table {{ border-collapse: collapse; font-size: 0.92rem; font-variant-numeric: tabular-nums; }}
th, td {{ padding: 0.28rem 1.1rem 0.28rem 0; text-align: left; vertical-align: top;
  border-bottom: 1px solid var(--rule); white-space: nowrap; }}
thead th {{ color: var(--soft); font-weight: 600; }}
tbody th {{ font-weight: 500; position: sticky; left: 0; background: var(--paper); }}
@media (max-width: 40rem) {{
  th, td {{ white-space: normal; overflow-wrap: break-word; padding-right: 0.6rem; }}
  .many, .many tbody, .many tr, .many th, .many td {{ display: block; }}
  .many thead {{ display: none; }}
  .many tr {{ padding: 0.4rem 0; border-bottom: 1px solid var(--rule); }}
  .many th, .many td {{ border: 0; padding: 0.1rem 0; }}
  .many tbody th {{ position: static; font-weight: 600; }}
  .many td::before {{ content: attr(data-name) ": "; color: var(--soft); }}
  pre {{ white-space: pre-wrap; overflow-wrap: anywhere; }}
}}
details {{ margin: 0.8rem 0; }}
summary {{ cursor: pointer; color: var(--line-0); }}
pre {{ overflow-x: auto; padding: 0.7rem 0.9rem; background: var(--panel); border-radius: 0.5rem;
  font-size: 0.85rem; }}
"""
