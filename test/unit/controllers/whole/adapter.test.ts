import { globSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { delegatedTypeSchema } from "../../../../src/api/delegated-type.ts";
import { WHOLE_FINALIZER, WHOLE_KEY, WHOLE_VALUE } from "../../../../src/api/keys.ts";
import type { KubeObject, ObjectMeta, Stored } from "../../../../src/api/kubernetes.ts";
import { loadManifests } from "../../../../src/cli/shared/manifests.ts";
import { packageRoot } from "../../../../src/cli/shared/package-root.ts";
import { Member } from "../../../../src/clusters/member.ts";
import type { WholeAdapter } from "../../../../src/controllers/whole/adapter.ts";
import type { Observed } from "../../../../src/controllers/whole/model.ts";
import { ObjectAdapter } from "../../../../src/controllers/whole/objects/adapter.ts";
import { createLogger } from "../../../../src/telemetry/logger.ts";
import { JobAdapter } from "../../../../src/whole/jobs/adapter.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";

const clock = new FakeClock();
const west = new Member({
  cluster: {
    metadata: { name: "west", uid: "1", resourceVersion: "1" },
    spec: { credentialsSecret: { name: "member-west" } },
  },
  client: fakeClient({}),
  hostId: "host-id",
  events: { emit: () => {} },
  clock,
  log: createLogger({ level: "silent" }),
});
const options = {
  rules: {
    parse: () => ({ ok: true, placement: {} }) as const,
    namespaceLabels: () => ({}),
    optedIn: () => true,
    of: () => ({ policy: [], wishes: [] }),
  },
  registry: { members: () => [west], member: () => west, cluster: () => undefined },
  clock,
  onChange: () => {},
};
const noCopies = { copies: { of: () => undefined } };

/** Checks what the engine relies on in every adapter. `assignment` gives the object to `west`; `shown` are two statuses. */
function conforms<T extends KubeObject, Assignment, Shown, O extends Observed<T, Shown>>(
  title: string,
  make: () => WholeAdapter<T, Assignment, Shown, O>,
  { fields, assignment, shown }: { fields: T; assignment: Assignment; shown: Shown },
): void {
  const object = (metadata: Partial<ObjectMeta> = {}): Stored<T> => {
    const base = {
      namespace: "team",
      name: "one",
      uid: "u1",
      resourceVersion: "1",
      labels: { [WHOLE_KEY]: WHOLE_VALUE },
    };
    return { ...fields, metadata: { ...base, ...metadata } };
  };
  const written = Object.entries(make().writes.recordOf(assignment).annotations);
  const annotations = Object.fromEntries(written.flatMap(([key, value]) => (value === null ? [] : [[key, value]])));
  const placed = object({ annotations, finalizers: [WHOLE_FINALIZER] });

  describe(`the adapter of ${title}`, () => {
    test("needs no copy before the finalizer holds the object, and one in the member on record then", () => {
      expect(make().demandFor(object(), "west")).not.toBe("needed");
      expect(make().demandFor(placed, "west")).toBe("needed");
    });

    test("gives a member the same object while it is the same, and an equal one after a reset", () => {
      const adapter = make();
      const given = adapter.sourceFor(placed, west, noCopies);
      if (given.state !== "present") throw new Error(`the member is given nothing: ${given.state}`);
      expect(adapter.sourceFor(placed, west, noCopies)).toHaveProperty("object", given.object);
      const again = adapter.sourceFor(placed, west, noCopies);
      expect(again.state === "present" && again.object === given.object).toBe(true);
      adapter.reset();
      expect(adapter.sourceFor(placed, west, noCopies)).toEqual(given);
    });

    test("wants a copy where it gives the object, and none of one that is being deleted", () => {
      const adapter = make();
      const ending = { ...placed, metadata: { ...placed.metadata, deletionTimestamp: "2026-01-01T00:00:00Z" } };
      for (const [each, isWanted] of [
        [placed, true],
        [ending, false],
      ] as const) {
        expect(adapter.isWantedIn(each, west)).toBe(isWanted);
        expect(adapter.sourceFor(each, west, noCopies).state === "missing").toBe(!isWanted);
      }
    });

    test("takes no copy back for an object that the host does not know: it may come from a backup", () => {
      expect(make().isTakenBack(undefined, false)).toBe(false);
    });

    test("replaces copies if its kind has fields that never change", () => {
      const { replacesCopies, writes } = make();
      expect(replacesCopies || writes.kind.fixed === undefined).toBe(true);
    });

    test("records members in Legation's own annotations, and names them to the author", () => {
      const { message } = make().writes.recordOf(assignment);
      expect(Object.keys(annotations).filter((key) => !key.startsWith("legation.dev/"))).toEqual([]);
      expect(Object.values(annotations)).toContain("west");
      expect(message).toContain("west");
    });

    test("sends a status to the status subresource of this very object, and says how that went", async () => {
      const sent: unknown[] = [];
      const outcome = await make().writes.writeStatus(placed, shown, async (body, { subresource }) => {
        sent.push(subresource, body[0]);
        return "Conflict";
      });
      expect(outcome).toBe("Conflict");
      expect(sent).toEqual(["status", { op: "test", path: "/metadata/uid", value: "u1" }]);
    });

    test("keeps the label of an object that is released while its type may come back", () => {
      expect(make().writes.marksOnRelease?.(true) ?? {}).not.toHaveProperty("labels");
    });
  });
}

const manifests = await loadManifests(join(packageRoot(), "manifests", "delegated-types"));
const types = manifests
  .filter(({ kind }) => kind === "DelegatedType")
  .map((type) => ({ metadata: { name: type.metadata.name }, ...delegatedTypeSchema.parse(type) }));

/** The cases of each folder that has an adapter. */
const FOLDERS: Readonly<Record<string, () => void>> = {
  jobs: () =>
    conforms("whole Jobs", () => new JobAdapter(options), {
      fields: { spec: { template: {} } },
      assignment: [{ member: "west" }],
      shown: { status: { active: 1 }, shares: [] },
    }),
  objects: () => {
    for (const type of types) {
      conforms(`whole ${type.metadata.name}`, () => new ObjectAdapter(type, options), {
        fields: { spec: { size: 1 } },
        assignment: "west",
        shown: { ready: 1 },
      });
    }
  },
};
for (const check of Object.values(FOLDERS)) check();

test("every adapter in the sources has its cases here", () => {
  const sources = new URL("../../../../src/", import.meta.url);
  const adapters = globSync("{whole,controllers/whole}/*/adapter.ts", { cwd: sources });
  expect(Object.keys(FOLDERS)).toEqual(adapters.map((file) => basename(dirname(file))).sort());
});
