"""Chooses the OpenGL library before any test file imports mujoco, which reads the choice only then."""

import worldmodel.envs  # noqa: F401
