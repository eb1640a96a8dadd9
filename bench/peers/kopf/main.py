"""The same work as every peer's: see bench/src/frameworks.rs for the words on standard output.

Kopf keeps no objects unless an index asks for them, so one does where nothing is written: a reconcile of every peer can
read all objects. Its default handlers would write annotations into each object; `on.event` writes nothing by itself.

A worker is one object's, and stays with it for `idle_timeout`. A limit of workers and an index exclude each other: no
handler runs before all objects are indexed, and none is indexed before its worker has begun. So workers are limited where
objects are written, and leave at once when there is nothing to do.

Where a child is applied, two other kinds are indexed; each kind has workers of its own. Kopf has no client for children, so
aiohttp, which it uses itself, sends the apply.
"""

import base64
import itertools
import json
import os
import ssl
import tempfile

import aiohttp
import kopf

ROUND = int(os.environ["ROUND"])
HAS_CHILD = os.environ.get("WORK") == "child"
CONTACT = "bench.flyball.dev/contact"
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
    connection = kopf.login_with_kubeconfig(**kwargs)
    if HAS_CHILD:
        children.connect(connection)
    return connection


class Children:
    """Applies children over connections of its own."""

    def connect(self, connection):
        self.server = connection.server
        self.context = ssl.create_default_context(
            cafile=connection.ca_path,
            cadata=connection.ca_data and base64.b64decode(connection.ca_data).decode(),
        )
        if connection.certificate_data:
            with tempfile.NamedTemporaryFile() as pem:
                for data in (connection.certificate_data, connection.private_key_data):
                    pem.write(base64.b64decode(data) + b"\n")
                pem.flush()
                self.context.load_cert_chain(pem.name)
        elif connection.certificate_path:
            self.context.load_cert_chain(connection.certificate_path, connection.private_key_path)
        self.headers = {"Content-Type": "application/apply-patch+yaml"}
        if connection.token:
            self.headers["Authorization"] = f"Bearer {connection.token}"
        self.session = None

    async def apply(self, child):
        if self.session is None:
            connector = aiohttp.TCPConnector(ssl=self.context, limit=0)
            self.session = aiohttp.ClientSession(connector=connector, headers=self.headers)
        meta = child["metadata"]
        url = f"{self.server}/api/v1/namespaces/{meta['namespace']}/configmaps/{meta['name']}"
        params = {"fieldManager": "bench", "force": "true"}
        async with self.session.patch(url, params=params, data=json.dumps(child)) as response:
            response.raise_for_status()
            await response.read()


children = Children()


if ROUND == 0:

    @kopf.index("bench.flyball.dev", "v1", "widgets")
    def widgets(namespace, name, body, **_):
        tell("indexed", next(indexed))
        return {(namespace, name): body}


if HAS_CHILD:

    @kopf.index("", "v1", "secrets")
    def secrets(namespace, name, body, **_):
        return {(namespace, name): dict(body.get("data") or {})}

    @kopf.index("", "v1", "serviceaccounts")
    def accounts(namespace, name, meta, **_):
        return {(namespace, name): dict(meta.get("annotations") or {})}


async def apply_child(body, indexes):
    """Reads a Secret and a ServiceAccount from the indexes, and applies a ConfigMap of both."""
    meta = body["metadata"]
    team = (meta["namespace"], meta["labels"]["app.kubernetes.io/part-of"])
    (secret,), (account,) = indexes["secrets"][team], indexes["accounts"][team]
    child = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"namespace": meta["namespace"], "name": meta["name"]},
        "data": {
            "round": str(ROUND),
            "image": body["spec"]["image"],
            "token": base64.b64decode(secret["token"]).decode(),
            "contact": account[CONTACT],
        },
    }
    kopf.append_owner_reference(child, owner=body)
    await children.apply(child)


@kopf.on.event("bench.flyball.dev", "v1", "widgets")
async def reconcile(body, status, patch, **kwargs):
    if ROUND == 0:
        tell("reconciled", next(reconciled))
    elif status.get("round") != ROUND:
        if HAS_CHILD:
            await apply_child(body, kwargs)
        patch.status["round"] = ROUND
        patch.status["phase"] = "Ready"
        tell("written", next(written))


def tell(word, count):
    if count % 100 == 0:
        print(word, count, flush=True)


kopf.run(standalone=True, clusterwide=True)
