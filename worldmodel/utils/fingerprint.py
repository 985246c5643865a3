"""What code a result hangs on: the modules of this project that a function reaches by import, and a digest of each."""

import ast
import hashlib
import inspect
from collections.abc import Callable, Iterable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

_PROJECT = "worldmodel"


def fingerprint(made_by: Iterable[Callable[..., Any]]) -> dict[str, str]:
    """Return a digest of every module of the project that these functions or classes reach by import, by name.

    Comments, docstrings and layout do not count, nor do imports for types alone. A module that the package only names
    (``import worldmodel as wm``) reaches nothing: hand in the function that does the work.

    >>> reached = fingerprint([fingerprint])
    >>> list(reached), len(reached["worldmodel.utils.fingerprint"])
    (['worldmodel.utils.fingerprint'], 12)
    """
    reached: dict[str, str] = {}
    waiting = sorted({inspect.unwrap(function).__module__ for function in made_by})
    while waiting:
        module = waiting.pop()
        if module not in reached and _belongs(module):
            reached[module], imported = _read(module)
            waiting += imported
    return dict(sorted(reached.items()))


def code_of(thing: Any) -> str:
    """Return a digest of a function or class from anywhere, with the values that it closes over.

    >>> def times(factor):
    ...     return lambda x: factor * x
    >>> code_of(times(2)) == code_of(times(2)), code_of(times(2)) == code_of(times(3))
    (True, False)
    """
    return _digest(repr(_parts(thing)))


def _parts(thing: Any) -> Any:
    if isinstance(thing, FunctionType):
        closed = [cell.cell_contents for cell in thing.__closure__ or ()]
        return [_parts(thing.__code__), [_parts(value) for value in (*closed, *(thing.__defaults__ or ()))]]
    if isinstance(thing, CodeType):
        return [thing.co_code, thing.co_names, [_parts(constant) for constant in thing.co_consts]]
    if isinstance(thing, type):
        own = {name: value for name, value in vars(thing).items() if isinstance(value, FunctionType)}
        return [thing.__qualname__, [(name, _parts(own[name])) for name in sorted(own)]]
    if callable(thing):
        return [_parts(type(thing)), repr(vars(thing))]
    return repr(thing)


@cache
def _read(module: str) -> tuple[str, tuple[str, ...]]:
    """Return the digest of a module's code, and the modules of the project that it imports."""
    tree = ast.parse(_file(module).read_text())
    imported: set[str] = set()
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body:
            node.body = [one for one in body[_is_text(body[0]) :] if not _for_types(one)] or [ast.Pass()]  # type: ignore[attr-defined]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names if alias.name != _PROJECT}
        elif isinstance(node, ast.ImportFrom) and node.module and _belongs(node.module):
            imported |= {_home(node.module, alias.name) for alias in node.names}
    return _digest(ast.unparse(tree)), tuple(sorted(filter(_belongs, imported)))


@cache
def _home(module: str, name: str) -> str:
    """Return the module that ``from module import name`` leads to, through the face of a package."""
    if _is_module(f"{module}.{name}"):
        return f"{module}.{name}"
    file = _file(module)
    if file.name == "__init__.py":
        for node in ast.walk(ast.parse(file.read_text())):  # a face that loads late names its homes for types
            if isinstance(node, ast.ImportFrom) and node.module and name in {alias.name for alias in node.names}:
                return _home(node.module, name)
    return module


def _belongs(module: str) -> bool:
    return module.partition(".")[0] == _PROJECT


@cache
def _is_module(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # its parent is no package
        return False


@cache
def _file(module: str) -> Path:
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"no source of {module} is found", name=module)
    return Path(spec.origin)


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _for_types(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
