import json
from pathlib import Path

import pytest

from worldmodel.utils.files import write_json, write_whole
from worldmodel.utils.stages import digest_of, run_stage


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
