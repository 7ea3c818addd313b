"""The `gymlog` command line: options and help; a command imports what it needs when it runs."""

import os
import sys
from pathlib import Path

import click

from gymlog.fleet.plan import FAULT_MEANINGS, Fault, Plan
from gymlog.span_groups import GymSpanGroup

__all__ = ["main"]

_FAULTS = "\n".join(f"  {fault:<11} {meaning}" for fault, meaning in FAULT_MEANINGS.items())
_COUNT = click.IntRange(min=1)


def _span_groups(_context: click.Context, _option: click.Parameter, spec: str) -> str:
    """Refuse names that are neither preset nor group: servers would only ignore them."""
    for name, nearest in GymSpanGroup.unknown(spec).items():
        hint = f" (did you mean {nearest!r}?)" if nearest else ""
        known = ", ".join([*GymSpanGroup.presets(), *sorted(GymSpanGroup.ALL_GROUPS)])
        raise click.BadParameter(f"{name!r} is no preset or group{hint}; known: {known}")
    return spec


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="gymlog")
def main() -> None:
    """Structured-log-first tracing for reinforcement-learning gyms."""


@main.command(epilog=f"\b\nFaults:\n{_FAULTS}\n\nExample: gymlog demo --rollouts 50 --out logs")
@click.option("--rollouts", type=_COUNT, default=20, show_default=True, help="How many to run.")
@click.option(
    "--concurrency", type=_COUNT, default=8, show_default=True, help="Rollouts in flight at a time."
)
@click.option("--turns", type=_COUNT, default=2, show_default=True, help="Model calls of each.")
@click.option("--workers", type=_COUNT, default=1, show_default=True, help="Processes per server.")
@click.option(
    "--out",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder of the logs; without it a new temporary one, which is kept.",
)
@click.option(
    "--span-groups",
    metavar="SPEC",
    envvar="NEMO_GYM_OTEL_SPAN_GROUPS",
    default="per_rollout",
    show_default=True,
    callback=_span_groups,
    help="Presets and groups; with `default` the whole run is one trace.",
)
@click.option(
    "--fault",
    "faults",
    type=click.Choice([str(fault) for fault in Fault]),
    multiple=True,
    help="Plant a fault; repeatable.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Repeats the latencies.")
@click.option("--telemetry/--no-telemetry", "has_telemetry", default=True, help="Write the logs?")
@click.option("--show/--no-show", "is_shown", default=True, help="Let reconstruct read the logs?")
@click.option("--latency-scale", type=click.FloatRange(min=0), default=1.0, hidden=True)
@click.option("--grace-seconds", type=click.FloatRange(min=0), default=10.0, hidden=True)
def demo(
    *,
    rollouts: int,
    concurrency: int,
    turns: int,
    workers: int,
    folder: Path | None,
    span_groups: str,
    faults: tuple[str, ...],
    seed: int,
    has_telemetry: bool,
    is_shown: bool,
    latency_scale: float,
    grace_seconds: float,
) -> None:
    """Run an example gym and show what its logs say.

    Starts four servers and a driver as processes of their own, runs rollouts through them, stops
    them, and lets `reconstruct` read the logs.
    """
    import tempfile

    from gymlog.fleet.demo import run_demo

    # An option that was given wins over the environment, which wins over the configuration.
    os.environ["NEMO_GYM_OTEL_SPAN_GROUPS"] = span_groups
    plan = Plan(
        folder=folder or Path(tempfile.mkdtemp(prefix="gymlog-demo-")),
        rollouts=rollouts,
        concurrency=concurrency,
        turns=turns,
        workers=workers,
        seed=seed,
        faults=frozenset(Fault(name) for name in faults),
        has_telemetry=has_telemetry,
        span_groups=span_groups,
        latency_scale=latency_scale,
        grace_seconds=grace_seconds,
    )
    sys.exit(run_demo(plan, is_shown=is_shown))


@main.command()
@click.option("--json", "is_json", is_flag=True, help="One JSON object instead of text.")
def config(*, is_json: bool) -> None:
    """Show the effective configuration of a process started in this environment.

    Each setting stands with its value and the variable that sets it. Values that are not accepted
    are listed with what is; secrets are not shown.
    """
    import json

    from gymlog.explain import explain

    explanation = explain(os.environ)
    if is_json:
        click.echo(json.dumps(explanation.as_json(), indent=2))
    else:
        click.echo(explanation.as_text())


if __name__ == "__main__":
    main()
