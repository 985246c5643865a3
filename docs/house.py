"""Draw house.svg, which room of the project imports which, from the imports as they are: ``python docs/house.py``."""

import ast
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parent.parent
LAYERS = ("worldmodel", "envs", "agents", "planners", "scripts")  # each may import those before it
ROOMS = ("utils", "stats", "data", "encoders", "dynamics", "measures", "synthetic", "report")  # likewise
_CELL, _LEFT, _TOP = 34, 130, 120  # pixels
_INK, _DOT, _LINE = "#333333", "#4c72b0", "#dddddd"


def module_of(path: Path) -> str:
    """The name under which a file of the tree is imported."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    parts = parts if parts[0] == "worldmodel" else ("worldmodel", *parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {module_of(path): path for layer in LAYERS for path in (ROOT / layer).rglob("*.py")}


def imported_modules(path: Path) -> set[str]:
    """Names that a file imports, wherever it does so: inside functions and under TYPE_CHECKING, too."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.module and not node.level, f"{path}, line {node.lineno}: name modules in full"
            full = {f"{node.module}.{alias.name}" for alias in node.names}
            names |= {name if name in FILES else node.module for name in full}
    return names


def room_of(module: str) -> str | None:
    """The room of a module: a folder of worldmodel/, or a layer above it; None for the face of the package."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else None


def drawing() -> str:
    """Return the SVG: a row for each room, a dot under each room that it imports, as wide as it has modules that do."""
    rooms = [*ROOMS, *LAYERS[1:]]
    uses: Counter[tuple[str, str]] = Counter()
    for module, path in FILES.items():
        used = {room_of(name) for name in imported_modules(path) & FILES.keys()}
        uses.update((str(room_of(module)), str(room)) for room in used - {room_of(module), None})
    size = len(rooms)
    width, height = _LEFT + size * _CELL + 20, _TOP + size * _CELL + 20
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'font-family="sans-serif" font-size="14">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for index, room in enumerate(rooms):
        middle = index * _CELL + _CELL / 2
        x, y = _LEFT + middle, _TOP + middle
        lines += [
            f'<line x1="{_LEFT}" y1="{y}" x2="{_LEFT + size * _CELL}" y2="{y}" stroke="{_LINE}"/>',
            f'<line x1="{x}" y1="{_TOP}" x2="{x}" y2="{_TOP + size * _CELL}" stroke="{_LINE}"/>',
            f'<text x="{_LEFT - 10}" y="{y + 5}" text-anchor="end" fill="{_INK}">{room}</text>',
            f'<text transform="translate({x + 5} {_TOP - 10}) rotate(-60)" fill="{_INK}">{room}</text>',
            f'<rect x="{x - 4}" y="{y - 4}" width="8" height="8" fill="{_LINE}"/>',
        ]
    for (room, used), modules in sorted(uses.items()):
        if room in rooms and used in rooms:
            x, y = (start + rooms.index(one) * _CELL + _CELL / 2 for start, one in ((_LEFT, used), (_TOP, room)))
            radius = min(14.0, 3 + 1.5 * modules**0.5)
            title = f"{modules} module{'s' if modules > 1 else ''} of {room} import{'s' if modules == 1 else ''} {used}"
            lines.append(f'<circle cx="{x}" cy="{y}" r="{radius:.1f}" fill="{_DOT}"><title>{title}</title></circle>')
    return "\n".join([*lines, "</svg>"]) + "\n"


if __name__ == "__main__":
    (ROOT / "docs" / "house.svg").write_text(drawing())
