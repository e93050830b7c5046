"""The documentation site: ``sphinx-build -W docs docs/build/html``. No network is needed, nor by its readers.

Lists of links in the pages of sections are the navigation: a page has no toctree of its own, and reads as well on a
host of repositories. `site_parts` makes what is made: navigation, pages of the API and of commands, tables of evidence.
"""

import os
import sys
import tomllib
from importlib.metadata import version as installed
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
os.environ["CALIBRANT_PROGRESS"] = "0"
os.environ.setdefault("MPLBACKEND", "Agg")

project = "calibrant"
author = "The calibrant developers"
copyright = "the calibrant developers, BSD-3-Clause"  # noqa: A001 - the name that Sphinx reads
version = release = installed("calibrant")

#: Where the site and the repository will be; empty as long as nobody has said so, and then nothing links there.
with open(Path(__file__).resolve().parents[1] / "pyproject.toml", "rb") as file:
    addresses = tomllib.load(file)["tool"]["hatch"]["metadata"]["hooks"]["custom"]
site_url, repository_url = addresses["documentation"], addresses["repository"]

extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "site_parts.navigation",
    "site_parts.outside",
    "site_parts.api",
    "site_parts.commands",
    "site_parts.after",
]
exclude_patterns = [
    "build",
    "examples",
    "gallery_examples",
    "auto_examples/*.ipynb",
    "sg_execution_times.rst",
    "**/sg_execution_times.rst",
    "**/.ipynb_checkpoints",
]
suppress_warnings = ["mystnb.unknown_mime_type"]
smartquotes = False  # "--option" stays what is typed

# Pages
myst_enable_extensions = ["amsmath", "attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4
nb_execution_mode = "cache"
nb_execution_cache_path = str(Path(__file__).parent / "build" / "executed")
nb_execution_timeout = 120
nb_execution_raise_on_error = True
nb_merge_streams = True

# Gallery
sphinx_gallery_conf = {
    "examples_dirs": "gallery_examples",
    "gallery_dirs": "auto_examples",
    "abort_on_example_error": True,
    "capture_repr": (),
    "download_all_examples": False,
    "min_reported_time": 600,
    "show_memory": False,
    "show_signature": False,
    "within_subsection_order": "FileNameSortKey",
}

# Docstrings
autodoc_typehints = "none"
autodoc_member_order = "groupwise"
autodoc_default_options = {
    "members": True,
    "inherited-members": "BaseEstimator,TransformerMixin,ClassifierMixin,Module,Metric,Exception,Warning,tuple,Enum",
}
maximum_signature_line_length = 90
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
python_use_unqualified_type_names = True
add_module_names = False

# Looks
html_theme = "pydata_sphinx_theme"
html_title = f"calibrant {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["tables.js"]
html_baseurl = site_url
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "calibrant"},
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "navigation_depth": 2,
    "show_nav_level": 1,
    "show_toc_level": 2,
    "show_prev_next": True,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "external_links": [{"name": "Source", "url": repository_url}] if repository_url else [],
}
if site_url:  # One version: a file of versions beside the site is all that the switcher waits for.
    html_theme_options["switcher"] = {"json_url": f"{site_url.rstrip('/')}/versions.json", "version_match": version}
    html_theme_options |= {"check_switcher": False, "navbar_end": ["version-switcher", "theme-switcher"]}
mathjax_path = "mathjax/tex-svg.js"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
