"""Measuring by turns."""

from worldmodel.scripts.speed.turns import by_turns, times_faster


def test_ratios_are_taken_within_a_round_and_the_first_round_is_not_kept() -> None:
    order: list[str] = []
    clock = iter([9.0, 9.0, 1.0, 3.0, 2.0, 8.0])

    def measure(name: str) -> float:
        order.append(name)
        return next(clock)

    ms = by_turns({name: lambda name=name: measure(name) for name in ("ours", "theirs")}, 2, "")  # type: ignore[misc]
    assert order == ["ours", "theirs"] * 3
    assert ms == {"ours": [1.0, 2.0], "theirs": [3.0, 8.0]}
    assert times_faster(ms["ours"], ms["theirs"]) == [3.0, 4.0]
