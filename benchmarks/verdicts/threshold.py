"""A fixed threshold on the lag of a group, as an exporter's metric and one line of alerting rule give it.

The lag is the sum of end − committed over the partitions for which both are known, as kafka_exporter has it since it
leaves out what was never committed; nothing is floored at 0.
"""

from benchmarks.verdicts.seen import ALARM, QUIET, UNKNOWN, Sample


class Threshold:
    """Lag above so many records."""

    def __init__(self, records: int) -> None:
        self.name = f"lag > {records:,}"
        self._records = records
        self._lags: dict[str, int] = {}

    def see(self, sample: Sample) -> None:
        self._lags = {}
        for pair, reading in sample.readings.items():
            if reading.committed is not None and reading.high_watermark is not None:
                lag = reading.high_watermark - reading.committed
                self._lags[pair.group] = self._lags.get(pair.group, 0) + lag

    def says(self, group: str) -> str:
        if group not in self._lags:
            return UNKNOWN
        return ALARM if self._lags[group] > self._records else QUIET
