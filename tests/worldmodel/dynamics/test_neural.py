"""Neural dynamics: they correct the linear model where it is wrong, on the same interface."""

import numpy as np
import pytest
import torch

from worldmodel.dynamics.forecast import open_loop
from worldmodel.dynamics.linear import LinearGaussianDynamics, fit_linear_dynamics
from worldmodel.dynamics.neural import NeuralDynamics, NeuralOptions, fit_neural_dynamics
from worldmodel.dynamics.states import Trajectories

QUICK = NeuralOptions(members=2, hidden=64, steps=200, batch_size=128)


def swinging(seed: int, episodes: int = 60, steps: int = 50) -> Trajectories:
    """A pendulum-like joint: its pull is a sine of the angle."""
    rng = np.random.default_rng(seed)
    q, v, u = rng.uniform(-2, 2, (episodes, 1)), np.zeros((episodes, 1)), np.zeros((episodes, 1))
    h, actions = [q], []
    for _ in range(steps):
        u = 0.9 * u + 0.4 * rng.normal(size=u.shape)
        actions.append(np.clip(u, -1, 1))
        v = 0.95 * v - 0.06 * np.sin(2 * q) - 0.02 * q + 0.03 * actions[-1]
        q = q + v
        h.append(q)
    offsets = np.arange(episodes + 1) * (steps + 1)
    return Trajectories(np.stack(h, axis=1).reshape(-1, 1), np.stack(actions, axis=1).reshape(-1, 1), offsets)


@pytest.fixture(scope="module")
def linear() -> LinearGaussianDynamics:
    return fit_linear_dynamics(*swinging(0))


@pytest.fixture(scope="module")
def fitted(linear: LinearGaussianDynamics) -> NeuralDynamics:
    return fit_neural_dynamics(*swinging(0), linear=linear, options=QUICK)


def test_before_training_it_is_the_linear_model(linear: LinearGaussianDynamics) -> None:
    s, a = np.random.default_rng(0).normal(size=(5, linear.layout.size)), np.ones((5, 1))
    assert np.allclose(NeuralDynamics(linear).transition(s, a), linear.transition(s, a), atol=1e-5)


def test_held_out_errors_are_less_than_half_of_the_linear_model(
    linear: LinearGaussianDynamics, fitted: NeuralDynamics
) -> None:
    corrected, plain = (open_loop(dynamics, *swinging(1)) for dynamics in (fitted, linear))
    assert np.all(corrected.error[:3] < 0.5 * plain.error[:3])
    assert np.all(corrected.error < corrected.holding_still)


def test_numpy_and_torch_states_of_any_batch_shape_step_alike(fitted: NeuralDynamics) -> None:
    rng = np.random.default_rng(0)
    s, a = rng.normal(size=(4, 5, fitted.layout.size)), rng.normal(size=(4, 5, 1))
    ahead = fitted.transition(s, a)
    assert ahead.dtype == np.float64
    assert np.allclose(ahead[2], fitted.transition(s[2], a[2]), atol=1e-6)
    tensor = torch.tensor(a, requires_grad=True)
    stepped = fitted.transition(torch.tensor(s), tensor)
    assert np.allclose(stepped.detach().numpy(), ahead, atol=1e-6)
    assert torch.autograd.grad(stepped.sum(), tensor)[0].abs().min() > 0


def test_the_past_moves_along_exactly(fitted: NeuralDynamics) -> None:
    s, a = np.float32(np.random.default_rng(0).normal(size=(5, fitted.layout.size))), np.ones((5, 1))
    ahead = fitted.transition(s, a)
    assert np.array_equal(ahead[:, 1], s[:, 0])
    assert np.array_equal(ahead[:, 2], a[:, 0])


def test_members_disagree_far_from_the_data(fitted: NeuralDynamics) -> None:
    data, far = np.zeros((1, 3)), np.array([[40.0, 20.0, 0.0]])
    a = np.zeros((1, 1))
    assert fitted.disagreement(far, a) > 10 * fitted.disagreement(data, a)


def test_the_same_seed_gives_the_same_network_and_no_global_generator_moves(linear: LinearGaussianDynamics) -> None:
    torch.manual_seed(5)
    before = torch.get_rng_state()
    options = NeuralOptions(members=2, hidden=8, steps=3)
    pair = [fit_neural_dynamics(*swinging(0), linear=linear, options=options, seed=1) for _ in range(2)]
    assert torch.equal(before, torch.get_rng_state())
    for one, other in zip(*(dynamics.state_dict().values() for dynamics in pair), strict=True):
        assert torch.equal(one, other)


def test_options_that_train_nothing_are_refused() -> None:
    with pytest.raises(ValueError, match="steps is 0"):
        NeuralOptions(steps=0)
