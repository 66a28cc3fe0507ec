import { X509Certificate } from "node:crypto";
import { Agent } from "node:https";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, onTestFinished, type TestContext, test } from "vitest";
import { secretText, timestamp } from "../../src/api/kubernetes.ts";
import { clusters } from "../../src/api/resources.ts";
import type { ClusterClient } from "../../src/kube/client.ts";
import type { RequestIdentity } from "../../src/kube/credentials.ts";
import { isKubeError } from "../../src/kube/errors.ts";
import { createClusterClient } from "../../src/kube/http-client.ts";
import { credentialsFromKubeconfigText } from "../../src/kube/kubeconfig.ts";
import { nodes, pods, secrets } from "../../src/kube/resources.ts";
import { apiSecretName } from "../../src/pods/home-api.ts";
import { relayDial } from "../../src/tunnel/relay.ts";
import { type ApiAnswer, apiRequest } from "../support/clusters/api-request.ts";
import { freePort } from "../support/clusters/ports.ts";
import { delegatedPod } from "../support/delegated/pods.ts";
import { useClients } from "../support/harness/clients.ts";
import { hostCluster, memberCluster } from "../support/harness/clusters.ts";
import { MANIFESTS } from "../support/harness/installed.ts";
import { kubectl } from "../support/harness/kubectl.ts";
import { freshNamespace } from "../support/harness/namespace.ts";
import { inPhase, podGone, podThat } from "../support/harness/pods-of.ts";
import { pristine } from "../support/harness/pristine.ts";
import { eventually, eventuallyPasses } from "../support/harness/wait.ts";
import { agentOf, type RunningAgent } from "../support/legation/agent.ts";
import { legationOn } from "../support/legation/process.ts";
import { type Legation, startLegation } from "../support/legation/start.ts";
import { type ConnectProxy, connectProxy } from "../support/tunnel/connect-proxy.ts";

const THIEF = "legation-agent-thief";

const accessManifest = (name: string): string => `${MANIFESTS}/access/${name}.yaml`;

const clients = useClients();
let legation: Legation;
let proxy: ConnectProxy;
let agent: RunningAgent;
let agentName: string;
let manifest: string;
let hubPort: number;
let homePort: number;

const readyCondition = async () => {
  const { status } = await clients().host.get(clusters, { name: "north" });
  return status?.conditions?.find(({ type }) => type === "Ready");
};

async function becomesReady(status: "True" | "False" = "True"): Promise<void> {
  await eventuallyPasses(async () => expect(await readyCondition(), agent.log()).toMatchObject({ status }), {
    timeoutMs: 30_000,
  });
}

/** Returns how often the agent's log tells of a connection. */
const connections = (): number => agent.log().split('"connected to the hub"').length;

/** Runs the agent of the Secret in the member, behind the proxy. */
async function startAgent(secret: string, args: readonly string[] = []): Promise<RunningAgent> {
  const started = await agentOf(memberCluster("west"), secret, { args, env: { HTTPS_PROXY: proxy.url } });
  await started.start();
  return started;
}

async function runningPod(namespace: string, name: string): Promise<void> {
  await clients().host.create(
    pods,
    delegatedPod(namespace, name, { annotations: { "legation.dev/clusters": "north" } }),
  );
  const { spec } = await podThat(clients().host, namespace, name, inPhase("Running"));
  expect(spec?.nodeName).toBe("legation-north");
}

async function namespaceFor(onFinished: TestContext["onTestFinished"]): Promise<string> {
  const labels = { "legation.dev/delegation": "annotated" };
  return await freshNamespace(hostCluster(), { prefix: "agent", labels, onFinished });
}

/** Runs a second agent, with the token of the manifest and `stolen` data in its Secret, and removes it afterwards. */
async function withThief(stolen: object, check: (thief: RunningAgent) => Promise<void>): Promise<void> {
  const west = memberCluster("west");
  const system = ["-n", "legation-system"];
  await kubectl(west, ["apply", "-f", "-"], { input: manifest.replaceAll(agentName, THIEF) });
  await kubectl(west, [...system, "patch", "secret", THIEF, "-p", JSON.stringify({ data: stolen })]);
  const thief = await startAgent(THIEF);
  try {
    await check(thief);
  } finally {
    await thief.stop();
    const kinds = "deployment,secret,service,networkpolicy,serviceaccount,role,rolebinding";
    await kubectl(west, [...system, "delete", kinds, THIEF]);
  }
}

const says = (running: RunningAgent, words: string): Promise<void> =>
  eventuallyPasses(async () => expect(running.log()).toContain(words), { timeoutMs: 20_000 });

/** Returns the text of a Secret of `legation access` on the host, once there is one. */
function accessSecret(name: string): Promise<(key: string) => string> {
  return eventually(
    async () => {
      const found = await clients().host.find(secrets, { namespace: "legation-access", name });
      return found && ((key: string) => secretText(found, key) ?? "");
    },
    { what: `Secret legation-access/${name}`, timeoutMs: 20_000 },
  );
}

/** Reaches north as `legation access` does: through the hub, by the stored credentials, as a user or as the account itself. */
async function accessClient(): Promise<(headers?: RequestIdentity["headers"]) => ClusterClient> {
  const relay = await accessSecret("hub-relay");
  const certificate = { cert: relay("tls.crt"), key: relay("tls.key"), ca: relay("ca.crt") };
  const kubeconfig = (await accessSecret("member-north"))("kubeconfig");
  const unchanging = { source: "test", insecureSkipTlsVerify: false, refresh: () => {} };
  const hub = createClusterClient({
    cluster: "hub",
    credentials: {
      ...unchanging,
      server: `https://127.0.0.1:${hubPort}`,
      tlsServerName: "legation-hub.legation-system.svc",
      identity: () => certificate,
    },
  });
  onTestFinished(() => hub.close());
  const stored = credentialsFromKubeconfigText(kubeconfig, { allowExec: false, env: {} });
  return (headers = {}) => {
    const identity = async (): Promise<RequestIdentity> => ({ ...(await stored.identity()), headers });
    const credentials = { ...stored, identity };
    const client = createClusterClient({ cluster: "north", credentials, dial: relayDial(hub, "north") });
    onTestFinished(() => client.close());
    return client;
  };
}

/** Sends a request to the host's API server, as a pod of the member does through the agent. */
function homeRequest(ca: string, token: string): Promise<ApiAnswer> {
  const body = { apiVersion: "authentication.k8s.io/v1", kind: "SelfSubjectReview" };
  const path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
  const agent = new Agent({ servername: "kubernetes.default.svc" });
  return apiRequest({ server: `https://127.0.0.1:${homePort}`, caData: ca, token }, "POST", path, { body, agent });
}

async function join(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await legationOn(hostCluster(), "join", "north", ...args);
  expect(code, stderr).toBe(0);
  return stdout;
}

beforeAll(async () => {
  await pristine(hostCluster(), memberCluster("west"));
  hubPort = await freePort();
  homePort = await freePort();
  proxy = await connectProxy();
  legation = await startLegation({
    host: hostCluster(),
    members: {},
    controllerFlags: [`--hub-listen=0.0.0.0:${hubPort}`, "--hub-service=legation-hub"],
    // An API server takes no loopback address as an endpoint.
    env: { POD_IP: "10.1.2.3" },
    restart: true,
  });
});

afterAll(async () => {
  await agent?.stop();
  await legation?.stop();
  proxy?.close();
});

describe("a member that connects through an agent", () => {
  test("joins by the manifest that join prints, also through a proxy", async () => {
    manifest = await join("--agent", "--home-api-through-agent", "--hub-address", `hub.example.org:${hubPort}`);
    await kubectl(memberCluster("west"), ["apply", "-f", "-"], { input: manifest });
    [, agentName = ""] = /^ {2}name: (legation-agent-\w+)$/m.exec(manifest) ?? [];
    const home = [`--home-api-listen=127.0.0.1:${homePort}`, `--home-api-service=${agentName}`];
    agent = await startAgent(agentName, home);
    await becomesReady();
    expect(new Set(proxy.requests)).toEqual(new Set([`hub.example.org:${hubPort}`]));
    await eventuallyPasses(
      async () => {
        const { code, stdout } = await legationOn(hostCluster(), "status");
        expect(code).toBe(0);
        expect(stdout).toMatch(/^north +True +agent \d+\.\d+\.\d+\S*, \d+s /m);
      },
      { timeoutMs: 20_000 },
    );
  });

  test("finds the leader as the only endpoint of the hub's Service", async () => {
    const slice = ["-n", "legation-system", "get", "endpointslice", "legation-hub", "-o", "json"];
    const { endpoints, ports, metadata } = JSON.parse(await kubectl(hostCluster(), slice));
    expect(endpoints).toMatchObject([{ addresses: ["10.1.2.3"], conditions: { ready: true } }]);
    expect(ports).toMatchObject([{ port: hubPort }]);
    expect(metadata.labels["kubernetes.io/service-name"]).toBe("legation-hub");
  });

  test("runs pods of the host", async ({ onTestFinished }) => {
    const namespace = await namespaceFor(onTestFinished);
    await runningPod(namespace, "web");
    await podThat(clients().west, namespace, "web", inPhase("Running"));
    await kubectl(hostCluster(), ["-n", namespace, "delete", "pod", "web", "--now"]);
    await podGone(clients().west, namespace, "web");
  });

  test("leads pods of the member to the host's API server, as they find it by their own configuration", async ({
    onTestFinished,
  }) => {
    const namespace = await namespaceFor(onTestFinished);
    await runningPod(namespace, "web");
    const { metadata } = await clients().host.get(pods, { namespace, name: "web" });
    const { spec } = await clients().west.get(pods, { namespace, name: "web" });
    const service = ["-n", "legation-system", "get", "service", agentName, "-o", "jsonpath={.spec.clusterIP}"];
    const ip = await kubectl(memberCluster("west"), service);
    const hostnames = ["kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"];
    expect(spec?.hostAliases).toEqual([{ ip, hostnames }]);
    expect(spec?.containers[0]?.env).toContainEqual({
      name: "KUBERNETES_SERVICE_HOST",
      value: "kubernetes.default.svc",
    });
    const stored = await eventually(
      () => clients().west.find(secrets, { namespace, name: apiSecretName(metadata.uid) }),
      { timeoutMs: 20_000 },
    );
    const answer = await homeRequest(secretText(stored, "ca.crt") ?? "", secretText(stored, "token-0") ?? "");
    expect(answer.status, answer.text).toBe(201);
    expect(JSON.parse(answer.text).status.userInfo).toMatchObject({
      username: `system:serviceaccount:${namespace}:default`,
      extra: { "authentication.kubernetes.io/pod-uid": [metadata.uid] },
    });
    await kubectl(hostCluster(), ["-n", namespace, "delete", "pod", "web", "--now"]);
    await podGone(clients().west, namespace, "web");
  });

  test("stays ready when its agent connects to the next leader seconds after that has begun", async ({
    onTestFinished,
  }) => {
    const readiness = async () => [
      (await readyCondition())?.lastTransitionTime,
      ((await clients().host.get(nodes, { name: "legation-north" })).status?.conditions ?? [])
        .filter(({ type }) => type === "Ready")
        .map(({ status, lastTransitionTime }) => ({ status, lastTransitionTime })),
    ];
    const [before, connected] = [await readiness(), connections()];
    await agent.freeze();
    await legation.controller.stop("SIGKILL");
    await legation.controller.start();
    // Longer than three attempts to connect that fail at once.
    await sleep(6_000);
    agent.thaw();
    await eventuallyPasses(async () => expect(connections()).toBeGreaterThan(connected), { timeoutMs: 30_000 });
    await runningPod(await namespaceFor(onTestFinished), "web");
    expect(await readiness()).toEqual(before);
  });

  test("refuses a second agent the token that one has used, and every agent one that has expired", async () => {
    await withThief({}, async (thief) => {
      await says(thief, "Cluster north: another agent has used the token; run `legation join north --agent` again");
      const expired = "legation.dev/agent-token-expires=2026-01-01T00:00:00Z";
      const annotate = ["-n", "legation-system", "annotate", "--overwrite", "secret", "member-north", expired];
      await kubectl(hostCluster(), annotate);
      await says(thief, "Cluster north: the token has expired");
    });
    expect(await readyCondition()).toMatchObject({ status: "True" });
  });

  test("keeps its pods when its agent and the controller are killed, and comes back by itself", async ({
    onTestFinished,
  }) => {
    const namespace = await namespaceFor(onTestFinished);
    await runningPod(namespace, "web");
    const before = await clients().west.get(pods, { namespace, name: "web" });
    const probe = { periodSeconds: 1, timeoutSeconds: 5, failureThreshold: 1 };
    await clients().host.patch(clusters, { name: "north" }, { type: "merge", body: { spec: { probe } } });
    await agent.stop("SIGKILL");
    await becomesReady("False");
    await eventuallyPasses(async () => expect((await readyCondition())?.message).toContain("the agent of north left"), {
      timeoutMs: 20_000,
    });
    await legation.controller.stop("SIGKILL");
    await agent.start();
    await legation.controller.start();
    await becomesReady();
    const after = await clients().west.get(pods, { namespace, name: "web" });
    expect(after.metadata.uid).toBe(before.metadata.uid);
    await kubectl(hostCluster(), ["-n", namespace, "delete", "pod", "web", "--now"]);
    await podGone(clients().west, namespace, "web");
  });

  test("is reached directly after a join without an agent, and by its agent again, with its pods running", async ({
    onTestFinished,
  }) => {
    const west = memberCluster("west");
    const namespace = await namespaceFor(onTestFinished);
    await runningPod(namespace, "web");
    const { uid } = (await clients().west.get(pods, { namespace, name: "web" })).metadata;
    const { data: stolen = {} } = await clients().west.get(secrets, { namespace: "legation-system", name: agentName });
    await join("--member-kubeconfig", west.kubeconfig);
    await says(agent, "Cluster north has joined without an agent");
    await agent.stop();
    await becomesReady();
    // The agent of a Deployment restarts with its new token.
    const joined = join("--agent", "--member-kubeconfig", west.kubeconfig);
    await eventuallyPasses(
      async () => {
        const { spec } = await clients().host.get(clusters, { name: "north" });
        expect(spec.agent).toBeDefined();
      },
      { timeoutMs: 20_000 },
    );
    const before = connections();
    await agent.start();
    await joined;
    // The Cluster was Ready by its earlier connection until then.
    expect(connections(), agent.log()).toBeGreaterThan(before);
    await becomesReady();
    await runningPod(namespace, "later");
    await withThief(stolen, (thief) => says(thief, "Cluster north has joined anew since this agent's certificate"));
    expect((await clients().west.get(pods, { namespace, name: "web" })).metadata.uid).toBe(uid);
  });

  test("is refused once its Cluster is deleted, and joins again with a new token", async () => {
    await kubectl(hostCluster(), ["delete", "cluster.legation.dev", "north"]);
    await says(agent, "Cluster north has not joined");
    // The refused agent asks ever less often from now on, and a new agent at once.
    await agent.stop();
    // Another address is added to the certificate that the hub serves.
    manifest = await join("--agent", "--hub-address", `hub2.example.org:${hubPort}`);
    await agent.start();
    await says(agent, "Cluster north has joined anew");
    await agent.stop();
    await kubectl(memberCluster("west"), ["apply", "-f", "-"], { input: manifest });
    await agent.start();
    await becomesReady();
    expect(proxy.requests.at(-1)).toBe(`hub2.example.org:${hubPort}`);
  });

  test("has a certificate that is worth nothing at the host's API server", async () => {
    const found = await clients().west.get(secrets, { namespace: "legation-system", name: agentName });
    const [cert = "", key = ""] = [secretText(found, "tls.crt"), secretText(found, "tls.key")];
    expect(cert).toContain("BEGIN CERTIFICATE");
    const presenting = new Agent({ cert, key });
    const { server, caData } = hostCluster();
    const answer = await apiRequest({ server, caData, token: "" }, "GET", "/api/v1/pods", { agent: presenting });
    expect(answer.status).toBe(401);
  });

  test("shows in its Cluster and by status when its agent's certificate expires", async () => {
    const found = await clients().west.get(secrets, { namespace: "legation-system", name: agentName });
    const expires = timestamp(new X509Certificate(secretText(found, "tls.crt") ?? "").validToDate.getTime());
    await eventuallyPasses(
      async () => {
        const { status } = await clients().host.get(clusters, { name: "north" });
        expect(status?.agent?.certificateExpires).toBe(expires);
      },
      { timeoutMs: 20_000 },
    );
    const { stdout } = await legationOn(hostCluster(), "status", "north");
    expect(stdout).toContain(`, with a certificate that is valid until ${expires}\n`);
    const { stdout: document } = await legationOn(hostCluster(), "status", "north", "-o", "json");
    expect(JSON.parse(document)).toMatchObject({ agent: { certificateExpires: expires } });
  });

  test("takes requests of users through its agent, by an account that may only impersonate", async () => {
    await kubectl(hostCluster(), ["apply", "-f", accessManifest("namespace"), "-f", accessManifest("rbac")]);
    manifest = await join("--agent", "--access");
    await agent.stop();
    await kubectl(memberCluster("west"), ["apply", "-f", "-"], { input: manifest });
    await agent.start();
    const clientOf = await accessClient();
    const review = { apiVersion: "authentication.k8s.io/v1", kind: "SelfSubjectReview" };
    const path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    const alice = { "impersonate-user": "legation:alice", "impersonate-group": ["legation:dev"] };
    const who = await clientOf(alice).raw({ method: "POST", path, body: review });
    const groups = ["legation:dev", "system:authenticated"];
    expect(who).toMatchObject({ status: { userInfo: { username: "legation:alice", groups } } });
    // A thief of the credentials gets no more than that.
    const stolen: RequestIdentity["headers"][] = [
      {},
      { "impersonate-user": "legation:alice", "impersonate-group": "system:masters" },
      { "impersonate-user": "system:serviceaccount:kube-system:default" },
      { "impersonate-user": "system:node:node-1", "impersonate-group": "system:nodes" },
    ];
    for (const headers of stolen) {
      const reading = clientOf(headers).list(secrets);
      const refusal = await reading.then(
        () => "nothing",
        (error: unknown) => (isKubeError(error) ? error.code : String(error)),
      );
      expect(refusal, JSON.stringify(headers)).toBe("Forbidden");
    }
  });

  test("keeps nothing of the agent after unjoin", async () => {
    const west = memberCluster("west");
    const left = await legationOn(hostCluster(), "unjoin", "north", "--member-kubeconfig", west.kubeconfig);
    expect(left.code, left.stderr).toBe(0);
    const kinds = "deployments,secrets,services,networkpolicies,serviceaccounts,roles,rolebindings";
    const names = await kubectl(west, ["-n", "legation-system", "get", kinds, "-o", "name"]);
    expect(names.split("\n").filter((name) => name.includes("legation"))).toEqual([]);
    const wide = await kubectl(west, ["get", "clusterroles,clusterrolebindings", "-o", "name"]);
    expect(wide.split("\n").filter((name) => name.includes("legation"))).toEqual([]);
    const ref = { namespace: "legation-access", name: "member-north" };
    expect(await clients().host.find(secrets, ref)).toBeUndefined();
    await kubectl(hostCluster(), [
      "delete",
      "--wait=false",
      "-f",
      accessManifest("namespace"),
      "-f",
      accessManifest("rbac"),
    ]);
  });
});
