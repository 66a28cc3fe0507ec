import { randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { type Agent, request } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect } from "node:tls";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import type { KubeNode, Stored } from "../../src/api/kubernetes.ts";
import { configMaps, nodes } from "../../src/kube/resources.ts";
import { Authority, type KeyAndCertificate } from "../support/clusters/pki.ts";
import { afterFile } from "../support/harness/after-file.ts";
import { useClients } from "../support/harness/clients.ts";
import { hostCluster } from "../support/harness/clusters.ts";
import { kubectl } from "../support/harness/kubectl.ts";
import { useLegation } from "../support/harness/legation.ts";
import { freshNamespace } from "../support/harness/namespace.ts";
import { eventually, eventuallyPasses } from "../support/harness/wait.ts";

const AUTHENTICATION = { namespace: "kube-system", name: "extension-apiserver-authentication" };
// The authorizer caches a denial for half a minute.
const patient = { timeoutMs: 90_000 };
const PATHS = [
  "/healthz",
  "/pods",
  "/metrics",
  "/metrics/resource",
  "/containerLogs/default/web/main",
  "/exec/default/web/main",
];

/** A caller's credentials. */
interface Caller {
  readonly token?: string;
  readonly certificate?: KeyAndCertificate;
  readonly agent?: Agent;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

interface Answer {
  readonly status: number | undefined;
  readonly text: string;
}

/** Requests a virtual node as an API server would. */
function ask(port: number, path: string, caller: Caller = {}): Promise<Answer> {
  const { token, certificate, agent, method = "GET" } = caller;
  const headers = { ...caller.headers, ...(token === undefined ? {} : { authorization: `Bearer ${token}` }) };
  const identity = certificate === undefined ? {} : { cert: certificate.certificate, key: certificate.key };
  const options = { host: "127.0.0.1", port, path, method, headers, agent, rejectUnauthorized: false, ...identity };
  return new Promise((resolve, reject) => {
    const asked = request(options, (response) => {
      let text = "";
      response.on("data", (chunk: Buffer) => {
        text += chunk.toString();
      });
      response.on("end", () => resolve({ status: response.statusCode, text }));
    });
    asked.on("upgrade", (response, socket) => {
      socket.destroy();
      resolve({ status: response.statusCode, text: "" });
    });
    asked.on("error", reject);
    asked.end();
  });
}

/** Returns the kubelet client certificate of the host's API server. */
function apiServersOwn(): KeyAndCertificate {
  const read = (file: string): string => readFileSync(join(hostCluster().directory, "pki", file), "utf8");
  return { certificate: read("kubelet-client.crt"), key: read("kubelet-client.key") };
}

function portOf(node: Stored<KubeNode> | undefined): number | undefined {
  return node?.status?.daemonEndpoints?.kubeletEndpoint?.Port;
}

const folder = mkdtempSync(join(tmpdir(), "legation-kubelet-"));
const [certFile, keyFile] = [join(folder, "tls.crt"), join(folder, "tls.key")];
let trusted: string;
// Before the controller reads it.
beforeAll(() => useServingCertificate());
afterAll(() => rmSync(folder, { recursive: true }));

/** Writes a certificate of a new authority where the controller reads it. */
async function useServingCertificate(): Promise<void> {
  const authority = await Authority.create("serving");
  const made = await authority.issue({ commonName: "nodes", usage: "serverAuth", addresses: ["127.0.0.1"] });
  writeFileSync(certFile, made.certificate);
  writeFileSync(keyFile, made.key);
  trusted = authority.pem;
}

describe("the kubelet API of a virtual node", () => {
  const running = useLegation({
    controllerFlags: [`--kubelet-cert-file=${certFile}`, `--kubelet-key-file=${keyFile}`],
  });
  const clients = useClients();
  let port: number;
  let elsewhere: number;
  let namespace: string;
  let stranger: Authority;

  /** Connects as an API server that verifies kubelets. Returns the fingerprint of a trusted certificate. */
  function verified(): Promise<string | undefined> {
    return new Promise((resolve) => {
      const socket = connect({ host: "127.0.0.1", port, ca: trusted }, () => {
        const { fingerprint256 } = socket.getPeerCertificate();
        socket.destroy();
        resolve(fingerprint256);
      });
      socket.on("error", () => resolve(undefined));
    });
  }

  const published = (name: string): Promise<number> =>
    eventually(async () => portOf(await clients().host.find(nodes, { name: `legation-${name}` })), { what: name });

  beforeAll(async () => {
    // Ports of an earlier run may still be published: only an answering port is this run's.
    await eventuallyPasses(async () => {
      [port, elsewhere] = [await published("west"), await published("east")];
      expect((await ask(port, "/healthz")).status).toBe(401);
      expect((await ask(elsewhere, "/healthz")).status).toBe(401);
    }, patient);
    namespace = await freshNamespace(hostCluster(), { prefix: "callers", onFinished: afterFile });
    stranger = await Authority.create("somebody else");
  });

  /** Returns a token of a new service account with these rights. */
  async function tokenOf(prefix: string, rights?: { verbs: string; resource: string; node: string }): Promise<string> {
    const host = hostCluster();
    const account = `${prefix}-${randomBytes(4).toString("hex")}`;
    await kubectl(host, ["-n", namespace, "create", "serviceaccount", account]);
    if (rights !== undefined) {
      const name = `${namespace}-${account}`;
      onTestFinished(async () => {
        await kubectl(host, ["delete", `clusterrole/${name}`, `clusterrolebinding/${name}`]);
      });
      const { verbs, resource, node } = rights;
      const rule = [`--verb=${verbs}`, `--resource=${resource}`, `--resource-name=${node}`];
      await kubectl(host, ["create", "clusterrole", name, ...rule]);
      const subject = `--serviceaccount=${namespace}:${account}`;
      await kubectl(host, ["create", "clusterrolebinding", name, `--clusterrole=${name}`, subject]);
    }
    return (await kubectl(host, ["-n", namespace, "create", "token", account])).trim();
  }

  test("has its own port at the address that the node publishes", async () => {
    const node = await clients().host.get(nodes, { name: "legation-west" });
    expect(node.status?.addresses).toEqual([{ type: "InternalIP", address: "127.0.0.1" }]);
    expect(port).not.toBe(elsewhere);
  });

  test.each(PATHS)("refuses %s to unauthenticated callers", async (path) => {
    expect(await ask(port, path)).toEqual({ status: 401, text: "Unauthorized" });
    expect(await ask(port, path, { token: "nonsense" })).toEqual({ status: 401, text: "Unauthorized" });
  });

  test("refuses a certificate of another authority, whatever its name", async () => {
    const certificate = await stranger.issue({
      commonName: "kube-apiserver-kubelet-client",
      organization: "system:masters",
      usage: "clientAuth",
    });
    expect(await ask(port, "/pods", { certificate })).toEqual({ status: 401, text: "Unauthorized" });
  });

  test("accepts the certificate of the host's API server", async () => {
    const certificate = apiServersOwn();
    expect(await ask(port, "/healthz", { certificate })).toEqual({ status: 200, text: "ok" });
    expect(await ask(port, "/nonsense", { certificate })).toMatchObject({ status: 404 });
    expect(await ask(port, "/pods", { certificate, method: "POST" })).toMatchObject({ status: 405 });
    expect(JSON.parse((await ask(port, "/pods", { certificate })).text)).toMatchObject({ kind: "PodList" });
  });

  test("names the missing right to a user without it", async () => {
    const token = await tokenOf("nobody");
    const { status, text } = await ask(port, "/containerLogs/default/web/main", { token });
    expect(status).toBe(403);
    const user = `system:serviceaccount:${namespace}:nobody-[0-9a-f]+`;
    expect(text).toMatch(new RegExp(`Forbidden \\(user=${user}, verb=get, resource=nodes`));
    expect(text).toContain("subresource(s)=[proxy]");
  });

  test("permits a user what the host's RBAC permits on this node, and no more", async () => {
    const token = await tokenOf("reader", { verbs: "get", resource: "nodes/proxy", node: "legation-west" });
    await eventuallyPasses(async () => expect((await ask(port, "/pods", { token })).status).toBe(200), patient);
    expect(await ask(port, "/containerLogs/default/nobody/main", { token })).toEqual({
      status: 404,
      text: 'pod "nobody_default" does not exist',
    });
    expect((await ask(elsewhere, "/pods", { token })).status).toBe(403);
    expect((await ask(port, "/metrics/resource", { token })).status).toBe(403);
  });

  test("refuses commands to a user who may only read, also by WebSocket", async () => {
    const token = await tokenOf("looker", { verbs: "get", resource: "nodes/proxy", node: "legation-west" });
    await eventuallyPasses(async () => expect((await ask(port, "/pods", { token })).status).toBe(200), patient);
    const headers = {
      connection: "Upgrade",
      upgrade: "websocket",
      "sec-websocket-version": "13",
      "sec-websocket-key": "AAAAAAAAAAAAAAAAAAAAAA==",
      "sec-websocket-protocol": "v5.channel.k8s.io",
    };
    const path = "/exec/default/nobody/main?command=true&output=1";
    expect(await ask(port, path, { token, headers })).toMatchObject({ status: 403 });
    expect(await ask(port, path, { headers })).toMatchObject({ status: 401 });
    expect(await ask(port, path, { headers, certificate: apiServersOwn() })).toMatchObject({ status: 404 });
  });

  test("permits a scraper to read metrics and nothing else", async () => {
    const token = await tokenOf("scraper", { verbs: "get", resource: "nodes/metrics", node: "legation-west" });
    await eventuallyPasses(async () => {
      expect((await ask(port, "/metrics/resource", { token })).status).toBe(200);
    }, patient);
    expect((await ask(port, "/pods", { token })).status).toBe(403);
  });

  test("follows the rotation of the host's client authorities without a restart", async () => {
    const { host } = clients();
    const certificate = await stranger.issue({ commonName: "newcomer", usage: "clientAuth" });
    const before = await host.get(configMaps, AUTHENTICATION);
    const setAuthority = (pem: string | undefined): Promise<unknown> =>
      host.patch(configMaps, AUTHENTICATION, { type: "merge", body: { data: { "client-ca-file": pem } } });
    const own = before.data?.["client-ca-file"] ?? "";
    onTestFinished(() => setAuthority(own).then(() => undefined));
    await setAuthority(own + stranger.pem);
    await eventuallyPasses(async () => {
      const { status, text } = await ask(port, "/healthz", { certificate });
      expect(status).toBe(403);
      expect(text).toContain("user=newcomer");
    }, patient);
    expect((await ask(port, "/healthz", { certificate: apiServersOwn() })).status).toBe(200);
    await setAuthority(own);
    await eventuallyPasses(
      async () => expect((await ask(port, "/healthz", { certificate })).status).toBe(401),
      patient,
    );
  });

  test("serves the given certificate, and the new one after a replacement", async () => {
    const before = await verified();
    expect(before).toBeDefined();
    await useServingCertificate();
    const after = await eventually(() => verified(), { ...patient, what: "the new certificate" });
    expect(after).not.toBe(before);
    expect((await ask(port, "/healthz", { certificate: apiServersOwn() })).status).toBe(200);
  });

  test("keeps its port when the controller restarts", async () => {
    const { controller } = running();
    await controller.stop();
    await expect(ask(port, "/healthz")).rejects.toThrow();
    await controller.start();
    const certificate = apiServersOwn();
    await eventuallyPasses(async () => {
      expect((await ask(port, "/healthz", { certificate })).status).toBe(200);
      expect((await ask(elsewhere, "/healthz", { certificate })).status).toBe(200);
    }, patient);
    expect(await published("west")).toBe(port);
    expect(await published("east")).toBe(elsewhere);
  });
});
