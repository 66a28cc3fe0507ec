import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import type { ClientRequest, IncomingMessage, OutgoingHttpHeaders } from "node:http";
import { request } from "node:https";
import { tmpdir } from "node:os";
import { join as joinPath } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from "vitest";
import { clusterProxyPath } from "../../src/api/access.ts";
import { type AuditEvent, allAuditEvents } from "../support/clusters/audit.ts";
import { freePort } from "../support/clusters/ports.ts";
import type { Cluster } from "../support/clusters/types.ts";
import { hostCluster, memberCluster } from "../support/harness/clusters.ts";
import { kubectl } from "../support/harness/kubectl.ts";
import { useLegation } from "../support/harness/legation.ts";
import { freshNamespace } from "../support/harness/namespace.ts";
import { eventually } from "../support/harness/wait.ts";
import { bindClusterRole, createUser, type HostUser, openMember } from "../support/legation/access.ts";
import { joinBehindAgent, type RunningAgent } from "../support/legation/agent.ts";
import { runCli } from "../support/legation/cli.ts";
import { legationOn } from "../support/legation/process.ts";
import type { LegationProcess } from "../support/legation/start.ts";

// Short, since the last tests kill the leader.
const LEASE = "--lease-duration=6s";
const running = useLegation({ takesAgents: true, controllerFlags: [LEASE] });
let alice: HostUser;

/** Runs kubectl as alice, against a member through the host's API server. */
function asAlice(args: readonly string[], member = "west", timeoutMs = 60_000): Promise<string> {
  return kubectl(hostCluster(), args, { kubeconfig: alice.kubeconfigOf(member), timeoutMs });
}

/** Watches a namespace's ConfigMaps as alice until the test ends. Returns what kubectl has printed so far. */
function watchConfigMaps(namespace: string, member: string): () => string {
  const watch = spawn(inject("kubectl"), [
    `--kubeconfig=${alice.kubeconfigOf(member)}`,
    ...["get", "configmaps", "-n", namespace, "--watch", "-o", "name"],
  ]);
  onTestFinished(() => {
    watch.kill();
  });
  let seen = "";
  watch.stdout.on("data", (chunk: Buffer) => {
    seen += chunk.toString();
  });
  return () => seen;
}

/** A request of alice to a member through the host's API server, which is still to be ended. */
function requestAsAlice(member: string, path: string, headers: OutgoingHttpHeaders, method = "GET"): ClientRequest {
  const { server, caData: ca } = hostCluster();
  const { certificate: cert, key } = alice;
  return request(`${server}${clusterProxyPath(member)}${path}`, { method, ca, cert, key, headers, agent: false });
}

/** Returns each Audit-ID among a response's headers. */
function auditIdsOf({ rawHeaders }: IncomingMessage): string[] {
  return rawHeaders.filter((_each, at) => at % 2 === 1 && /^audit-id$/i.test(rawHeaders[at - 1] ?? ""));
}

/** Opens a watch as a WebSocket, which API servers answer with 101. Returns what it has brought so far. */
function webSocketWatch(member: string, path: string): Promise<() => string> {
  const outgoing = requestAsAlice(member, path, {
    ...{ connection: "Upgrade", upgrade: "websocket" },
    ...{ "sec-websocket-version": "13", "sec-websocket-key": "bGVnYXRpb24gYWNjZXNzIQ==" },
    // API servers refuse a WebSocket without an origin.
    origin: hostCluster().server,
  });
  return new Promise((resolve, reject) => {
    outgoing.once("error", reject);
    outgoing.once("response", ({ statusCode }) => reject(new Error(`answered with ${statusCode}`)));
    outgoing.once("upgrade", (_answer, socket, head) => {
      onTestFinished(() => {
        socket.destroy();
      });
      let seen = head.toString();
      socket.on("error", () => {});
      socket.on("data", (chunk: Buffer) => {
        seen += chunk.toString();
      });
      resolve(() => seen);
    });
    outgoing.end();
  });
}

beforeAll(async () => {
  await running().access();
  const host = hostCluster();
  alice = await createUser(host, "alice", "developers");
  await openMember(host, memberCluster("west"), "west");
  await bindClusterRole(host, "legation-access", { kind: "User", name: "alice" });
  await bindClusterRole(memberCluster("west"), "edit", { kind: "Group", name: "legation:developers" });
});

describe("a user of the host, in a member", () => {
  test("is known by name and groups, with the Cluster's prefix and without Kubernetes' own", async () => {
    const who = JSON.parse(await asAlice(["auth", "whoami", "-o", "json"])) as { status: { userInfo: object } };
    expect(who.status.userInfo).toMatchObject({
      username: "legation:alice",
      groups: ["legation:developers", "system:authenticated"],
    });
  });

  test("creates, reads, watches and deletes objects as the member's RBAC allows, and no others", async () => {
    const west = memberCluster("west");
    const namespace = await freshNamespace(west);
    const seen = watchConfigMaps(namespace, "west");
    await asAlice(["create", "configmap", "written", "-n", namespace, "--from-literal=by=alice"]);
    await eventually(() => seen().includes("configmap/written"), { what: "the watch brings the new object" });
    expect(await kubectl(west, ["get", "configmap", "written", "-n", namespace, "-o", "jsonpath={.data.by}"])).toBe(
      "alice",
    );
    await asAlice(["delete", "configmap", "written", "-n", namespace]);
    await expect(asAlice(["get", "nodes"])).rejects.toThrow(
      'User "legation:alice" cannot list resource "nodes" in API group "" at the cluster scope',
    );
  });

  test("finds one Audit-ID in a response and in the audit logs of host and member, with the user in both", async () => {
    const [host, west] = [hostCluster(), memberCluster("west")];
    const namespace = await freshNamespace(west);
    const path = `/api/v1/namespaces/${namespace}/configmaps?fieldManager=alice`;
    const outgoing = requestAsAlice("west", path, { "content-type": "application/json" }, "POST");
    outgoing.end(JSON.stringify({ metadata: { name: "audited" } }));
    const [answer] = (await once(outgoing, "response")) as [IncomingMessage];
    answer.resume();
    expect(answer.statusCode).toBe(201);
    const created = async (cluster: Cluster): Promise<AuditEvent> =>
      await eventually(async () => {
        const isCreate = ({ verb, requestURI }: AuditEvent): boolean => verb === "create" && requestURI.endsWith(path);
        return (await allAuditEvents(cluster, isCreate, [namespace]))[0];
      });
    const [atHost, inMember] = await Promise.all([created(host), created(west)]);
    expect(atHost).toMatchObject({
      user: { username: "alice" },
      objectRef: { apiGroup: "access.legation.dev", resource: "clusters", subresource: "proxy", name: "west" },
    });
    expect(auditIdsOf(answer)).toEqual([atHost.auditID]);
    expect(inMember).toMatchObject({
      auditID: atHost.auditID,
      user: { username: "system:serviceaccount:legation-system:legation-access-test" },
      impersonatedUser: { username: "legation:alice" },
    });
  });

  test("is refused by the host without the right to the Cluster, and told how a closed one is opened", async () => {
    const host = hostCluster();
    const bob = await createUser(host, "bob", "developers");
    const asBob = kubectl(host, ["get", "pods"], { kubeconfig: bob.kubeconfigOf("west") });
    await expect(asBob).rejects.toThrow('User "bob" cannot get resource "clusters/proxy"');
    await expect(asAlice(["get", "pods"], "east")).rejects.toThrow("legation join east --access");
    // kubectl has words of its own for a discovery that is not found.
    await expect(asAlice(["get", "--raw", "/version"], "nowhere")).rejects.toThrow(
      'clusters.legation.dev "nowhere" not found',
    );
  });

  test("uses any client: @kubernetes/client-node, with a watch", async () => {
    const namespace = await freshNamespace(memberCluster("west"));
    const { CoreV1Api, KubeConfig, Watch } = await import("@kubernetes/client-node");
    const config = new KubeConfig();
    config.loadFromFile(alice.kubeconfigOf("west"));
    const seen: string[] = [];
    const path = `/api/v1/namespaces/${namespace}/configmaps`;
    const onEvent = (type: string, object: { metadata: { name: string } }): void => {
      seen.push(`${type} ${object.metadata.name}`);
    };
    const watch = await new Watch(config).watch(path, {}, onEvent, () => {});
    onTestFinished(() => watch.abort());
    const api = config.makeApiClient(CoreV1Api);
    await api.createNamespacedConfigMap({ namespace, body: { metadata: { name: "made" } } });
    await eventually(() => seen.includes("ADDED made"), { what: "the watch of client-node" });
    await api.deleteNamespacedConfigMap({ namespace, name: "made" });
    await eventually(() => seen.includes("DELETED made"), { what: "the watch of client-node" });
  });

  test("is told that a member cannot be reached, while the host's discovery goes on", async () => {
    const { proxy } = memberCluster("west");
    onTestFinished(() => proxy.heal());
    await proxy.cut();
    await expect(asAlice(["get", "--raw", "/version"])).rejects.toThrow("Cluster west cannot be reached");
    await expect(asAlice(["get", "pods"])).rejects.toThrow("Cluster west cannot be reached");
    const resources = await kubectl(hostCluster(), ["get", "--raw", "/apis/access.legation.dev/v1"]);
    expect(resources).toContain("clusters/proxy");
    await proxy.heal();
    expect(await asAlice(["get", "--raw", "/version"])).toContain("gitVersion");
  });
});

test("while a member is frozen, the host's discovery, garbage collector and deletion of namespaces do not wait for it", async () => {
  const [host, west] = [hostCluster(), memberCluster("west")];
  const namespace = await freshNamespace(west);
  onTestFinished(() => west.mend());
  await west.apiServer.freeze();
  const waiting = Array.from({ length: 20 }, () =>
    asAlice(["get", "--raw", `/api/v1/namespaces/${namespace}/configmaps`], "west", 120_000),
  );
  const ended = Promise.allSettled(waiting);
  let answered = 0;
  for (const each of waiting) {
    each.then(
      () => {
        answered += 1;
      },
      () => {},
    );
  }
  const cache = mkdtempSync(joinPath(tmpdir(), "legation-discovery-"));
  onTestFinished(() => rmSync(cache, { recursive: true }));
  const onHost = (...args: string[]): Promise<string> => kubectl(host, [`--cache-dir=${cache}`, ...args]);
  // Each of kubectl's requests has this long.
  expect(await onHost("api-resources", "--request-timeout=5s")).toMatch(/^clusters +legation\.dev\/v1alpha1 /m);
  const gone = await freshNamespace(host);
  await onHost("-n", gone, "create", "configmap", "owner");
  const uid = await onHost("-n", gone, "get", "configmap", "owner", "-o", "jsonpath={.metadata.uid}");
  const ownerReferences = [{ apiVersion: "v1", kind: "ConfigMap", name: "owner", uid }];
  const owned = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "owned", ownerReferences } };
  await kubectl(host, ["-n", gone, "create", "-f", "-"], { input: JSON.stringify(owned) });
  await onHost("-n", gone, "delete", "configmap", "owner", "--cascade=background");
  await onHost("-n", gone, "wait", "--for=delete", "configmap/owned", "--timeout=30s");
  await onHost("delete", "namespace", gone, "--timeout=30s");
  expect(answered).toBe(0);
  await west.mend();
  for (const result of await ended) {
    // The controller may have found the member frozen before.
    if (result.status === "rejected")
      expect(String(result.reason)).toMatch(/Cluster west (did not answer|cannot be reached)/);
    else expect(result.value).toContain("kube-root-ca.crt");
  }
});

describe("a member that is joined with --access", () => {
  const join = async (...args: string[]): Promise<void> => {
    const member = ["--member-kubeconfig", memberCluster("east").kubeconfig];
    const { code, stderr } = await legationOn(hostCluster(), "join", "east", ...member, ...args);
    expect(code, stderr).toBe(0);
  };

  test("is open to a user of the host by legation kubeconfig, as the member's RBAC says, until access is removed", async () => {
    const host = hostCluster();
    const east = memberCluster("east");
    await join("--access", "--access-prefix=guests:");
    await join();
    const { code, stdout, stderr } = await runCli(["kubeconfig", "east", `--kubeconfig=${alice.kubeconfig}`]);
    expect(code, stderr).toBe(0);
    const kubeconfig = joinPath(host.directory, "alice-by-cli.kubeconfig");
    writeFileSync(kubeconfig, stdout, { mode: 0o600 });
    const inEast = (...args: string[]): Promise<string> => kubectl(host, args, { kubeconfig });
    await eventually(async () => (await inEast("auth", "whoami", "-o", "json")).includes('"guests:alice"'), {
      what: "the member is open",
    });
    const namespace = await freshNamespace(east);
    await expect(inEast("get", "configmaps", "-n", namespace)).rejects.toThrow('User "guests:alice" cannot list');
    await kubectl(east, [
      "create",
      "rolebinding",
      "guests",
      "-n",
      namespace,
      "--clusterrole=view",
      "--user=guests:alice",
    ]);
    await eventually(async () => (await inEast("get", "configmaps", "-n", namespace)).includes("kube-root-ca.crt"), {
      what: "the member's RBAC admits the user",
    });
    await join("--remove-access");
    await eventually(
      () =>
        inEast("get", "configmaps", "-n", namespace).then(
          () => false,
          (error: unknown) => String(error).includes("takes no requests of users"),
        ),
      { what: "the member is closed" },
    );
    const left = await kubectl(east, ["get", "clusterroles,clusterrolebindings", "-o", "name"]);
    expect(left).not.toContain("legation-access-");
  });
});

// Last, since the leader is killed.
describe("a member behind an agent, which users reach through the leader's hub", () => {
  let agent: RunningAgent;
  const namespace = "relayed";
  let second: LegationProcess;

  beforeAll(async () => {
    const [host, east] = [hostCluster(), memberCluster("east")];
    const identity = ["--identity=second", `--kubelet-listen=127.0.0.1:${await freePort()}`];
    second = await running().another("controller", [...identity, LEASE]);
    await second.start();
    const behind = { name: "east", hubPort: running().hubPort, args: ["--access"], server: east.proxiedServer };
    agent = await joinBehindAgent(host, east, { ...behind, again: true });
    await kubectl(east, ["create", "namespace", namespace]);
    const binding = ["create", "rolebinding", "relayed", "--clusterrole=edit", "--user=legation:alice"];
    await kubectl(east, ["-n", namespace, ...binding]);
    await reached();
  });
  afterAll(async () => {
    await agent?.stop();
    const east = memberCluster("east");
    await kubectl(east, ["delete", "namespace", namespace, "--wait=false"]);
    // The next file joins it directly.
    const left = await legationOn(hostCluster(), "unjoin", "east", "--member-kubeconfig", east.kubeconfig);
    expect(left.code, left.stderr).toBe(0);
  });

  /** Waits until alice reads the member's ConfigMaps. */
  async function reached(): Promise<void> {
    await eventually(
      async () => (await asAlice(["get", "configmaps", "-n", namespace], "east")).includes("kube-root-ca.crt"),
      { what: "the member answers" },
    );
  }

  const create = (name: string): Promise<string> => asAlice(["create", "configmap", name, "-n", namespace], "east");

  test("answers reads and writes, brings changes to watches, and upgrades connections", async () => {
    const who = JSON.parse(await asAlice(["auth", "whoami", "-o", "json"], "east"));
    expect(who.status.userInfo).toMatchObject({
      username: "legation:alice",
      groups: ["legation:developers", "system:authenticated"],
    });
    const seen = watchConfigMaps(namespace, "east");
    const frames = await webSocketWatch("east", `/api/v1/namespaces/${namespace}/configmaps?watch=true`);
    await create("first");
    await eventually(() => seen().includes("configmap/first"), { what: "the watch brings the new object" });
    await eventually(() => frames().includes('"name":"first"'), { what: "the WebSocket brings the new object" });
    await expect(asAlice(["get", "nodes"], "east")).rejects.toThrow(
      'User "legation:alice" cannot list resource "nodes"',
    );
  });

  test("answers again through the next leader when the leader is killed", async () => {
    await running().controller.stop("SIGKILL");
    await expect(asAlice(["get", "configmaps", "-n", namespace], "east")).rejects.toThrow(
      "Cluster east cannot be reached",
    );
    await reached();
    expect(second.log()).toContain('"msg":"agent connected"');
    const seen = watchConfigMaps(namespace, "east");
    await create("second");
    await eventually(() => seen().includes("configmap/second"), { what: "a new watch brings the new object" });
  });
});
