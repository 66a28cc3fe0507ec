import { expect, onTestFinished, test } from "vitest";
import type { KubeObject, Stored } from "../../../../../src/api/kubernetes.ts";
import { ExportController } from "../../../../../src/controllers/services/exports/controller.ts";
import { toCopy } from "../../../../../src/copies/kind.ts";
import { SERVICES } from "../../../../../src/copies/services.ts";
import { Store } from "../../../../../src/runtime/store.ts";
import { listing, writing } from "../../../../support/builders/answers.ts";
import { HOST } from "../../../../support/builders/claim.ts";
import { servingExports } from "../../../../support/builders/discovery.ts";
import { member } from "../../../../support/builders/member.ts";
import { FakeClock } from "../../../../support/clock/fake-clock.ts";
import { surroundings } from "../../fleet.ts";
import { quietClient } from "../../quiet-client.ts";

const source = { metadata: { name: "web", namespace: "team", uid: "source", resourceVersion: "7" } };
const made = toCopy(SERVICES.Service, source, HOST);
const copy = { ...made, metadata: { ...made.metadata, name: "web", uid: "copy", resourceVersion: "3" } };
const served = { metadata: { ...source.metadata, uid: "export" } };
const KEPT_MS = 5 * 60_000;

interface Clusters {
  readonly exports?: readonly KubeObject[];
  readonly copies?: readonly Stored<KubeObject>[];
  /** Legation is the implementation in the member. */
  readonly itself?: boolean;
  readonly stays?: boolean;
}

/** Returns the controller after a proxy needed it, with the plurals that the host listed and the writes in `west`. */
async function exporting({ exports = [served], copies = [copy], itself = false, stays = true }: Clusters = {}) {
  const clock = new FakeClock();
  const listed: string[] = [];
  const writes: string[] = [];
  const raw = servingExports("v1beta1");
  const list = listing((plural) => {
    listed.push(plural);
    return plural === "serviceexports" ? exports : [];
  }, "7");
  const client = quietClient([], {
    raw,
    ...writing(({ verb, plural, name }) => {
      writes.push(`${verb} ${plural} ${name}`);
      return copy;
    }),
  });
  const west = member("west", client);
  const found = (name: string): (typeof copies)[number] | undefined => copies.find((one) => one.metadata.name === name);
  const controller = new ExportController({
    ...surroundings([west], clock),
    host: quietClient([], { raw, list }),
    proxies: new Store(),
    counts: () => true,
    exportsItself: () => itself,
    copier: {
      copies: {
        of: (_member, _kind, _namespace, name) => found(name),
        in: () => copies.map(({ metadata: { name } }) => ({ kind: "Service", namespace: "team", name })),
      },
      standing: () => ({ exists: true, stays, ofSource: true, keptForOthers: false }),
      sources: { of: () => ({ state: "present", object: source }) },
    },
  });
  onTestFinished(() => controller.stop());
  controller.need();
  await clock.advance(10);
  return { clock, controller, listed, writes };
}

test.each<[string, Clusters, string[]]>([
  ["an exported Service with a copy in the member", {}, ["patch services web", "create serviceexports web"]],
  ["a Service that the host does not export", { exports: [] }, []],
  ["an exported Service without a copy there", { copies: [] }, []],
  ["a copy that is about to go", { stays: false }, []],
  ["a member where Legation itself is the implementation", { itself: true }, []],
])("%s: makes what the member is to have", async (_, clusters, expected) => {
  const { writes } = await exporting(clusters);
  expect(writes).toEqual(expected);
});

test("reads the host's exports while they are needed, some minutes longer, and anew with the next need", async () => {
  const { clock, controller, listed } = await exporting();
  expect(listed).toEqual(["serviceexports"]);
  controller.release();
  await clock.advance(KEPT_MS - 20);
  controller.need();
  await clock.advance(KEPT_MS);
  expect(listed).toEqual(["serviceexports"]);
  controller.release();
  await clock.advance(KEPT_MS + 10);
  controller.need();
  await clock.advance(10);
  expect(listed).toEqual(["serviceexports", "serviceexports"]);
});

test("a stopped controller reads nothing any more", async () => {
  const { clock, controller, listed } = await exporting();
  await controller.stop();
  controller.need();
  await clock.advance(10);
  expect(listed).toEqual(["serviceexports"]);
});
