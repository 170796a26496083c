"""The answer of ``lagwise size`` as files to take away: the same that the Capacity page hands over."""

from pathlib import Path

import click

from lagwise_app.cli.size_answer import SizingAnswer


def write(answer: SizingAnswer, html_file: Path | None, csv_file: Path | None) -> None:
    """Write the files that are asked for, and say so where it is not in the way of the answer. Raises OSError, and
    ModuleNotFoundError where the charts of the report cannot be drawn."""
    from lagwise_dashboard.report.capacity_report import CapacityReport

    report = CapacityReport(
        advice=answer.advice,
        missing=answer.missing,
        sources=answer.sources,
        row=answer.row,
        outlook=answer.outlook,
        what_if=answer.what_if,
        ramp=answer.ramp,
        target_utilisation=answer.target_utilisation,
        now=answer.now,
    )
    if csv_file is not None:
        from lagwise_dashboard.report.csv_file import as_csv

        csv_file.write_text(as_csv(report), encoding="utf-8", newline="")
        click.echo(f"wrote {csv_file}", err=True)
    if html_file is not None:
        from lagwise_dashboard.report.html_file import as_html

        html_file.write_text(as_html(report), encoding="utf-8")
        click.echo(f"wrote {html_file}", err=True)
