"""What a package index shows: links of the README lead somewhere, or are not there."""

import importlib.util
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def build():
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def targets(text):
    return re.findall(r"\]\(([^)\s]+)\)", text)


def test_with_an_address_every_link_is_absolute_and_leads_to_a_file(build):
    packaged = build.for_an_index(README, "https://example.org/calibrant/", "v1.2.3")
    links = targets(packaged)
    assert len(links) == len(targets(README)) >= 20
    heads = ("https://example.org/calibrant/blob/v1.2.3/", "https://example.org/calibrant/raw/v1.2.3/")
    for link in links:
        (path,) = [link.removeprefix(head) for head in heads if link.startswith(head)]
        assert (ROOT / path.split("#")[0]).is_file()
        assert path.endswith(".png") == link.startswith(heads[1])


def test_without_one_there_is_no_link_and_no_picture(build):
    packaged = build.for_an_index(README, "", "v1.2.3")
    assert targets(packaged) == []
    assert "![" not in packaged
    assert not any(words in packaged for words in re.findall(r"!\[([^\]]+)\]", README))
    assert "docs/how_to.md" in packaged  # the words of the links stay


def test_links_to_headings_and_sites_are_left_alone(build):
    text = "[a](#head) [b](https://example.org) [c](mailto:x@example.org)"
    assert build.for_an_index(text, "https://example.org/x", "v1") == build.for_an_index(text, "", "v1") == text


@pytest.mark.parametrize(
    ("address", "email", "links"),
    [("", "", {}), ("https://example.org/c/", "c@example.org", {"Source", "Issues", "Changelog"})],
)
def test_the_hook_fills_in_what_depends_on_the_owner(build, address, email, links, capsys):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    settings = project["tool"]["hatch"]["metadata"]["hooks"]["custom"]
    metadata = {"version": "1.2.3"}
    hook = build.Metadata(str(ROOT), settings | {"repository": address, "email": email})
    hook.update(metadata)
    assert metadata.keys() - {"version"} == set(project["project"]["dynamic"])
    assert metadata["urls"].keys() == set(links)
    assert metadata["authors"] == [{"name": "The calibrant developers"} | ({"email": email} if email else {})]
    assert metadata["readme"]["content-type"] == "text/markdown"
    assert ("no repository is set" in capsys.readouterr().err) == (address == "")


def test_the_conda_recipe_needs_what_the_package_needs():
    """Names, least versions, version, summary and license are those of pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    recipe = (ROOT / "conda" / "recipe.yaml").read_text(encoding="utf-8")
    run = recipe[recipe.index("  run:\n") : recipe.index("tests:\n")]
    found = dict(re.findall(r"^    - (\S+) (>=\S+)$", run, re.M))
    assert found.pop("python") == project["requires-python"]
    extras = project["optional-dependencies"]
    needed = project["dependencies"] + [one for name in ("plot", "html", "cli") for one in extras[name]]
    parts = [re.fullmatch(r"([\w-]+)(>=\S+)", one) for one in needed if not one.startswith("calibrant[")]
    assert found == {part[1].replace("matplotlib", "matplotlib-base"): part[2] for part in parts}
    assert f'version: "{project["version"]}"' in recipe
    assert f"summary: {project['description']}" in recipe
    assert f"license: {project['license']}" in recipe
    (script,) = project["scripts"].items()
    assert " = ".join(script) in recipe
