import { describe, expect, onTestFinished, test } from "vitest";
import { COPY_LABEL, HOST_LABEL, OWNER_ANNOTATION } from "../../../../../src/api/keys.ts";
import type { ExportCondition, KubeObject, ServiceExport, Stored } from "../../../../../src/api/kubernetes.ts";
import { ExportStatus } from "../../../../../src/controllers/services/exports/status.ts";
import { toExport } from "../../../../../src/copies/services.ts";
import { createLogger } from "../../../../../src/telemetry/logger.ts";
import { listing, writing } from "../../../../support/builders/answers.ts";
import { HOST } from "../../../../support/builders/claim.ts";
import { servingExports } from "../../../../support/builders/discovery.ts";
import { member } from "../../../../support/builders/member.ts";
import { fakeClient } from "../../../../support/clients/fake-client.ts";
import { FakeClock } from "../../../../support/clock/fake-clock.ts";
import { quietClient } from "../../quiet-client.ts";

const source = { metadata: { name: "web", namespace: "team", uid: "service", resourceVersion: "7" } };
const onHost: Stored<ServiceExport> = { metadata: { ...source.metadata, uid: "export", resourceVersion: "9" } };
const valid: ExportCondition = { type: "Valid", status: "True", reason: "Ok", message: "fine" };

/** Returns the ServiceExport that this host created in a member, changed by the parts. */
function made({
  labels = {},
  annotations = {},
  ...metadata
}: Partial<KubeObject["metadata"]> = {}): Stored<ServiceExport> {
  const { metadata: own } = toExport(
    { metadata: { ...source.metadata, uid: "copy" } },
    source,
    HOST,
    "multicluster.x-k8s.io/v1beta1",
  );
  return {
    metadata: {
      ...own,
      name: "web",
      uid: "made",
      resourceVersion: "3",
      ...metadata,
      labels: { ...own?.labels, ...labels },
      annotations: { ...own?.annotations, ...annotations },
    },
    status: { conditions: [valid] },
  };
}

interface Scene {
  readonly members: Readonly<Record<string, readonly Stored<ServiceExport>[]>>;
  /** The members with pods of the namespace. */
  readonly withPods?: readonly string[];
  readonly state?: "present" | "missing" | "unknown";
}

/** Returns the writes on the host for these ServiceExports of members, and the members' list requests. */
async function telling({ members, withPods = Object.keys(members), state = "present" }: Scene) {
  const clock = new FakeClock();
  const log = createLogger({ level: "silent" });
  const writes: string[] = [];
  let shown = onHost;
  const asked: (string | undefined)[] = [];
  const host = fakeClient(
    writing(({ namespace, name, body, subresource }) => {
      const { metadata, status }: Partial<ServiceExport> = body;
      const told = status?.conditions?.map(({ type, status: is, message }) => `${type} ${is} ${message}`);
      writes.push(`${namespace}/${name} ${subresource} ${metadata?.uid}: ${told?.join()}`);
      shown = { metadata: { ...onHost.metadata, resourceVersion: String(9 + writes.length) } };
      if (status !== undefined) shown.status = status;
      return { metadata: shown.metadata };
    }),
  );
  const joined = Object.entries(members).map(([name, items]) => {
    const list = listing((_plural, { labelSelector }) => {
      asked.push(labelSelector);
      return items;
    }, "7");
    return member(name, quietClient([], { raw: servingExports("v1beta1"), list }));
  });
  const status = new ExportStatus({
    host,
    hostId: HOST.id,
    exportOf: (namespace: string, name: string) =>
      state === "present" && `${namespace}/${name}` === "team/web"
        ? { state, object: shown }
        : { state: state === "present" ? "missing" : state },
    counts: (member: string, namespace: string) => withPods.includes(member) && namespace === "team",
    clock,
    log,
  });
  onTestFinished(() => status.stop());
  for (const one of joined) status.listenTo(one);
  await clock.advance(100);
  return { clock, status, writes, asked, joined };
}

const told = (words: string): string[] => [`team/web status export: Valid True ${words}`];

describe("the status of the host's ServiceExport", () => {
  test.each<[string, Scene, string[]]>([
    ["has the conditions of the one that this host created", { members: { west: [made()] } }, told("west: fine")],
    ["ignores another host's", { members: { west: [made({ labels: { [HOST_LABEL]: "other-id" } })] } }, []],
    [
      "ignores another host's beside this host's in another member",
      { members: { east: [made({ labels: { [HOST_LABEL]: "other-id" } })], west: [made()] } },
      told("west: fine"),
    ],
    ["ignores the member's own", { members: { west: [{ ...onHost, status: { conditions: [valid] } }] } }, []],
    ["ignores one that is no copy", { members: { west: [made({ labels: { [COPY_LABEL]: "no" } })] } }, []],
    ["ignores one without an owner", { members: { west: [made({ annotations: { [OWNER_ANNOTATION]: "" } })] } }, []],
    [
      "has the conditions of members that have pods of the namespace",
      { members: { east: [made()], west: [made()] }, withPods: ["east"] },
      told("east: fine"),
    ],
    ["of none by another name", { members: { west: [made({ name: "db" })] } }, []],
    ["of none in another namespace", { members: { west: [made({ namespace: "other" })] } }, []],
    ["is left alone once the host no longer exports it", { members: { west: [made()] }, state: "missing" }, []],
    [
      "is left alone before it is known whether the host exports it",
      { members: { west: [made()] }, state: "unknown" },
      [],
    ],
  ])("%s", async (_, scene, expected) => {
    expect((await telling(scene)).writes).toEqual(expected);
  });
});

test("asks members for the copies that this host created, and for no others", async () => {
  const { asked } = await telling({ members: { west: [made()] } });
  expect(asked).toEqual([`${HOST_LABEL}=${HOST.id},${COPY_LABEL}=true`]);
});

test("ignores the conditions of a member that left", async () => {
  const { clock, status, writes, joined } = await telling({ members: { east: [made()], west: [made()] } });
  expect(writes.at(-1)).toBe(told("east: fine; west: fine")[0]);
  status.onMembers(joined.filter(({ name }) => name === "west"));
  await clock.advance(20_000);
  expect(writes.at(-1)).toBe(told("west: fine")[0]);
});
