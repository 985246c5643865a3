import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from worldmodel.utils import stages
from worldmodel.utils.files import write_json, write_whole
from worldmodel.utils.stages import Stage, digest_of, run_stage


def test_a_finished_stage_is_not_built_again(tmp_path: Path) -> None:
    built: list[Path] = []
    first = run_stage(tmp_path, "collect", {"seed": 1}, built.append)
    second = run_stage(tmp_path, "collect", {"seed": 1}, built.append)
    assert built == [first.folder] and not first.cached and second.cached and second.seconds == first.seconds


def test_a_changed_key_is_another_stage(tmp_path: Path) -> None:
    built: list[Path] = []
    for seed in (1, 2):
        run_stage(tmp_path, "collect", {"seed": seed}, built.append)
    assert len(set(built)) == 2


def test_an_interrupted_stage_is_entered_again_with_its_folder(tmp_path: Path) -> None:
    def interrupted(folder: Path) -> None:
        (folder / "shard-0").write_text("kept")
        raise KeyboardInterrupt

    def resumed(folder: Path) -> None:
        assert (folder / "shard-0").read_text() == "kept"

    with pytest.raises(KeyboardInterrupt):
        run_stage(tmp_path, "collect", {}, interrupted)
    assert not run_stage(tmp_path, "collect", {}, resumed).cached


def made(root: Path, code: str, monkeypatch: pytest.MonkeyPatch, **options: Any) -> Stage:
    """A stage whose code has the given digest."""
    keep = options.pop("keep", False)
    monkeypatch.setattr(stages, "fingerprint", lambda made_by: {"worldmodel.encoders.sigreg": code})
    return run_stage(root, "train", options, lambda folder: (folder / "weights").write_text(code), keep=keep)


def test_changed_code_makes_a_stage_anew_and_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = made(tmp_path, "old", monkeypatch, steps=3)
    second = made(tmp_path, "new", monkeypatch, steps=3)
    assert not second.cached and second.digest != first.digest
    assert second.told() == "train: done in 0 s (again: the code of worldmodel.encoders.sigreg changed)"
    assert made(tmp_path, "old", monkeypatch, steps=3).cached  # code that is changed back finds what it made


def test_changed_options_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made(tmp_path, "same", monkeypatch, training={"steps": 3, "lr": 0.1}, seed=0)
    again = made(tmp_path, "same", monkeypatch, training={"steps": 4, "lr": 0.1}, seed=1)
    assert again.changed == ("seed", "training.steps")


def test_a_stage_may_be_kept_though_its_code_changed_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = made(tmp_path, "old", monkeypatch, steps=3)
    kept = made(tmp_path, "new", monkeypatch, steps=3, keep=True)
    assert kept.cached and kept.folder == first.folder and kept.digest == first.digest
    assert kept.to_json()["outdated"] == ["the code of worldmodel.encoders.sigreg"]
    assert "though the code of worldmodel.encoders.sigreg changed since" in kept.told()
    assert not made(tmp_path, "new", monkeypatch, steps=4, keep=True).cached  # other options are another stage


def test_versions_are_those_that_made_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "versions", lambda: {"torch": "1.0"})
    run_stage(tmp_path, "train", {}, lambda folder: None)
    monkeypatch.setattr(stages, "versions", lambda: {"torch": "2.0"})
    assert run_stage(tmp_path, "train", {}, lambda folder: None).versions == {"torch": "1.0"}


def test_functions_and_foreign_dataclasses_count_by_their_code() -> None:
    def objective(weight: float) -> Callable[[float], float]:
        return lambda x: weight * x

    assert digest_of({"f": objective(2)}) == digest_of({"f": objective(2)}) != digest_of({"f": objective(3)})

    def kind(answer: int) -> Any:
        @dataclass
        class Own:
            size: int

            def __call__(self) -> int:
                return answer

        return Own(3)

    assert digest_of({"f": kind(1)}) == digest_of({"f": kind(1)}) != digest_of({"f": kind(2)})


def test_a_key_must_be_plain_data() -> None:
    with pytest.raises(TypeError, match="not object"):
        digest_of({"thing": object()})


def test_a_failed_write_keeps_the_old_file_and_leaves_nothing_behind(tmp_path: Path) -> None:
    path = write_json(tmp_path / "result.json", {"a": 1})

    def fail(temporary: Path) -> None:
        temporary.write_text("half")
        raise OSError("disk full")

    with pytest.raises(OSError):
        write_whole(path, fail)
    assert json.loads(path.read_text()) == {"a": 1} and list(tmp_path.iterdir()) == [path]


def test_nan_is_not_json(tmp_path: Path) -> None:
    with pytest.raises(ValueError):
        write_json(tmp_path / "result.json", {"a": float("nan")})
