import { describe, expect, test } from "vitest";
import type { Cluster } from "../../../../../src/api/cluster.ts";
import type { KubeNode, Stored } from "../../../../../src/api/kubernetes.ts";
import { deadlineOf } from "../../../../../src/cli/explain/installation/check.ts";
import { checkMember, identityFindings, readyFinding } from "../../../../../src/cli/explain/installation/member.ts";
import { fakeClient } from "../../../../support/clients/fake-client.ts";
import { connection } from "../../session.ts";
import { refusing, signal, stored } from "./given.ts";

describe("a member", () => {
  const cluster = (status: Cluster["status"], fields: Partial<Cluster["spec"]> = {}): Stored<Cluster> => ({
    metadata: { name: "west", ...stored, annotations: { "legation.dev/member-uid": "one" } },
    spec: { credentialsSecret: { name: "member-west" }, ...fields },
    ...(status === undefined ? {} : { status }),
  });
  const ready = (status: "True" | "False") => ({
    conditions: [{ type: "Ready", status, reason: "R", message: "why", lastTransitionTime: "2026-11-27T11:00:00Z" }],
  });
  const node = (unschedulable: boolean): Stored<KubeNode> => ({
    metadata: { name: "legation-west", ...stored, labels: { "legation.dev/cluster": "west" } },
    spec: { unschedulable },
    status: { conditions: [{ type: "Ready", status: "True" }] },
  });

  test.each([
    ["ready", cluster(ready("True")), node(false), "OK", "west is ready"],
    ["cordoned", cluster(ready("True")), node(true), "WARN", "cordoned"],
    ["not ready", cluster(ready("False")), node(false), "FAIL", "west is not ready: why"],
    ["unheard of", cluster(undefined), undefined, "FAIL", "no controller has reported on it"],
  ])("that is %s", (_, given, of, state, what) => {
    expect(readyFinding(given, of)).toMatchObject({ state, what: expect.stringContaining(what) });
  });

  test("is told from another cluster by its uid", () => {
    expect(identityFindings(cluster(undefined), "one")).toMatchObject([{ state: "OK" }]);
    expect(identityFindings(cluster(undefined), "other")).toMatchObject([
      { state: "FAIL", remedy: expect.stringContaining("legation.dev/member-uid=other") },
    ]);
    expect(identityFindings(cluster(undefined), undefined)).toEqual([]);
  });
});

describe("a member that is asked", () => {
  const cluster = { metadata: { name: "west", ...stored }, spec: { credentialsSecret: { name: "member-west" } } };
  const data = { kubeconfig: Buffer.from("apiVersion: v1").toString("base64") };
  const secret = { metadata: { name: "member-west", ...stored }, data };
  const context = { node: undefined, rights: [], mcs: false, hostClock: undefined, now: 0, cluster };
  const host = (found: object | undefined) => fakeClient({ find: async () => found });

  test("that hangs is given up at its deadline", async () => {
    const deadline = deadlineOf(signal, 20);
    const hanging = fakeClient({
      raw: ({ signal: of }) =>
        new Promise((_, reject) => {
          of?.addEventListener("abort", () => refusing("AnswerLost", "gave up")().catch(reject));
        }),
    });
    const session = { connectText: async () => connection(hanging, { server: "https://west" }) };
    const { findings } = await checkMember({ ...context, host: host(secret), deadline, session });
    expect(findings.at(-1)).toMatchObject({
      state: "FAIL",
      what: "west does not answer at https://west: no answer within 0.02 s",
    });
  });

  test.each<["True" | "False", string, string]>([
    ["True", "SKIP", "west is at https://west, a name that this machine does not know"],
    ["False", "FAIL", "west does not answer at https://west"],
  ])("at a name that only the controller knows, with Ready %s, is %s", async (ready, state, what) => {
    const session = {
      connectText: async () => {
        const client = fakeClient({ raw: refusing("NotSent", "getaddrinfo ENOTFOUND west") });
        return connection(client, { server: "https://west" });
      },
    };
    const status = {
      conditions: [{ type: "Ready", status: ready, message: "probe failed", reason: "Probe", lastTransitionTime: "" }],
    };
    const { findings } = await checkMember({
      ...context,
      cluster: { ...cluster, status },
      host: host(secret),
      deadline: deadlineOf(signal, 1000),
      session,
    });
    expect(findings.at(-1)).toMatchObject({ state, what: expect.stringContaining(what) });
  });

  test.each([
    ["directly", {}, "legation join west --member-kubeconfig FILE"],
    ["through its agent", { agent: {} }, "legation join west --agent"],
  ])("that is reached %s is joined again in the same way without its Secrets", async (_, way, remedy) => {
    const session = { connectText: async () => connection() };
    const { findings } = await checkMember({
      ...context,
      cluster: { ...cluster, spec: { ...cluster.spec, ...way, access: { prefix: "" } } },
      host: host(undefined),
      deadline: deadlineOf(signal, 1_000),
      session,
    });
    const what = "west: Secret legation-system/member-west with its credentials is missing";
    expect(findings).toContainEqual({ state: "FAIL", what, remedy });
    expect(findings).toContainEqual(expect.objectContaining({ state: "FAIL", remedy: `${remedy} --access` }));
  });
});
