import { join } from "node:path";
import { beforeAll, expect, onTestFinished, test } from "vitest";
import type { AnyObject } from "../../../src/api/delegated-type.ts";
import { DELEGATION_LABEL, WHOLE_KEY } from "../../../src/api/keys.ts";
import type { Resource } from "../../../src/kube/resources.ts";
import { type ExternalDns, startExternalDns } from "../../support/engines/external-dns.ts";
import { ensurePrograms } from "../../support/engines/programs.ts";
import { afterFile } from "../../support/harness/after-file.ts";
import { useClients } from "../../support/harness/clients.ts";
import { hostCluster, memberCluster } from "../../support/harness/clusters.ts";
import { installDefinitions, removeDefinitions } from "../../support/harness/definitions.ts";
import { applyAll, kubectl } from "../../support/harness/kubectl.ts";
import { useLegation } from "../../support/harness/legation.ts";
import { freshNamespace } from "../../support/harness/namespace.ts";
import { eventuallyPasses } from "../../support/harness/wait.ts";
import { allowTypes, forbidTypes } from "../../support/legation/allow-types.ts";

useLegation();
const clients = useClients();
const GATEWAY = "gateway.networking.k8s.io";
const NETWORKING = "networking.k8s.io";
const TYPES = ["services", `ingresses.${NETWORKING}`, `gateways.${GATEWAY}`, `httproutes.${GATEWAY}`];
const WHOLE = { [WHOLE_KEY]: "true" };
const PATIENT = { timeoutMs: 90_000, intervalMs: 300 };
const ADDRESSES = { west: "192.0.2.1", east: "198.51.100.1" } as const;
const MEMBERS = ["west", "east"] as const;
type MemberName = (typeof MEMBERS)[number];

const resource = (group: string, plural: string, kind: string): Resource<AnyObject> => ({
  ...{ group, version: "v1", plural, kind },
  namespaced: true,
});
const services = resource("", "services", "Service");
const ingresses = resource(NETWORKING, "ingresses", "Ingress");
const gateways = resource(GATEWAY, "gateways", "Gateway");
const httpRoutes = resource(GATEWAY, "httproutes", "HTTPRoute");
let dns: ExternalDns;

beforeAll(async () => {
  const [host, west, east] = [hostCluster(), memberCluster("west"), memberCluster("east")];
  const joined = { host, members: { west, east } };
  const crds = join(await ensurePrograms("gateway-api", () => {}), "crds");
  for (const cluster of [host, west, east]) {
    for (const plural of ["gateways", "httproutes"]) {
      const file = join(crds, `${GATEWAY}_${plural}.yaml`);
      afterFile(() => removeDefinitions(cluster, file));
      await installDefinitions(cluster, file);
    }
  }
  afterFile(() => forbidTypes(TYPES, joined));
  await allowTypes(TYPES, joined);
  dns = await startExternalDns(host);
  afterFile(() => dns.stop());
}, 900_000);

function newNamespace(): Promise<string> {
  const all = [hostCluster(), memberCluster("west"), memberCluster("east")];
  return freshNamespace(all, { prefix: "names", labels: { [DELEGATION_LABEL]: "annotated" } });
}

/** Writes a copy's status as the member's own controller of the type does. */
async function report(member: MemberName, type: Resource<AnyObject>, namespace: string, status: object): Promise<void> {
  const name = "web";
  await eventuallyPasses(async () => {
    await clients()[member].patch(
      type,
      { namespace, name },
      { type: "merge", body: { status } },
      { subresource: "status" },
    );
  }, PATIENT);
}

/** Waits until external-dns has published these addresses of a name. */
async function resolves(name: string, addresses: readonly string[]): Promise<void> {
  await eventuallyPasses(() => {
    expect(dns.lookUp(name), dns.output().slice(-2000)).toEqual(addresses.length === 0 ? {} : { A: addresses });
  }, PATIENT);
}

const both = [ADDRESSES.west, ADDRESSES.east].toSorted();

/** Cuts a member off, sees its address leave the name when its node is NotReady, and come back. */
async function leavesAndReturns(name: string): Promise<void> {
  const { proxy } = memberCluster("west");
  await proxy.cut();
  onTestFinished(() => proxy.heal());
  await resolves(name, [ADDRESSES.east]);
  const ready = "jsonpath={.status.conditions[?(@.type=='Ready')].status}";
  expect(await kubectl(hostCluster(), ["get", "node", "legation-west", "-o", ready])).not.toBe("True");
  await proxy.heal();
  await resolves(name, both);
}

test("a name of a whole Service leads to the load balancers of all members that are not lost", async () => {
  const namespace = await newNamespace();
  const name = `${namespace}.example.org`;
  const annotations = { ...WHOLE, "external-dns.alpha.kubernetes.io/hostname": name };
  const spec = { type: "LoadBalancer", selector: { app: "web" }, ports: [{ port: 80 }] };
  await applyAll(hostCluster(), [
    { apiVersion: "v1", kind: "Service", metadata: { name: "web", namespace, annotations }, spec },
  ]);
  for (const member of MEMBERS)
    await report(member, services, namespace, { loadBalancer: { ingress: [{ ip: ADDRESSES[member] }] } });
  await resolves(name, both);
  await leavesAndReturns(name);
  await kubectl(hostCluster(), ["delete", "service", "web", "-n", namespace]);
  await resolves(name, []);
});

test("a name of an Ingress leads to the ingress controllers of all members that are not lost", async () => {
  const namespace = await newNamespace();
  const name = `${namespace}.example.org`;
  const backend = { service: { name: "web", port: { number: 80 } } };
  const rules = [{ host: name, http: { paths: [{ path: "/", pathType: "Prefix", backend }] } }];
  const metadata = { name: "web", namespace, annotations: WHOLE };
  await applyAll(hostCluster(), [
    { apiVersion: `${NETWORKING}/v1`, kind: "Ingress", metadata, spec: { ingressClassName: "members", rules } },
  ]);
  for (const member of MEMBERS)
    await report(member, ingresses, namespace, { loadBalancer: { ingress: [{ ip: ADDRESSES[member] }] } });
  await resolves(name, both);
  await leavesAndReturns(name);
  for (const member of MEMBERS) await report(member, ingresses, namespace, { loadBalancer: { ingress: null } });
  await resolves(name, []);
});

test("a name of an HTTPRoute leads to the Gateways of all members, once all accept the route", async () => {
  const namespace = await newNamespace();
  const name = `${namespace}.example.org`;
  const metadata = { name: "web", namespace, annotations: WHOLE };
  const apiVersion = `${GATEWAY}/v1`;
  const listeners = [{ name: "http", port: 80, protocol: "HTTP" }];
  const parentRef = { group: GATEWAY, kind: "Gateway", name: "web" };
  await applyAll(hostCluster(), [
    { apiVersion, kind: "Gateway", metadata, spec: { gatewayClassName: "members", listeners } },
    { apiVersion, kind: "HTTPRoute", metadata, spec: { hostnames: [name], parentRefs: [parentRef] } },
  ]);
  const accepted = (status: "True" | "False"): object => ({
    ...{ type: "Accepted", status, reason: status === "True" ? "Accepted" : "NoMatchingParent", message: "" },
    ...{ lastTransitionTime: new Date().toISOString(), observedGeneration: 1 },
  });
  const parents = (status: "True" | "False"): object => ({
    parents: [{ parentRef, controllerName: "example.com/gateways", conditions: [accepted(status)] }],
  });
  for (const member of MEMBERS) {
    await report(member, gateways, namespace, { addresses: [{ type: "IPAddress", value: ADDRESSES[member] }] });
  }
  await report("west", httpRoutes, namespace, parents("True"));
  await report("east", httpRoutes, namespace, parents("False"));
  await eventuallyPasses(async () => {
    const route = await clients().host.get(httpRoutes, { namespace, name: "web" });
    expect(route.status).toMatchObject({ parents: [{ parentRef, conditions: [{ status: "False" }] }] });
  }, PATIENT);
  expect(dns.lookUp(name)).toEqual({});
  await report("east", httpRoutes, namespace, parents("True"));
  await resolves(name, both);
  await leavesAndReturns(name);
});
