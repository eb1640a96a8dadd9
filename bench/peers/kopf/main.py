"""The same work as every peer's: see bench/src/frameworks.rs for what the words on standard output mean.

Kopf keeps no objects unless an index asks for them, so one does where nothing is written: a reconcile of every peer can
read all objects. Its default handlers would write annotations into each object; `on.event` writes nothing by itself.

A worker is one object's, and stays with it for `idle_timeout`. A limit of workers and an index exclude each other: no
handler runs before all objects are indexed, and none is indexed before its worker has begun. So workers are limited where
objects are written, and leave at once when there is nothing to do.
"""

import itertools
import os

import kopf

ROUND = int(os.environ["ROUND"])
indexed = itertools.count(1)
reconciled = itertools.count(1)
written = itertools.count(1)


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_):
    settings.posting.enabled = False
    if ROUND:
        settings.queueing.worker_limit = int(os.environ["WORKERS"])
        settings.queueing.idle_timeout = 0.01


@kopf.on.login()
def login(**kwargs):
    return kopf.login_with_kubeconfig(**kwargs)


if ROUND == 0:

    @kopf.index("bench.flyball.dev", "v1", "widgets")
    def widgets(namespace, name, body, **_):
        tell("indexed", next(indexed))
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
