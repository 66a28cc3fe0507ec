import { readFile } from "node:fs/promises";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Secret } from "../../src/api/kubernetes.ts";
import { clusters } from "../../src/api/resources.ts";
import { loadMemberRole } from "../../src/cli/join/grant-access.ts";
import { joinByKubeconfig } from "../../src/cli/join/join.ts";
import { CommandConnections } from "../../src/cli/shared/connections.ts";
import type { Connection } from "../../src/cli/shared/session.ts";
import type { ClusterClient } from "../../src/kube/client.ts";
import { KubeError } from "../../src/kube/errors.ts";
import { secrets } from "../../src/kube/resources.ts";
import { kubeError } from "../support/builders/kube-error.ts";
import type { Cluster } from "../support/clusters/types.ts";
import { hostCluster, memberCluster } from "../support/harness/clusters.ts";
import { kubectl } from "../support/harness/kubectl.ts";
import { pristine, removeLegation } from "../support/harness/pristine.ts";
import { eventuallyPasses } from "../support/harness/wait.ts";
import { legationOn } from "../support/legation/process.ts";

const WRITES = ["create", "createSubresource", "patch", "replace", "delete"] as const;

/** Fails one write: before it reaches the server, or after it took effect. */
class Fault {
  #left: number;
  readonly #after: boolean;
  happened = false;

  constructor(write: number, after: boolean) {
    this.#left = write;
    this.#after = after;
  }

  /** Returns the same client with this fault in its writes. */
  in(client: ClusterClient): ClusterClient {
    return new Proxy(client, {
      get: (target, property) => {
        const method: unknown = Reflect.get(target, property, target);
        if (typeof method !== "function") return method;
        if (!WRITES.some((write) => write === property)) return method.bind(target);
        return async (...args: unknown[]): Promise<unknown> => {
          this.#left -= 1;
          const fails = this.#left === 0;
          if (!fails) return method.apply(target, args);
          this.happened = true;
          if (this.#after) await method.apply(target, args);
          throw kubeError(this.#after ? "AnswerLost" : "Forbidden", this.#after ? "the answer was lost" : "refused", {
            cluster: target.cluster,
            verb: String(property),
            resource: "anything",
          });
        };
      },
    });
  }
}

/** Runs `happens` right before an object of a kind is created. */
function meanwhile(plural: string, happens: (client: ClusterClient) => Promise<unknown>): Pick<Fault, "in"> {
  const get = (target: ClusterClient, property: string | symbol): unknown => {
    const method: unknown = Reflect.get(target, property, target);
    if (typeof method !== "function") return method;
    if (property !== "create") return method.bind(target);
    return async (...args: [{ readonly plural: string }, unknown, { readonly dryRun?: boolean }]): Promise<unknown> => {
      if (args[0].plural === plural && args[2].dryRun !== true) await happens(target);
      return method.apply(target, args);
    };
  };
  return { in: (client) => new Proxy(client, { get }) };
}

let host: Cluster;
let west: Cluster;
let connections: CommandConnections;
let hostConnection: Connection;
let memberConnection: Connection;

const traces = async (cluster: Cluster): Promise<string[]> => {
  const kinds = "clusterroles,clusterrolebindings,serviceaccounts,secrets,namespaces";
  const path = 'jsonpath={range .items[*]}{.kind} {.metadata.namespace}/{.metadata.name}{"\\n"}{end}';
  const names = await kubectl(cluster, ["get", kinds, "-A", "-o", path]);
  return names.split("\n").filter((line) => line.includes("legation"));
};

const OFF = { definitions: false, agent: false, homeApiThroughAgent: false, access: false, removeAccess: false };

const tryJoin = async (fault: Pick<Fault, "in">): Promise<unknown> =>
  joinByKubeconfig(
    { ...OFF, name: "west", labels: {}, types: [], timeout: 500 },
    {
      host: fault.in(hostConnection.client),
      member: { ...memberConnection, client: fault.in(memberConnection.client) },
      connectText: (text, as) => connections.openText(text, as),
      role: await loadMemberRole(false),
      hostName: "host",
      signal: AbortSignal.timeout(60_000),
      report: () => {},
    },
  ).catch((error: unknown) => error);

beforeAll(async () => {
  host = hostCluster();
  west = memberCluster("west");
  connections = new CommandConnections({}, "legation-test");
  hostConnection = await connections.open({ kubeconfig: host.kubeconfig }, "host");
  memberConnection = await connections.open({ kubeconfig: west.kubeconfig }, "west");
  await pristine(host, west);
  expect(await legationOn(host, "install", "--webhook-url", "https://127.0.0.1:1")).toMatchObject({ code: 0 });
});

afterAll(async () => {
  await connections.close();
  await removeLegation(host);
});

describe("a join that fails", () => {
  const hostTraces = async (): Promise<unknown> => [
    await traces(host),
    (await hostConnection.client.list(clusters)).items,
  ];

  // The Cluster's dry run on the host; in the member the namespace, ClusterRole, ServiceAccount, ClusterRoleBinding, the two for types, and the token.
  const writes = [1, 2, 3, 4, 5, 6, 7, 8];
  test.each(
    writes.flatMap(
      (write) =>
        [
          [write, "is refused", false],
          [write, "takes effect, but its answer is lost", true],
        ] as const,
    ),
  )("leaves the host as it was when write %d %s, and unjoin removes the rest", async (write, _how, after) => {
    const before = [await hostTraces(), await traces(west)];
    const fault = new Fault(write, after);
    expect(await tryJoin(fault)).toBeInstanceOf(KubeError);
    expect(fault.happened).toBe(true);
    expect(await hostTraces()).toEqual(before[0]);
    const left = await legationOn(host, "unjoin", "west", "--member-kubeconfig", west.kubeconfig);
    expect(left.code, left.stderr).toBe(0);
    await eventuallyPasses(async () => expect([await hostTraces(), await traces(west)]).toEqual(before));
  });

  test.each([
    [9, "Secret", true],
    [10, "Cluster", false],
  ])("is removed by unjoin when write %d, that of the %s, fails (answer lost: %s)", async (write, _what, after) => {
    const before = [await hostTraces(), await traces(west)];
    const fault = new Fault(write, after);
    expect(await tryJoin(fault)).toBeInstanceOf(KubeError);
    const left = await legationOn(host, "unjoin", "west", "--member-kubeconfig", west.kubeconfig);
    expect(left.code, left.stderr).toBe(0);
    await eventuallyPasses(async () => expect([await hostTraces(), await traces(west)]).toEqual(before));
  });
});

describe("a join of a name that another join takes meanwhile", () => {
  const ref = { namespace: "legation-system", name: "member-west" };
  const theirSecret = async (cluster: Cluster): Promise<Secret> => ({
    apiVersion: "v1",
    kind: "Secret",
    metadata: {
      ...ref,
      labels: { "legation.dev/cluster": "west" },
      annotations: { "legation.dev/token-expires": "2027-01-01T00:00:00Z" },
    },
    data: { kubeconfig: (await readFile(cluster.kubeconfig)).toString("base64") },
  });

  const theirCluster = (client: ClusterClient): Promise<unknown> =>
    client.create(clusters, {
      apiVersion: "legation.dev/v1alpha1",
      kind: "Cluster",
      metadata: { name: "west" },
      spec: { credentialsSecret: { name: ref.name } },
    });

  // Objects of earlier tests and of this one.
  const clean = async (): Promise<void> => {
    await kubectl(host, ["-n", ref.namespace, "delete", "secret", ref.name, "--ignore-not-found"]);
    await kubectl(host, ["delete", "clusters.legation.dev", "west", "--ignore-not-found"]);
    await kubectl(west, ["delete", "namespace", "legation-system", "--ignore-not-found"]);
    await kubectl(west, ["delete", "clusterroles", "-l", "legation.dev/host"]);
  };
  beforeEach(clean);
  afterAll(clean);

  test("keeps the other join's Secret if that was created first", async () => {
    const theirs = await theirSecret(host);
    const raced = meanwhile("secrets", (client) => client.create(secrets, theirs));
    expect(await tryJoin(raced)).toMatchObject({
      exit: "refused",
      message: expect.stringContaining("another client wrote it meanwhile"),
    });
    expect((await hostConnection.client.get(secrets, ref)).data).toEqual(theirs.data);
  });

  test("keeps the other join's Cluster", async () => {
    expect(await tryJoin(meanwhile("clusters", theirCluster))).toMatchObject({
      exit: "refused",
      message: expect.stringContaining("another `legation join` has taken this name meanwhile"),
    });
    const { items } = await hostConnection.client.list(clusters);
    expect(items).toMatchObject([{ metadata: { name: "west" }, spec: { credentialsSecret: { name: ref.name } } }]);
    expect(items[0]?.metadata.annotations).toBeUndefined();
  });
});
