"""The slowest functions of a world whose latents are not Gaussian, solved numerically, and what they do to linear R².

Let p be the law of a latent and (y, y') a stationary, reversible pair of it. Among all white h, alignment is best at
the slowest functions of the pair: the eigenfunctions of f ↦ E[f(y') | y] with the largest eigenvalues (the same for
each latent where latents are independent). Only a Gaussian makes them linear; elsewhere the best linear R² of a latent
from the optimal encoder is corr(y, f_1(y))². Three worlds have the law p:

- *langevin*: a diffusion whose stationary law is p. Its generator is L f = (p f')' / p, and its eigenfunctions solve
  the Sturm-Liouville problem (p f')' = -λ p f; they are the same whatever the time between the views. For a Gaussian
  L f = f'' - x f', which is the Ornstein-Uhlenbeck process, with the Hermite polynomials.
- *additive*: y = ρz + √(1-ρ²) η and y' = ρz + √(1-ρ²) η', where z, η, η' have law p, as in the paper's experiment
  (Klindt, LeCun, Balestriero, arXiv 2605.26379). The views then have another law than p unless p is Gaussian.
- *copula*: Gaussian pairs, each value mapped to p. The slowest function is the map's inverse, F_Gauss⁻¹(F_p(y)).

Heavy tails have no slowest function: for the Laplace law the spectrum of L is continuous from λ = 1/2 on, for
α < 1 there is not even a gap above 0, and ever slower functions live ever farther out. The law is therefore cut
where the probability of what lies beyond is ``tail``; for α > 1 the result does not depend on it.
"""

from dataclasses import dataclass

import numpy as np
import scipy.linalg
import scipy.stats

from worldmodel.stats.laws import distribution, law_name, shape_of


@dataclass(frozen=True)
class Cells:
    """A law cut into cells.

    Attributes:
        edges: (K + 1,), rising.
        x: (K,), a point in each cell.
        mass: (K,), the probability of each cell; they sum to 1.
    """

    edges: np.ndarray
    x: np.ndarray
    mass: np.ndarray


@dataclass(frozen=True)
class SlowModes:
    """The functions of a pair that keep most of their correlation, slowest first; constants are left out.

    Attributes:
        cells: where the functions are known.
        values: (k,) rates λ for the langevin world, correlations μ across the pair for the additive one.
        functions: (K, k), orthonormal under the cells' masses; the sign makes the correlation with x positive.
    """

    cells: Cells
    values: np.ndarray
    functions: np.ndarray

    @property
    def linear_r2(self) -> float:
        """R² of y from the best linear map of the slowest function, under the law of the views."""
        return weighted_r2(self.cells.x, self.functions[:, 0], self.cells.mass)

    def slowest(self, y: np.ndarray) -> np.ndarray:
        """Evaluate the slowest function at y (...,); beyond the cells it keeps its last value."""
        return np.interp(y, self.cells.x, self.functions[:, 0])


def langevin_modes(law: str, cells: int = 400, tail: float = 1e-6) -> SlowModes:
    """Solve the Sturm-Liouville problem (p f')' = -λ p f, with p f' = 0 at the ends, for a law.

    Integrated once, it reads p f'(x) = -λ ∫_{-∞}^x p f. With masses w of cells, their cumulative sums W_e at inner
    edges and resistances r_e = ∫ dx / p between neighbours, it becomes B v = λ^(-1/2) u with v = √w f and
    B_ei = √r_e (1[i ≤ e] - W_e) √w_i: the slowest modes are the largest singular values, which come out accurately
    even where cells are tiny. The error falls with the square of the cells' size.

    Args:
        law: name of a law (:mod:`worldmodel.stats.laws`).
        cells: K; all K - 1 modes are returned.
        tail: probability that is cut off.
    """
    grid = law_cells(law, cells, tail)
    density = distribution(law).pdf(grid.edges[1:-1])
    resistance = np.diff(grid.x) / density
    left = np.tri(cells - 1, cells) - np.cumsum(grid.mass)[:-1, None]
    matrix = np.sqrt(resistance)[:, None] * left * np.sqrt(grid.mass)
    _, singular, right = np.linalg.svd(matrix, full_matrices=False)
    return _modes(grid, singular**-2.0, right.T)


def additive_modes(law: str, rho: float, cells: int = 300, tail: float = 1e-6, points: int = 4) -> SlowModes:
    """Find the slowest functions of two views y = ρz + √(1-ρ²) η of one parent z, all of one law.

    Args:
        law: of z and of the noises.
        rho: correlation of the parent with each view; that of the views is ρ².
        cells: of the views.
        tail: probability of the parent, and of the noise, that is cut off.
        points: of the parent per cell.

    Raises:
        ValueError: ρ outside (0, 1).
    """
    if not 0 < rho < 1:
        raise ValueError(f"rho is {rho:.3g}; it must lie between 0 and 1")
    noise = np.sqrt(1 - rho**2)
    parent = law_cells(law, cells * points, tail)
    edges = (rho + noise) * law_cells(law, cells, tail).edges
    reach = (edges - rho * parent.x[:, None]) / noise
    channel = np.diff(distribution(law).cdf(reach), axis=1)  # P(view in cell | parent)
    channel /= channel.sum(1, keepdims=True)
    mass = np.maximum(parent.mass @ channel, 1e-300)
    root = np.sqrt(parent.mass)[:, None] * channel / np.sqrt(mass)  # its Gram matrix is P(y, y') / √(mass mass')
    values, vectors = scipy.linalg.eigh(root.T @ root)
    grid = Cells(edges, (edges[1:] + edges[:-1]) / 2, mass / mass.sum())
    return _modes(grid, values[-2::-1], vectors[:, -2::-1])


def law_cells(law: str, cells: int, tail: float) -> Cells:
    """Cut a law into symmetric cells, equal in x for light tails, and in |x|^α, or |x|^(1/4), for heavy ones.

    Raises:
        ValueError: fewer than 8 cells, or a tail outside (0, 0.1).
    """
    if cells < 8 or not 0 < tail < 0.1:
        raise ValueError(f"{cells} cells and a tail of {tail:.3g}: take at least 8 cells and a tail below 0.1")
    known = distribution(law)
    reach, power = (
        float(known.isf(tail / 2)),
        min(4.0, max(1.0, 1 / shape_of(law))),
    )  # more, and none of the law lies in the middle
    s = np.linspace(-1, 1, cells + 1)
    edges = reach * np.sign(s) * np.abs(s) ** power
    middle = (s[1:] + s[:-1]) / 2
    below = known.cdf(-np.abs(edges))  # from the nearer tail: no cell's probability is lost in rounding
    mass = np.where(edges[1:] <= 0, np.diff(below), -np.diff(below))
    across = (edges[:-1] < 0) & (edges[1:] > 0)
    mass[across] = 1 - below[:-1][across] - below[1:][across]
    return Cells(edges, reach * np.sign(middle) * np.abs(middle) ** power, mass / mass.sum())


def gaussianised_r2(law: str, cells: int = 4000, tail: float = 1e-9) -> float:
    """R² of x from F_Gauss⁻¹(F(x)), the one increasing map that makes a latent of this law Gaussian.

    It is the optimum of a copula world, and where the embedding must be Gaussian whatever the pairs are.
    """
    grid = law_cells(law_name(law), cells, tail)
    return weighted_r2(grid.x, scipy.stats.norm.ppf(np.cumsum(grid.mass) - grid.mass / 2), grid.mass)


def weighted_r2(x: np.ndarray, f: np.ndarray, mass: np.ndarray) -> float:
    """Squared correlation of x and f (K,) under the masses (K,)."""
    x, f = x - mass @ x, f - mass @ f
    return float((mass @ (x * f)) ** 2 / ((mass @ x**2) * (mass @ f**2)))


def _modes(grid: Cells, values: np.ndarray, vectors: np.ndarray) -> SlowModes:
    functions = vectors / np.sqrt(grid.mass)[:, None]
    towards = np.sign((grid.mass * grid.x) @ functions)
    return SlowModes(grid, values, functions * np.where(towards < 0, -1.0, 1.0))
