"""Whether a server answers, found out soon: machines without a network are common and must not wait."""

import urllib.error
import urllib.request
from threading import Thread

WITHIN_S = 4.0


def why_unreachable(url: str) -> OSError | None:
    """None when the server of `url` answers anything within WITHIN_S seconds, else why not. Proxies are used.

    Asked in a thread, because name servers that do not answer block longer than any socket timeout;
    a thread that is still waiting is left to end by itself.
    """
    reasons: list[OSError | None] = []
    thread = Thread(target=lambda: reasons.append(_asked(url)), daemon=True)
    thread.start()
    thread.join(WITHIN_S + 1)
    return reasons[0] if reasons else TimeoutError(f"no answer within {WITHIN_S:g} s")


def _asked(url: str) -> OSError | None:
    try:
        urllib.request.urlopen(urllib.request.Request(url, method="HEAD"), timeout=WITHIN_S).close()  # noqa: S310 - from TFDS or our table
    except urllib.error.HTTPError:
        return None  # a refusal is an answer
    except OSError as error:  # urllib's errors are OSErrors
        return error
    return None
