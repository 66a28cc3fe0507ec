import { expect, test } from "vitest";
import { readMemberDetail } from "../../../../src/cli/explain/member.ts";
import type { OpenMember } from "../../../../src/cli/shared/open-member.ts";
import { readMemberPage } from "../../../../src/cli/ui/member-page.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { pod, runningStatus } from "../../../support/builders/pod.ts";
import { type FakeMethods, fakeClient } from "../../../support/clients/fake-client.ts";
import { host, type MemberParts } from "../simulation/host.ts";
import { viewerOf } from "./viewer.ts";

const signal = new AbortController().signal;

function hostOf(parts: MemberParts, list: FakeMethods["list"] = async () => NONE) {
  const { clusters, nodes } = host({ west: parts });
  return fakeClient({
    find: async ({ kind }) => (kind === "Cluster" ? clusters : nodes)[0] ?? undefined,
    list: async (resource, options) =>
      resource.kind === "Secret" ? { ...NONE, items: [SECRET] } : await list(resource, options),
  });
}

function read(parts: MemberParts, openMember: OpenMember, list?: FakeMethods["list"]) {
  return readMemberPage(viewerOf(hostOf(parts, list), openMember), "west");
}

const SECRET = {
  metadata: {
    name: "member-west",
    uid: "s",
    resourceVersion: "1",
    annotations: { "legation.dev/token-expires": "2999-01-31T00:00:00Z" },
  },
};
const NONE = { items: [], resourceVersion: "1", size: 0 };
const node = {
  metadata: { name: "n-1", uid: "1", resourceVersion: "1" },
  status: { allocatable: { cpu: "8", memory: "16Gi" }, conditions: [{ type: "Ready", status: "True" }] },
};

test("a member's nodes have the room that all its unfinished pods leave", async () => {
  const spec = (cpu: string) => ({ nodeName: "n-1", containers: [{ name: "main", resources: { requests: { cpu } } }] });
  const ended = { ...runningStatus(), phase: "Succeeded" };
  const pods = [pod({ spec: spec("2"), status: runningStatus() }), pod({ spec: spec("4"), status: ended })];
  const west = fakeClient({
    list: async ({ kind }) => ({ ...NONE, items: kind === "Node" ? [node] : pods }),
  });
  const view = await read({}, async () => west);
  expect(view.nodes).toEqual([
    {
      name: "n-1",
      isReady: true,
      isCordoned: false,
      pods: 1,
      room: [
        { resource: "cpu", allocatable: 8, free: 6 },
        { resource: "memory", allocatable: 16 * 2 ** 30, free: 16 * 2 ** 30 },
      ],
    },
  ]);
  expect(view).toMatchObject({
    name: "west",
    troubles: [],
    credentials: { secret: "member-west", state: "renewed", expires: "2999-01-31T00:00:00Z" },
    conditions: [{ type: "Ready" }],
  });
});

test("says why its nodes and events are not shown to a user without the rights", async () => {
  const view = await read(
    {},
    () => Promise.reject(kubeError("Forbidden")),
    () => Promise.reject(kubeError("Forbidden")),
  );
  expect(view).toMatchObject({ nodesNotRead: expect.stringContaining("you may not"), events: undefined });
});

test("names what is wrong with it, and the remedy", async () => {
  const message = "connect ECONNREFUSED";
  const lost = {
    type: "Ready",
    status: "False",
    reason: "R",
    message,
    lastTransitionTime: "2026-01-01T00:00:00Z",
  } as const;
  const view = await read({ status: { conditions: [lost] }, node: { unschedulable: true } }, () =>
    Promise.reject(kubeError("AnswerLost")),
  );
  expect(view.troubles).toMatchObject([
    {
      what: `west is not ready: ${message}`,
      remedy: "`legation doctor --members west` finds the cause",
      since: "2026-01-01T00:00:00Z",
      by: "legation controller",
    },
    { remedy: expect.stringContaining("kubectl uncordon") },
  ]);
});

test("shows the document that `legation status` shows", async () => {
  const message = "kubelet stopped posting node status.";
  const list: FakeMethods["list"] = async ({ kind }) =>
    kind === "Event" ? { ...NONE, items: [{ ...node, message }] } : NONE;
  const {
    nodes: _,
    nodesNotRead: __,
    ...document
  } = await read({}, () => Promise.reject(kubeError("AnswerLost")), list);
  const status = await readMemberDetail(hostOf({}, list), { name: "west", namespace: "team" }, signal);
  expect(status).toMatchObject(document);
  expect(document.events).toMatchObject([{ message }, { message }]);
});
