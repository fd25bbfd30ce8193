"""`quadrant` as it runs in a pod: the service account that it finds is in a folder of ours.

python -m hack.benchmarks.inpod FOLDER URL COMMAND [OPTION...]
"""

import os
import sys
from pathlib import Path
from urllib.parse import urlsplit


def main() -> None:
    """Be the process that the arguments ask for."""
    folder, url, *sys.argv[1:] = sys.argv[1:]
    place = urlsplit(url)
    os.environ["KUBERNETES_SERVICE_HOST"] = place.hostname or ""
    os.environ["KUBERNETES_SERVICE_PORT"] = str(place.port)
    # No file of whoever runs the benchmark is to be found first.
    os.environ.pop("KUBECONFIG", None)
    os.environ["HOME"] = folder
    # Imported here: what an import costs is part of what is measured, in the program's own order.
    from driver.kube import account  # noqa: PLC0415

    account.FOLDER = Path(folder)
    from driver.cli.entry import main as quadrant  # noqa: PLC0415

    quadrant()


if __name__ == "__main__":
    main()
