"""How a user asks what runs in a terminal to end."""

import signal
import threading


def hear(stop: threading.Event) -> None:
    """Has an event set by the signals that ask for the end, from here on.

    A closed terminal's is none where it is ignored, as by nohup.
    """
    asking = {signal.SIGINT, signal.SIGTERM}
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        asking.add(signal.SIGHUP)
    for number in asking:
        signal.signal(number, lambda *_: stop.set())
