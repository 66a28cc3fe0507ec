import { beforeAll, describe, expect, test } from "vitest";
import type { AnyObject } from "../../../src/api/delegated-type.ts";
import { DELEGATION_LABEL, WHOLE_KEY } from "../../../src/api/keys.ts";
import type { Stored } from "../../../src/api/kubernetes.ts";
import { conditionsOf, statusOf } from "../../../src/copies/object-status.ts";
import type { ClusterClient } from "../../../src/kube/client.ts";
import { events, type Resource, secrets } from "../../../src/kube/resources.ts";
import { auditEvents, isWrite } from "../../support/clusters/audit.ts";
import type { Cluster } from "../../support/clusters/types.ts";
import {
  type CertManager,
  installCertManager,
  removeCertManager,
  startCertManager,
} from "../../support/engines/cert-manager.ts";
import { afterFile } from "../../support/harness/after-file.ts";
import { useClients } from "../../support/harness/clients.ts";
import { hostCluster, memberCluster } from "../../support/harness/clusters.ts";
import { applyAll, kubectl } from "../../support/harness/kubectl.ts";
import { useLegation } from "../../support/harness/legation.ts";
import { freshNamespace } from "../../support/harness/namespace.ts";
import { eventually, eventuallyPasses } from "../../support/harness/wait.ts";
import { allowTypes, forbidTypes } from "../../support/legation/allow-types.ts";

// cert-manager runs in both members, and the host has its definitions alone.
useLegation();
const clients = useClients();
const GROUP = "cert-manager.io";
const TYPES = [`certificates.${GROUP}`, `issuers.${GROUP}`];
const patient = { timeoutMs: 120_000, intervalMs: 300 };
let inEast: CertManager;

const typeOf = (plural: string, kind: string): Resource<AnyObject> => ({
  group: GROUP,
  version: "v1",
  plural,
  kind,
  namespaced: true,
});
const certificates = typeOf("certificates", "Certificate");
const requests = typeOf("certificaterequests", "CertificateRequest");
const issuers = typeOf("issuers", "Issuer");

beforeAll(async () => {
  const [host, west, east] = [hostCluster(), memberCluster("west"), memberCluster("east")];
  const joined = { host, members: { west, east } };
  for (const cluster of [host, west, east]) {
    afterFile(() => removeCertManager(cluster));
    await installCertManager(cluster);
  }
  const inWest = await startCertManager(west);
  afterFile(() => inWest.stop());
  inEast = await startCertManager(east);
  afterFile(() => inEast.stop());
  afterFile(() => forbidTypes(TYPES, joined));
  await allowTypes(TYPES, joined);
}, 600_000);

function newNamespace(): Promise<string> {
  const all = [hostCluster(), memberCluster("west"), memberCluster("east")];
  return freshNamespace(all, { prefix: "certs", labels: { [DELEGATION_LABEL]: "annotated" } });
}

const WEST = { "legation.dev/clusters": "west" };

function issuer(annotations: object = {}, spec: object = { selfSigned: {} }): object {
  const metadata = { name: "own", annotations: { [WHOLE_KEY]: "true", ...annotations } };
  return { apiVersion: `${GROUP}/v1`, kind: "Issuer", metadata, spec };
}

function certificate(annotations: object = {}, more: object = {}): object {
  const metadata = { name: "web", labels: { app: "web" }, annotations: { [WHOLE_KEY]: "true", ...annotations } };
  const spec = { secretName: "web-tls", dnsNames: ["web.example.com"], issuerRef: { name: "own" }, ...more };
  return { apiVersion: `${GROUP}/v1`, kind: "Certificate", metadata, spec };
}

async function waitFor(cluster: Cluster, namespace: string, what: string, condition: string): Promise<void> {
  const args = ["wait", "-n", namespace, what, `--for=${condition}`, "--timeout=100s"];
  await kubectl(cluster, args, { timeoutMs: 110_000 });
}

function webIn(client: ClusterClient, namespace: string): Promise<Stored<AnyObject> | undefined> {
  return client.find(certificates, { namespace, name: "web" });
}

function conditionOf(object: AnyObject | undefined, type: string): object | undefined {
  return conditionsOf(statusOf(object))?.find((condition) => condition.type === type);
}

async function reasonsIn(namespace: string): Promise<string[]> {
  const { items } = await clients().host.list(events, { namespace });
  return items.map(({ reason = "" }) => reason);
}

/** Returns Legation's writes of a status on the host. */
async function statusWrites(namespace: string, name: string): Promise<number> {
  const found = await auditEvents(
    hostCluster(),
    (event) =>
      event.user.username.startsWith("system:serviceaccount:legation-system:") &&
      isWrite(event) &&
      event.objectRef?.subresource === "status" &&
      event.objectRef.namespace === namespace &&
      event.objectRef.name === name,
    [namespace],
  );
  return found.length;
}

describe("a Certificate of the host with its Issuer", () => {
  test("is issued by the member's cert-manager, until kubectl wait on the host says so", async () => {
    const namespace = await newNamespace();
    const { host, west, east } = clients();
    await applyAll(hostCluster(), [issuer(WEST), certificate(WEST)], ["-n", namespace]);
    await waitFor(hostCluster(), namespace, "certificate/web", "condition=Ready");
    await waitFor(hostCluster(), namespace, "issuer/own", "condition=Ready");
    const there = await webIn(west, namespace);
    await eventuallyPasses(async () => expect((await webIn(host, namespace))?.status).toEqual(there?.status), patient);
    expect((await webIn(host, namespace))?.status).toMatchObject({ revision: 1 });
    const { data = {} } = await west.get(secrets, { namespace, name: "web-tls" });
    expect(Object.keys(data).toSorted()).toEqual(["ca.crt", "tls.crt", "tls.key"]);
    for (const other of [host, east]) {
      expect(await other.find(secrets, { namespace, name: "web-tls" })).toBeUndefined();
    }
    expect(await webIn(east, namespace)).toBeUndefined();
    // cert-manager gives its requests the labels and annotations of the copy, which make none of them a copy.
    const { items } = await west.list(requests, { namespace });
    expect(items.map(({ metadata }) => metadata.labels)).toMatchObject([{ app: "web", [WHOLE_KEY]: "true" }]);
    expect(await reasonsIn(namespace)).toEqual([]);
    expect(await statusWrites(namespace, "web")).toBeLessThan(10);
  });

  test("is issued anew when its names change, and is not Ready for the new generation before", async () => {
    const namespace = await newNamespace();
    const { host, west } = clients();
    const spec = { privateKey: { rotationPolicy: "Always", algorithm: "ECDSA", size: 256 } };
    await applyAll(hostCluster(), [issuer(WEST), certificate(WEST, spec)], ["-n", namespace]);
    await waitFor(hostCluster(), namespace, "certificate/web", "condition=Ready");
    const before = await west.get(secrets, { namespace, name: "web-tls" });
    const ref = { namespace, name: "web" };
    await host.patch(certificates, ref, { type: "merge", body: { spec: { dnsNames: ["new.example.com"] } } });
    const seen: string[] = [];
    await eventually(
      async () => {
        const { status, metadata } = await host.get(certificates, ref);
        expect(metadata.generation).toBe(2);
        const ready = conditionOf({ status }, "Ready");
        const { revision } = statusOf({ status }) ?? {};
        seen.push(JSON.stringify({ revision, ready }));
        const isReady = expect.objectContaining({ status: "True", observedGeneration: 2 }).asymmetricMatch(ready);
        if (isReady) expect(revision).toBe(2);
        return isReady;
      },
      { ...patient, intervalMs: 50, what: "Ready for the second generation" },
    );
    const after = await west.get(secrets, { namespace, name: "web-tls" });
    expect(after.data?.["tls.key"]).not.toBe(before.data?.["tls.key"]);
    expect((await webIn(west, namespace))?.spec).toMatchObject({ dnsNames: ["new.example.com"], ...spec });
    expect(await reasonsIn(namespace)).toEqual([]);
  });

  test("leaves the member with its requests when it is deleted, and the Secret stays as cert-manager has it", async () => {
    const namespace = await newNamespace();
    const { west } = clients();
    await applyAll(hostCluster(), [issuer(WEST), certificate(WEST)], ["-n", namespace]);
    await waitFor(hostCluster(), namespace, "certificate/web", "condition=Ready");
    await kubectl(hostCluster(), ["delete", "-n", namespace, "certificate/web", "issuer/own", "--timeout=60s"]);
    expect(await webIn(west, namespace)).toBeUndefined();
    expect(await west.find(issuers, { namespace, name: "own" })).toBeUndefined();
    await eventuallyPasses(async () => expect((await west.list(requests, { namespace })).items).toEqual([]), patient);
    await west.get(secrets, { namespace, name: "web-tls" });
  });

  test("is Ready when it is in both members, and unknown while one has no cert-manager", async () => {
    const namespace = await newNamespace();
    const { host, west, east } = clients();
    await inEast.stop();
    await applyAll(hostCluster(), [issuer(), certificate()], ["-n", namespace]);
    await eventuallyPasses(async () => {
      expect(conditionOf(await webIn(host, namespace), "Ready")).toMatchObject({
        status: "Unknown",
        message: expect.stringMatching(/^east: no such condition yet; west: True, Ready, /),
      });
    }, patient);
    inEast = await startCertManager(memberCluster("east"));
    await waitFor(hostCluster(), namespace, "certificate/web", "condition=Ready");
    await waitFor(hostCluster(), namespace, "issuer/own", "condition=Ready");
    const here = await webIn(host, namespace);
    expect(here?.status).toMatchObject({ revision: 1 });
    expect(conditionOf(here, "Ready")).toMatchObject({ reason: "Ready", observedGeneration: 1 });
    const keys = await Promise.all([west, east].map((member) => member.get(secrets, { namespace, name: "web-tls" })));
    expect(new Set(keys.map(({ data }) => data?.["tls.key"]))).toHaveLength(2);
    await kubectl(hostCluster(), ["delete", "-n", namespace, "certificate/web", "--timeout=60s"]);
    for (const member of [west, east]) expect(await webIn(member, namespace)).toBeUndefined();
  });
});

test("an Issuer that the host's own cert-manager works on is left to it, and its author is told", async () => {
  const namespace = await newNamespace();
  const { west } = clients();
  const secret = { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } };
  await applyAll(memberCluster("west"), [secret]);
  const authority = { ...issuer(), metadata: { name: "root" } };
  const ca = { secretName: "ca", isCA: true, commonName: "ca", issuerRef: { name: "root" } };
  const root = { ...certificate({}, ca), metadata: { name: "ca" } };
  await applyAll(memberCluster("west"), [authority, root], ["-n", namespace]);
  await waitFor(memberCluster("west"), namespace, "certificate/ca", "condition=Ready");
  // The host has no such Secret, so its cert-manager says the opposite.
  const onHost = await startCertManager(hostCluster());
  try {
    await applyAll(hostCluster(), [issuer(WEST, { ca: { secretName: "ca" } })], ["-n", namespace]);
    await eventually(async () => (await reasonsIn(namespace)).includes("StatusContested"), patient);
    const { items } = await clients().host.list(events, { namespace });
    const told = items.find(({ reason }) => reason === "StatusContested");
    expect(told?.message).toContain("another manager keeps changing the status");
    expect(await statusWrites(namespace, "own")).toBeLessThan(10);
    expect(conditionOf(await west.find(issuers, { namespace, name: "own" }), "Ready")).toMatchObject({
      status: "True",
    });
  } finally {
    await onHost.stop();
  }
});
