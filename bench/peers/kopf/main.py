"""The same work as every peer's: see bench/src/frameworks.rs for what the words on standard output mean.

Kopf keeps no objects unless an index asks for them, so one does: a reconcile of every peer can read all objects.
Its default handlers would write annotations into each object; `on.event` is the one that writes nothing by itself.
"""

import itertools
import os

import kopf

ROUND = int(os.environ["ROUND"])
reconciled = itertools.count(1)
written = itertools.count(1)


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_):
    settings.posting.enabled = False
    settings.batching.worker_limit = int(os.environ["WORKERS"])


@kopf.on.login()
def login(**kwargs):
    return kopf.login_with_kubeconfig(**kwargs)


@kopf.index("bench.flyball.dev", "v1", "widgets")
def widgets(namespace, name, body, **_):
    return {(namespace, name): body}


@kopf.on.event("bench.flyball.dev", "v1", "widgets")
async def reconcile(status, patch, **_):
    if ROUND == 0:
        tell("reconciled", next(reconciled))
    elif status.get("round") != ROUND:
        patch.status["round"] = ROUND
        patch.status["phase"] = "Ready"
        tell("written", next(written))


def tell(word, count):
    if count % 100 == 0:
        print(word, count, flush=True)


kopf.run(standalone=True, clusterwide=True)
