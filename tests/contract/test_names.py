"""Names: what a module gives away, what a package exports, and that nothing hides a module."""

import ast
import importlib
import pkgutil
from types import ModuleType

import pytest

import gymlog
import reconstruct
from gymlog import semconv

NAMES = [
    found.name
    for package in (gymlog, reconstruct)
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
]

VOCABULARIES = {"gymlog.record", "gymlog.semconv", "gymlog.errors", "reconstruct.errors"}
"""Modules of constants and types alone, all of them public: a list would only repeat them."""

each_module = pytest.mark.parametrize("name", NAMES)


def tree_of(module: ModuleType) -> ast.Module:
    assert module.__file__
    with open(module.__file__, encoding="utf-8") as source:
        return ast.parse(source.read())


def defined(tree: ast.Module) -> set[str]:
    """Return the public names that a module defines itself."""
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return {name for name in names if not name.startswith("_")}


@each_module
def test_a_module_says_what_it_gives_away(name: str) -> None:
    """`__all__` is there, sorted or grouped as it likes, without repeats, and true."""
    module = importlib.import_module(name)
    public = getattr(module, "__all__", None)
    if public is None:
        functions = [node for node in tree_of(module).body if isinstance(node, ast.FunctionDef)]
        public_functions = [node.name for node in functions if not node.name.startswith("_")]
        assert not public_functions or name not in VOCABULARIES
        assert name in VOCABULARIES or not defined(tree_of(module)), "has no __all__"
        return
    assert len(public) == len(set(public))
    assert [one for one in public if one.startswith("_")] == []
    assert [one for one in public if not hasattr(module, one)] == []


@each_module
def test_nobody_imports_what_a_module_does_not_give_away(name: str) -> None:
    """Within the packages as well, but for names with an underscore, which say so themselves."""
    for node in ast.walk(tree_of(importlib.import_module(name))):
        if not isinstance(node, ast.ImportFrom) or not str(node.module).startswith(
            ("gymlog", "reconstruct")
        ):
            continue
        source = importlib.import_module(str(node.module))
        given = getattr(source, "__all__", None)
        for alias in node.names:
            is_module = f"{node.module}.{alias.name}" in NAMES
            if given is not None and not is_module and not alias.name.startswith("_"):
                assert alias.name in given, f"{node.module}.{alias.name} is not in __all__"


@pytest.mark.parametrize("package", ["gymlog", "reconstruct", *NAMES])
def test_no_public_name_hides_a_module(package: str) -> None:
    """`gymlog.request` could otherwise be either."""
    module = importlib.import_module(package)
    if not hasattr(module, "__path__"):
        return
    submodules = {found.name for found in pkgutil.iter_modules(module.__path__)}
    public = set(getattr(module, "__all__", ())) | defined(tree_of(module))
    assert public & submodules == set()


def test_gymlogs_lazy_names_are_its_own() -> None:
    """Each is exported, and comes from where the table says."""
    assert set(gymlog._LAZY) <= set(gymlog.__all__)
    for name, module in gymlog._LAZY.items():
        assert getattr(gymlog, name) is getattr(importlib.import_module(f"gymlog.{module}"), name)
        assert name in dir(gymlog)
    with pytest.raises(AttributeError, match="module 'gymlog' has no attribute 'manged_span'"):
        gymlog.manged_span  # noqa: B018 - the access is the test


# Attribute keys.

CONSTANTS = [
    (node.target.id, following)
    for node, following in zip(
        tree_of(semconv).body, [*tree_of(semconv).body[1:], None], strict=True
    )
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
]


@pytest.mark.parametrize(("name", "following"), CONSTANTS, ids=[name for name, _ in CONSTANTS])
def test_every_attribute_key_has_a_sentence(name: str, following: ast.stmt | None) -> None:
    """Under it, as a docstring."""
    assert isinstance(following, ast.Expr)
    assert isinstance(following.value, ast.Constant)
    sentence = following.value.value
    assert isinstance(sentence, str)
    assert sentence.rstrip("`").endswith((".", "…"))
    assert "\n\n" not in sentence


def test_attribute_keys_are_well_formed_and_not_deprecated() -> None:
    """Dots nest, underscores join, each key once; own ones only under the own prefixes."""
    keys = [getattr(semconv, name) for name, _ in CONSTANTS]
    assert len(CONSTANTS) > 40
    assert len(keys) == len(set(keys))
    for key in keys:
        assert all(part.isidentifier() and part == part.lower() for part in key.split(".")), key
        assert "." in key
    deprecated = {
        "http.method", "http.status_code", "http.url", "code.function", "code.filepath",
        "code.lineno", "exception.escaped", "gen_ai.system", "gen_ai.usage.prompt_tokens",
    }  # fmt: skip
    assert deprecated.isdisjoint(keys)
