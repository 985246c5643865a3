"""Films in H.264, which every browser plays."""

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import av
import numpy as np

from worldmodel.utils.files import write_whole


def write_mp4(path: Path, frames: np.ndarray, fps: float) -> Path:
    """Write frames (T, H, W, 3) uint8 as H.264 in yuv420p, whole or not at all.

    Odd sizes are cropped by one pixel, since the format stores colour at half resolution.

    Raises:
        ValueError: no frames, frames that are not (T, H, W, 3) uint8, or a rate that is not positive.
    """
    if not fps > 0:
        raise ValueError(f"the rate of the film is {fps}; it must be above 0 frames per second")
    if frames.ndim != 4 or frames.shape[-1] != 3 or frames.dtype != np.uint8 or not len(frames):
        raise ValueError(f"a film takes (T, H, W, 3) uint8 frames, not {frames.shape} {frames.dtype}")
    frames = frames[:, : frames.shape[1] // 2 * 2, : frames.shape[2] // 2 * 2]

    def encode(temporary: Path) -> None:
        with av.open(str(temporary), "w", format="mp4", options={"movflags": "faststart"}) as container:
            stream = container.add_stream("libx264", rate=Fraction(fps).limit_denominator(1000))
            stream.height, stream.width, stream.pix_fmt = frames.shape[1], frames.shape[2], "yuv420p"
            stream.options = {"crf": "18"}
            for frame in frames:
                container.mux(stream.encode(av.VideoFrame.from_ndarray(np.ascontiguousarray(frame), format="rgb24")))
            container.mux(stream.encode())

    return write_whole(path, encode)


def side_by_side(clips: Sequence[np.ndarray], labels: Sequence[str], scale: int = 4) -> np.ndarray:
    """Put clips (T, H, W, 3) of equal size next to each other, enlarged, each under its label.

    Returns:
        (T, H * scale + 28, len(clips) * W * scale, 3) uint8.

    Raises:
        ImportError: OpenCV does not load; the line says what to install.
        ValueError: clips of different sizes or lengths.
    """
    if len({clip.shape for clip in clips}) != 1:
        raise ValueError(f"clips side by side have one size and length, not {[clip.shape for clip in clips]}")
    try:
        import cv2
    except ImportError as error:
        raise ImportError(f"OpenCV does not load ({error}): install libgl1, or opencv-python-headless") from error
    height, width = clips[0].shape[1] * scale, clips[0].shape[2] * scale
    band = 28
    film = np.full((len(clips[0]), height + band, width * len(clips), 3), 255, np.uint8)
    for column, (clip, label) in enumerate(zip(clips, labels, strict=True)):
        left = column * width
        for step, frame in enumerate(clip):
            enlarged = cv2.resize(frame, (width, height), interpolation=cv2.INTER_NEAREST)
            film[step, band:, left : left + width] = enlarged
            picture = np.ascontiguousarray(film[step])
            cv2.putText(picture, label, (left + 8, 19), cv2.FONT_HERSHEY_SIMPLEX, 0.5, (40, 40, 40), 1, cv2.LINE_AA)
            film[step] = picture
    return film
