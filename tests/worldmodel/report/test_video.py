import subprocess
import sys
from pathlib import Path

import av
import numpy as np
import pytest

from worldmodel.report.video import side_by_side, write_mp4


def test_a_film_is_h264_of_the_right_length_and_size(tmp_path: Path) -> None:
    frames = np.random.default_rng(0).integers(0, 255, (7, 65, 96, 3), np.uint8)
    with av.open(str(write_mp4(tmp_path / "film.mp4", frames, fps=12.5))) as film:
        stream = film.streams.video[0]
        assert stream.codec_context.name == "h264" and stream.pix_fmt == "yuv420p"
        assert (stream.width, stream.height, float(stream.average_rate)) == (96, 64, 12.5)
        assert len(list(film.decode(stream))) == 7
    assert list(tmp_path.iterdir()) == [tmp_path / "film.mp4"]


def test_clips_stand_next_to_each_other() -> None:
    clips = [np.full((3, 8, 8, 3), value, np.uint8) for value in (10, 200)]
    film = side_by_side(clips, ["oracle", "embedding"], scale=2)
    assert film.shape == (3, 16 + 28, 32, 3)
    assert (film[:, -1, :16] == 10).all() and (film[:, -1, 16:] == 200).all()


def test_clips_of_different_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="one size and length"):
        side_by_side([np.zeros((3, 8, 8, 3), np.uint8), np.zeros((4, 8, 8, 3), np.uint8)], ["oracle", "embedding"])


def test_a_missing_opencv_ends_in_one_line_that_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['cv2'] = None\n"
        "import numpy as np; from worldmodel.report.video import side_by_side\n"
        "side_by_side([np.zeros((3, 8, 8, 3), np.uint8)], ['oracle'])"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "install libgl1, or opencv-python-headless" in process.stderr.splitlines()[-1]


def test_what_is_no_film_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="uint8"):
        write_mp4(tmp_path / "film.mp4", np.zeros((3, 8, 8, 3)), fps=10)
    with pytest.raises(ValueError, match="uint8"):
        write_mp4(tmp_path / "film.mp4", np.zeros((0, 8, 8, 3), np.uint8), fps=10)
    with pytest.raises(ValueError, match="per second"):
        write_mp4(tmp_path / "film.mp4", np.zeros((3, 8, 8, 3), np.uint8), fps=0)
    assert not list(tmp_path.iterdir())
