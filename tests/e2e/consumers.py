"""Members of consumer groups in a process of their own, for other tests to kill. Not a test.

``consumers.py BOOTSTRAP GROUP=TOPIC…`` runs one member of each group, prints ``READY`` when each of them owns
partitions, and reads on until it is killed.
"""

import sys
import threading
import time
from contextlib import closing

from lagwise_sandbox import clients

READY = "READY"


def _read(bootstrap: str, group: str, topic: str, errors: clients.ClientErrors, owning: set[str]) -> None:
    with closing(clients.consumer(bootstrap, group, f"{group}-1", errors)) as member:
        member.subscribe([topic], on_assign=lambda _, partitions: owning.add(group) if partitions else None)
        while True:
            member.consume(500, 0.2)


def main(bootstrap: str, *reads: str) -> None:
    errors = clients.ClientErrors()
    owning: set[str] = set()
    topics = dict(pair.split("=") for pair in reads)
    for group, topic in topics.items():
        threading.Thread(target=_read, args=(bootstrap, group, topic, errors, owning), daemon=True).start()
    while owning != topics.keys():
        time.sleep(0.05)
    sys.stdout.write(f"{READY}\n")
    sys.stdout.flush()
    threading.Event().wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
