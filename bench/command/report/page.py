"""The page: figures with two sentences each, nothing loaded from elsewhere."""

import html
import os
from dataclasses import dataclass


@dataclass
class Figure:
    name: str    # identifier in the page
    title: str
    svg: str     # empty: the results have nothing to draw
    paper: str   # what the papers saw, with the place
    ours: str    # what these results show, computed


_STYLE = """
body { font: 16px/1.5 sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; color: #222 }
h1 { font-size: 1.6rem } h2 { font-size: 1.2rem; margin-top: 2.5rem }
svg { max-width: 100%; height: auto } figure { margin: 1rem 0 }
dt { font-weight: bold; float: left; width: 6rem } dd { margin: 0 0 .4rem 6.5rem }
nav a { margin-right: 1rem } .none { color: #777; font-style: italic }
"""


def _section(figure):
    drawing = f"<figure>{figure.svg}</figure>" if figure.svg else (
        '<p class="none">These results have nothing to draw here.</p>')
    return (f'<section id="{figure.name}">\n<h2>{html.escape(figure.title)}</h2>\n{drawing}\n'
            f"<dl><dt>The paper</dt><dd>{html.escape(figure.paper)}</dd>\n"
            f"<dt>Here</dt><dd>{html.escape(figure.ours)}</dd></dl>\n</section>\n")


def render(results, figures):
    links = "".join(f'<a href="#{figure.name}">{html.escape(figure.title)}</a> '
                    for figure in figures)
    facts = "".join(f"<p>{html.escape(fact)}</p>\n" for fact in results.facts)
    title = html.escape(f"Forebay: {results.title}")
    return ('<!DOCTYPE html>\n<html lang="en">\n<head><meta charset="utf-8">\n'
            f"<title>{title}</title>\n<style>{_STYLE}</style></head>\n<body>\n<h1>{title}</h1>\n{facts}"
            "<p>The papers: Pumma et al., Scalable Deep Learning via I/O Analysis and Optimization (ACM TOPC, "
            "2019), cited as TOPC; Pumma, Scalability Analysis and Optimization for Large-Scale "
            f"Deep Learning (dissertation, Virginia Tech), cited as D.</p>\n<nav>{links}</nav>\n"
            + "".join(map(_section, figures)) + "</body>\n</html>\n")


def write(path, text):
    """Whole or not at all."""
    part = path + ".part"
    try:
        with open(part, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(part, path)
    except OSError:
        if os.path.exists(part):
            os.remove(part)
        raise
