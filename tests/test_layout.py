"""The folders show the architecture, and imports run one way."""

import ast
import re
import subprocess
import sys
import tomllib
from graphlib import TopologicalSorter

import pytest
from house import FILES, LAYERS, ROOMS, ROOT, drawing, imported_modules, module_of

SIMULATOR = {"dm_control", "mujoco", "shimmy"}


def layer_of(module: str) -> str | None:
    parts = module.split(".")
    if parts[0] != "worldmodel":
        return None
    return parts[1] if len(parts) > 1 and parts[1] in LAYERS else "worldmodel"


@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_imports_only_the_layers_below_it(layer: str) -> None:
    allowed = set(LAYERS[: LAYERS.index(layer) + 1])
    for path in (ROOT / layer).rglob("*.py"):
        above = {name for name in imported_modules(path) if layer_of(name) not in allowed | {None}}
        assert not above, f"{path.relative_to(ROOT)} imports {sorted(above)}"


def test_no_module_imports_itself_by_way_of_others() -> None:
    graph = {module: imported_modules(path) & FILES.keys() - {module} for module, path in FILES.items()}
    TopologicalSorter(graph).prepare()  # raises CycleError, which names the circle


def test_the_picture_of_the_house_is_that_of_its_imports() -> None:
    assert (ROOT / "docs" / "house.svg").read_text() == drawing()  # python docs/house.py draws it anew


def test_rooms_of_the_world_model_import_only_those_before_them() -> None:
    for room in ROOMS:
        for path in (ROOT / "worldmodel" / room).rglob("*.py"):
            rooms = {name.split(".")[1] for name in imported_modules(path) if name.startswith("worldmodel.")}
            above = rooms & set(ROOMS[ROOMS.index(room) + 1 :])
            assert not above, f"{path.relative_to(ROOT)} imports {sorted(above)}"


def test_what_is_installed_are_the_folders_that_hold_modules() -> None:
    setuptools = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    assert set(setuptools["packages"]) == {module_of(path.parent / "__init__.py") for path in FILES.values()}
    for package, folder in setuptools["package-dir"].items():
        assert module_of(ROOT / folder / "__init__.py") == package


def test_files_that_pages_and_commands_name_are_there() -> None:
    named = re.compile(rf"(?<![\w/.-])(?:{'|'.join(LAYERS)}|tests|docs|examples)/[\w/.-]+\.(?:py|sh|md|ipynb)\b")
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "scripts").glob("*.sh")]
    for page in (*pages, ROOT / "Makefile", ROOT / "pyproject.toml", ROOT / ".ci" / "run"):
        lost = {name for name in named.findall(page.read_text()) if not (ROOT / name).exists()}
        assert not lost, f"{page.relative_to(ROOT)} names {sorted(lost)}"


def test_the_faces_of_rooms_load_nothing() -> None:
    for face in (path for top in ("worldmodel", "scripts") for path in (ROOT / top).glob("*/**/__init__.py")):
        (docstring,) = ast.parse(face.read_text()).body
        assert isinstance(docstring, ast.Expr), face


def test_the_world_model_knows_no_simulator() -> None:
    for path in (ROOT / "worldmodel").rglob("*.py"):
        assert not {name.split(".")[0] for name in imported_modules(path)} & SIMULATOR, path.name


def test_an_encoder_loads_where_no_simulator_is_installed() -> None:
    block = "import sys; sys.modules.update(dict.fromkeys(['mujoco', 'dm_control', 'shimmy', 'gymnasium']));"
    code = block + "import worldmodel as wm; wm.Encoder(dim=2); wm.fit_encoder; wm.identifiability"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_rendering_does_not_wait_for_torch() -> None:
    code = "import worldmodel.envs, sys; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_doctor_loads_where_the_libraries_beneath_do_not() -> None:
    broken = ["numpy", "scipy", "zarr", "sklearn", "torch", "cv2", "joblib", "matplotlib", "gymnasium", *SIMULATOR]
    block = f"import sys; sys.modules.update(dict.fromkeys({broken}));"
    subprocess.run([sys.executable, "-c", block + "import worldmodel.scripts.doctor"], check=True)


def test_names_that_load_on_first_use_are_completed_all_the_same() -> None:
    code = "import worldmodel as wm, sys; assert set(wm.__all__) <= set(dir(wm)); assert 'numpy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_public_name_resolves() -> None:
    import worldmodel
    from worldmodel import agents, envs, planners

    for package in (worldmodel, envs, agents, planners):
        assert package.__all__, package.__name__
        for name in package.__all__:
            assert getattr(package, name) is not None
            assert f"{package.__name__}.{name}" not in FILES, f"{name} is a module, too"


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="no checkout of git")
def test_no_file_of_a_package_or_of_its_tests_is_ignored_by_git() -> None:
    folders = {path.parent.relative_to(ROOT) for path in FILES.values()}
    files = "\n".join(sorted(f"{folder}/new.py\ntests/{folder}/test_new.py" for folder in folders))
    done = subprocess.run(["git", "check-ignore", "--stdin"], input=files, cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == "" and done.returncode == 1, done.stdout + done.stderr  # 1: none is ignored; 128: no answer
