"""What every command line shares: typed options, one clear line for bad input, the versions behind a result."""

import faulthandler
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import tyro
from rich.console import Console
from rich.markup import escape

_LOG_WIDTH = 160  # columns, where output goes to a file or a pipe
console = Console()
if not console.is_terminal:
    console.width = _LOG_WIDTH


def run(main: Callable[..., Any], name: str, arguments: Sequence[str] | None = None) -> None:
    """Call ``main`` with the options of the command line; end bad input in one line and exit code 2.

    Args:
        main: a function whose arguments are the options.
        name: the command, as the user types it.
        arguments: what the user typed after it (default: those of the process).

    Set ``WORLDMODEL_TRACEBACK=1`` to see where an error was raised.
    """
    _name_crashes()
    warnings.showwarning = _show_warning
    warnings.filterwarnings("ignore", message="A worker stopped while some jobs")  # loky renews workers that grow
    with one_line_for_errors(name):
        tyro.cli(main, prog=name, args=arguments)


@contextmanager
def one_line_for_errors(name: str) -> Iterator[None]:
    """End the process with one line and exit code 2 where something is wrong that the user can mend."""
    try:
        yield
    except (ValueError, OSError, RuntimeError, ImportError) as error:
        if os.environ.get("WORLDMODEL_TRACEBACK"):
            raise
        Console(stderr=True).print(f"[bold red]{name}:[/] {escape(str(error))}", highlight=False, soft_wrap=True)
        sys.exit(2)
    except KeyboardInterrupt:
        Console(stderr=True).print(f"{name}: interrupted; the same command goes on from here")
        sys.exit(130)


def _name_crashes() -> None:
    """Have a crash of the interpreter print where it happened; what the user or a test runner set up is kept."""
    if faulthandler.is_enabled():  # by PYTHONFAULTHANDLER, or by pytest, whose file outlives the standard error of now
        return
    # Where standard error is none, is closed, or is nothing that the system writes to, commands run all the same.
    with suppress(ValueError, OSError, AttributeError, RuntimeError):
        faulthandler.enable()


def _show_warning(message: Warning | str, category: type[Warning], *where: Any, **options: Any) -> None:
    Console(stderr=True).print(f"[yellow]{category.__name__}:[/] {message}", highlight=False, soft_wrap=True)


def run_folder(out: Path | None, default: str) -> Path:
    """Return the output folder, made and writable, before any long work starts."""
    folder = out if out is not None else Path("runs") / default
    folder.mkdir(parents=True, exist_ok=True)
    if not os.access(folder, os.W_OK):
        raise ValueError(f"{folder} is not writable: choose another folder with --out")
    return folder
