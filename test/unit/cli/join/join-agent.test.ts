import { beforeEach, describe, expect, test } from "vitest";
import type { Cluster } from "../../../../src/api/cluster.ts";
import { HUB_SECRET } from "../../../../src/api/keys.ts";
import { clusters } from "../../../../src/api/resources.ts";
import { joinByManifest } from "../../../../src/cli/join/join.ts";
import type { JoinOptions } from "../../../../src/cli/join/validate.ts";
import type { Manifest } from "../../../../src/cli/shared/manifests.ts";
import { secrets } from "../../../../src/kube/resources.ts";
import { MemoryCluster } from "../../../support/api-server/memory-cluster.ts";
import { NO_FLAGS } from "./joining.ts";

const HOST = "01234567-host";
const NAME = "legation-agent-01234567";
const role = {
  apiVersion: "rbac.authorization.k8s.io/v1",
  kind: "ClusterRole",
  metadata: { name: "legation-host" },
  rules: [],
};

let host: MemoryCluster;
beforeEach(() => {
  host = new MemoryCluster("host", HOST);
});

async function joinWest(options: Partial<JoinOptions> = {}): Promise<readonly Manifest[]> {
  const agent = { agent: true, hubAddress: "hub.example.org:8132", agentImage: "legation:1" };
  const context = {
    host: host.client,
    role,
    hostName: "host",
    connectText: () => Promise.reject(new Error("not in this test")),
    signal: new AbortController().signal,
    report: () => {},
  };
  return await joinByManifest({ ...NO_FLAGS, name: "west", ...agent, ...options }, context);
}

const specOf = (): Cluster["spec"] | undefined => host.peek<Cluster>(clusters, { name: "west" })?.spec;

/** Returns the kinds of the agent's objects, and the arguments of its container. */
function agentOf(manifests: readonly Manifest[]): { readonly kinds: string[]; readonly text: string } {
  const own = manifests.filter(({ metadata }) => metadata.name === NAME);
  return { kinds: own.map(({ kind }) => kind), text: JSON.stringify(own) };
}

describe("a join with an agent", () => {
  test("writes nothing where an operator's own Secret has the name", async () => {
    host.put(secrets, { metadata: { namespace: "legation-system", name: "member-west" } });
    await expect(joinWest()).rejects.toThrow("Secret legation-system/member-west: is there already");
    expect(host.peek(secrets, { namespace: "legation-system", name: HUB_SECRET })).toBeUndefined();
  });

  test("gives the agent neither Service nor the right to read it, unless pods are to use it", async () => {
    const { kinds, text } = agentOf(await joinWest());
    expect(kinds).toEqual(["ServiceAccount", "Role", "RoleBinding", "Secret", "Deployment"]);
    expect(text).not.toContain("services");
    expect(text).not.toContain("home-api");
    expect(specOf()?.agent).toEqual({});
  });

  test("leads pods of this host alone to the home API", async () => {
    const manifests = await joinWest({ homeApiThroughAgent: true });
    const { kinds, text } = agentOf(manifests);
    expect(kinds).toContain("Service");
    expect(text).toContain(`"--home-api-listen=:6443","--home-api-service=${NAME}"`);
    const policy = manifests.find(({ kind }) => kind === "NetworkPolicy");
    expect(policy?.spec).toMatchObject({
      policyTypes: ["Ingress"],
      ingress: [
        {
          from: [{ namespaceSelector: {}, podSelector: { matchLabels: { "legation.dev/host": HOST } } }],
          ports: [{ port: "home-api" }],
        },
        { ports: [{ port: "health" }] },
      ],
    });
    expect(specOf()?.agent).toEqual({ homeAPI: true });
  });

  test("again keeps that way to the home API, until an address is given", async () => {
    await joinWest({ homeApiThroughAgent: true });
    expect(agentOf(await joinWest()).kinds).toContain("Service");
    expect(specOf()?.agent).toEqual({ homeAPI: true });
    const direct = await joinWest({ homeApiServer: "https://10.0.0.1:6443" });
    expect(agentOf(direct).kinds).not.toContain("Service");
    expect(specOf()).toMatchObject({ homeAPI: { server: "https://10.0.0.1:6443" } });
    expect(specOf()?.agent?.homeAPI ?? false).toBe(false);
  });

  test("takes the address of an earlier join away where the agent is to lead pods there", async () => {
    await joinWest({ homeApiServer: "https://10.0.0.1:6443" });
    await joinWest({ homeApiThroughAgent: true });
    expect(specOf()?.agent).toEqual({ homeAPI: true });
    expect(specOf()?.homeAPI ?? undefined).toBeUndefined();
  });
});
