"""Starts the window, or the same chat in the terminal where there is no screen."""

import argparse
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from app import early
from app.text import start_words

EXIT_INTERRUPTED = 130
EXIT_FAILED = 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Start the program; returns its exit status."""
    if not early.is_version_supported(sys.version_info[:2]):
        _say(start_words.python_too_old(sys.version.split()[0]))
        return 1
    options = _parse(sys.argv[1:] if arguments is None else arguments)
    from app.display import display_problem
    from app.state.folders import app_folders

    early.speak(os.environ)
    log_path = app_folders(os.environ).crash_log
    crash_log = early.keep_crash_log(log_path)
    try:
        problem = "" if options.terminal else display_problem(os.environ)
        if problem:
            _say(start_words.no_screen(problem))
        if options.terminal or problem:
            return _chat_in_terminal(options)
        from app.main import StartOptions, run

        return run(
            StartOptions(
                folder=_absolute(options.folder),
                dropped=_absolute(options.path),
                is_welcome_wanted=True,
                is_demo_wanted=not options.no_demo,
                runtime_arguments=tuple(_runtime_arguments(options)),
            )
        )
    except KeyboardInterrupt:
        # Ctrl+C while the window is only being imported; later it closes the window.
        return EXIT_INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the entry point; started by an icon there is no terminal
        from app.last_words import tell_of_failure

        tell_of_failure(error, log_path)
        return EXIT_FAILED
    finally:
        if crash_log is not None:
            early.close_crash_log(crash_log)


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="larder", description="Runs Mixture-of-Experts language models on this PC."
    )
    path_help = "a model folder to look at, as if dropped; of a prepared one its manifest does too"
    parser.add_argument("path", nargs="?", help=path_help)
    parser.add_argument("--version", action="store_true", help="print the version and leave")
    parser.add_argument("--folder", metavar="PATH", help="a model folder to load")
    parser.add_argument("--no-demo", action="store_true", help="do not show the demo model")
    parser.add_argument("--terminal", action="store_true", help="chat in this terminal")
    # For developers: what the runtime runs on, passed on as it is.
    for name in ("--engine", "--script", "--rate"):
        parser.add_argument(name, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.version:
        from importlib.metadata import version

        if sys.stdout is not None:
            sys.stdout.write(f"larder {version('larder')}\n")
        parser.exit()
    return options


def _runtime_arguments(options: argparse.Namespace) -> list[str]:
    """Return what the runtime is told of our arguments."""
    given = {"--engine": options.engine, "--script": options.script, "--rate": options.rate}
    return [word for name, value in given.items() if value is not None for word in (name, value)]


def _chat_in_terminal(options: argparse.Namespace) -> int:
    """Run the terminal's chat as a process of its own: the window never imports the runtime."""
    from app.link.interpreter import module_command, module_environment
    from app.state.folders import demo_folder

    folder = _absolute(options.folder) or str(demo_folder(os.environ))
    if not options.folder and not Path(folder).is_dir():
        _say(start_words.no_demo(folder))
        return 1
    command = [*module_command("runtime.cli"), "chat", folder, *_runtime_arguments(options)]
    # Ctrl+C reaches the chat as well, where it stops an answer. It must not end this process, which
    # would take the chat along; a handler is not inherited, while ignoring the signal would be.
    before = signal.signal(signal.SIGINT, lambda _number, _frame: None)
    try:
        return subprocess.call(command, env=module_environment(os.environ))
    finally:
        signal.signal(signal.SIGINT, before)


def _absolute(folder: str | None) -> str:
    return str(Path(folder).expanduser().absolute()) if folder else ""


def _say(text: str) -> None:
    """Write a sentence to the error stream, if this process has one."""
    if sys.stderr is not None:
        sys.stderr.write(f"larder: {text}\n")


if __name__ == "__main__":
    sys.exit(main())
