"""Linear dynamics: what a fit recovers, refuses and predicts."""

import numpy as np
import pytest
import torch

from worldmodel.dynamics.forecast import open_loop
from worldmodel.dynamics.linear import fit_linear_dynamics
from worldmodel.dynamics.similarity import similarity
from worldmodel.dynamics.states import StateLayout, Trajectories, align_actions

A = np.array([[0.9, 0.1], [-0.05, 0.8]])
B = np.array([[0.1], [0.3]])


def driven(seed: int, episodes: int = 20, steps: int = 30, noise: float = 0.0) -> Trajectories:
    """Second-order episodes: h is the sum of two states of a linear system, so one frame holds no velocity."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(episodes, 4))
    M = np.block([[np.eye(2), 0.2 * np.eye(2)], [-0.1 * np.eye(2), A]])
    h, actions = [x[:, :2]], rng.normal(size=(steps, episodes, 1))
    for a in actions:
        x = x @ M.T + np.concatenate([np.zeros((episodes, 2)), a @ B.T + 0.05], axis=1)
        h.append(x[:, :2] + noise * rng.normal(size=(episodes, 2)))
    stacked = np.stack(h, axis=1).reshape(-1, 2)
    return Trajectories(stacked, actions.swapaxes(0, 1).reshape(-1, 1), np.arange(episodes + 1) * (steps + 1))


def test_a_noise_free_second_order_system_is_predicted_exactly_from_two_embeddings() -> None:
    fitted = fit_linear_dynamics(*driven(0), history=2, ridge=0.0)
    forecast = open_loop(fitted, *driven(1), steps=(1, 20))
    assert np.all(forecast.error < 1e-8)
    assert np.all(forecast.holding_still > 0.1)
    assert forecast.windows == 20 * (31 - 4 - 20 + 1)  # 4 frames settle the state


def test_the_history_is_chosen_on_other_episodes() -> None:
    assert fit_linear_dynamics(*driven(0), history=None, selection=driven(1)).history == 2


def test_a_noisy_fit_knows_its_noise() -> None:
    rng = np.random.default_rng(0)
    h, actions = [np.zeros(2)], rng.normal(size=(4000, 1))
    for a in actions:
        h.append(A @ h[-1] + B @ a + 0.1 * rng.normal(size=2))
    fitted = fit_linear_dynamics(np.array(h), actions, np.array([0, 4001]), history=1)
    assert np.abs(fitted.A - A).max() < 0.02
    assert np.allclose(fitted.noise_cov, 0.01 * np.eye(2), atol=1e-3)


def test_windows_never_cross_an_episode() -> None:
    layout = StateLayout(history=3, dim=1, actions=1)
    assert len(layout.windows(np.array([0, 3, 13, 20]), steps=1)) == 0 + 7 + 4


def test_actions_belong_to_the_frame_they_were_taken_at() -> None:
    aligned = align_actions(np.array([[1.0], [2.0], [3.0]]), np.array([0, 3, 5]))[:, 0]
    assert np.array_equal(aligned, [1.0, 2.0, np.nan, 3.0, np.nan], equal_nan=True)


def test_a_state_steps_as_the_model_steps_it() -> None:
    data = driven(0, noise=0.01)
    fitted = fit_linear_dynamics(*data, history=3)
    layout, by_frame = fitted.layout, align_actions(data.actions, data.offsets)
    frames = layout.windows(data.offsets, 1)
    s = layout.at(data.h, by_frame, frames)
    seen = layout.step(s, by_frame[frames], data.h[frames + 1])
    assert np.array_equal(seen, layout.at(data.h, by_frame, frames + 1))
    assert np.allclose(fitted.transition(s, by_frame[frames])[:, 2:], seen[:, 2:])


def test_torch_states_step_like_numpy_states() -> None:
    fitted = fit_linear_dynamics(*driven(0), history=2)
    rng = np.random.default_rng(0)
    s, a = rng.normal(size=(5, fitted.layout.size)), rng.normal(size=(5, 1))
    assert np.allclose(fitted.transition(torch.tensor(s), torch.tensor(a)).numpy(), fitted.transition(s, a))


def test_a_direction_that_is_not_excited_is_named() -> None:
    data = driven(0)
    idle = np.concatenate([data.actions, np.full_like(data.actions, 0.3)], axis=1)
    with pytest.raises(ValueError, match=r"excite 6 of 8 directions.*a1"):
        fit_linear_dynamics(data.h, idle, data.offsets, history=2)


def test_a_history_that_says_nothing_new_is_refused() -> None:
    with pytest.raises(ValueError, match="shorten the history"):
        fit_linear_dynamics(*driven(0), history=3)


def test_rank_and_condition_are_reported() -> None:
    excitation = fit_linear_dynamics(*driven(0), history=2).excitation
    assert excitation is not None
    assert (excitation.rank, excitation.regressors, excitation.samples) == (6, 6, 20 * 29)
    assert 1 < excitation.condition < 1e4


def test_episodes_that_were_posed_or_do_not_fit_are_refused() -> None:
    data = driven(0)
    with pytest.raises(ValueError, match="posed, not driven"):
        fit_linear_dynamics(data.h, data.actions[:, :0], data.offsets)
    with pytest.raises(ValueError, match="actions, not"):
        fit_linear_dynamics(data.h, data.actions[:-1], data.offsets)
    with pytest.raises(ValueError, match="no episode has the 32 frames"):
        fit_linear_dynamics(*data, history=31)


def test_dynamics_of_rotated_latents_are_the_same_model() -> None:
    angle = 0.7
    Q = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    data = driven(0)
    true = fit_linear_dynamics(*data, history=2)
    learnt = fit_linear_dynamics(data.h @ Q.T + 1.0, data.actions, data.offsets, history=2)
    assert similarity(true, learnt, Q).relative < 1e-4
    assert similarity(true, learnt, np.eye(2)).relative > 0.05
    assert np.allclose(true.transformed(Q, np.ones(2)).bias, learnt.bias, atol=1e-4)
