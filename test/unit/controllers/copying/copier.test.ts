import { expect, onTestFinished, test } from "vitest";
import type { KubeObject, Stored } from "../../../../src/api/kubernetes.ts";
import type { Member } from "../../../../src/clusters/member.ts";
import { Copier } from "../../../../src/controllers/copying/copier.ts";
import type { Demand } from "../../../../src/controllers/copying/model.ts";
import { type CopiedKind, toCopy } from "../../../../src/copies/kind.ts";
import { delegatedKind } from "../../../../src/copies/objects.ts";
import type { ClusterClient } from "../../../../src/kube/client.ts";
import { Mutex } from "../../../../src/runtime/mutex.ts";
import { listing, writing } from "../../../support/builders/answers.ts";
import { HOST } from "../../../support/builders/claim.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { member } from "../../../support/builders/member.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";
import { surroundings } from "../fleet.ts";
import { quietClient } from "../quiet-client.ts";

/** A custom resource that is its own user, as no pod names it. */
interface Widget extends KubeObject {
  spec?: { size: number };
  [field: string]: unknown;
}

const WIDGET: CopiedKind<Widget> = {
  resource: { group: "example.com", version: "v1", plural: "widgets", kind: "Widget", namespaced: true },
  body: ({ spec }) => (spec === undefined ? {} : { spec }),
  content: ({ spec }) => ({ "/spec": spec }),
};

const WIDGETS = {
  metadata: { name: "widgets.example.com" },
  spec: { group: "example.com", version: "v1", plural: "widgets", kind: "Widget" },
};
const metadata = { name: "gear", namespace: "team", uid: "source-uid", resourceVersion: "7" };
const gear: Stored<Widget> = { metadata, spec: { size: 1 } };

function copyOf(source: Stored<Widget>): Stored<Widget> {
  const copy = toCopy(WIDGET, source, HOST);
  return { ...copy, metadata: { ...copy.metadata, name: "gear", uid: "copy-uid", resourceVersion: "3" } };
}

/** A copy that a client of the member took the owner annotation off. */
const ownerless: Stored<Widget> = {
  ...copyOf(gear),
  metadata: { ...copyOf(gear).metadata, annotations: {} },
};

interface Clusters {
  /** Copies have a record of what was applied to them. */
  readonly applied?: boolean;
  readonly onHost?: readonly Stored<Widget>[];
  readonly inMember?: readonly Stored<Widget>[];
  readonly demand?: Demand;
  readonly refuses?: string;
}

const listed = (items: readonly KubeObject[]): ClusterClient["list"] =>
  listing((_plural, { labelSelector, fieldSelector }) => {
    return fieldSelector === undefined || labelSelector !== undefined ? items : [];
  }, "7");

/** Returns a copier of widgets whose users are not pods. */
function copierFor(
  members: readonly Member[],
  clock: FakeClock,
  { onHost = [gear], demand = "needed", applied }: Clusters,
) {
  const told: string[] = [];
  const changes: string[] = [];
  const copier = new Copier<Widget>({
    ...surroundings(members, clock),
    name: "widgets",
    kinds: [
      applied === true
        ? { ...WIDGET, applied: { ...delegatedKind(WIDGETS, (text) => text).applied, wasMade: () => true } }
        : WIDGET,
    ],
    clause: ", which the author wants everywhere",
    host: quietClient([], { list: listed(onHost) }),
    recorder: { record: (_about, { message }) => told.push(message) },
    users: {
      areKnown: () => true,
      use: () => ({ demand }),
      anyNeeds: () => true,
      onCopy: (member, { name }) => changes.push(`${member}/${name}`),
      onSource: () => {},
      onSources: () => {},
      onMember: () => {},
    },
  });
  onTestFinished(() => copier.stop());
  copier.sources.need("Widget", "team");
  copier.onMembers();
  return { copier, told, changes };
}

/** Returns what a copier of widgets writes in a member, and what it tells. */
async function copying(clusters: Clusters) {
  const { inMember = [], refuses } = clusters;
  const clock = new FakeClock();
  const writes: string[] = [];
  const client = quietClient([], {
    list: listed(inMember),
    ...writing(({ verb, name }) => {
      writes.push(`${verb} ${name}`);
      if (verb === "create" && refuses !== undefined) {
        throw kubeError("Forbidden", refuses, { verb, resource: "widgets" });
      }
      return { metadata: { uid: "copy-uid", resourceVersion: "4" } };
    }),
  });
  const west = member("west", client);
  const { copier, told, changes } = copierFor([west], clock, clusters);
  await clock.advance(10);
  copier.enqueue({ member: "west", kind: "Widget", namespace: "team", name: "gear" });
  await clock.advance(11_000);
  const standing = copier.standing(west, { kind: "Widget", namespace: "team", name: "gear" });
  return { writes: [...new Set(writes)], told, changes, standing };
}

const larger: Stored<Widget> = { ...gear, spec: { size: 2 } };

test.each<[string, Clusters, string[]]>([
  ["creates it when its users need it", {}, ["create gear"]],
  ["leaves it out when no user needs it", { demand: "unused" }, []],
  ["leaves it alone when it equals its source", { inMember: [copyOf(gear)] }, []],
  ["patches it when it drifts", { inMember: [copyOf(larger)] }, ["patch gear"]],
  ["patches it while users may use it", { inMember: [copyOf(larger)], demand: "kept" }, ["patch gear"]],
  ["leaves it as it is for users that keep it", { inMember: [copyOf(larger)], demand: "frozen" }, []],
  ["deletes it with its source", { onHost: [], inMember: [copyOf(gear)] }, ["delete gear"]],
  ["deletes it after its last user", { inMember: [copyOf(gear)], demand: "unused" }, ["delete gear"]],
  [
    "deletes one without its owner annotation with its source",
    { onHost: [], inMember: [ownerless], applied: true },
    ["delete gear"],
  ],
  [
    "deletes one without it after its last user",
    { inMember: [ownerless], demand: "unused", applied: true },
    ["delete gear"],
  ],
  ["leaves what no record tells from the member's own", { inMember: [ownerless], demand: "unused" }, []],
])("handles a copy for users that are no pods: %s", async (_, clusters, expected) => {
  expect((await copying(clusters)).writes).toEqual(expected);
});

test("records an event on the source of a refused copy, and reports it to its users", async () => {
  const { told, changes, standing } = await copying({ refuses: "exceeded quota" });
  const why = "its API server refused Widget gear, which the author wants everywhere: exceeded quota";
  expect(told).toEqual([`west: ${why}`]);
  expect(changes).toContain("west/gear");
  expect(standing).toMatchObject({ exists: false, held: "Refused", refusal: { message: why } });
});

test("leaves the first list of a member's copies its turn when the member answers, until somebody waits for it", async () => {
  const clock = new FakeClock();
  const lists: string[] = [];
  const members = ["west", "east", "north"].map((cluster) => {
    const list: ClusterClient["list"] = async () => {
      lists.push(cluster);
      return { items: [], resourceVersion: "7", size: 0 };
    };
    return member(cluster, quietClient([], { list }), { rest: { mutex: new Mutex(), share: 1 } });
  });
  const { copier } = copierFor(members, clock, { demand: "unused" });
  for (const each of members) copier.onMember(each);
  await clock.advance(10);
  // The first one has nobody to wait for.
  expect(lists).toEqual(["west"]);
  expect(members.map((each) => copier.copies.read(each))).toEqual([true, false, false]);
  await clock.advance(10);
  expect(lists).toEqual(["west", "east", "north"]);
});
