import { describe, expect, onTestFinished, test } from "vitest";
import { EXPORTED_ANNOTATION } from "../../../../../src/api/keys.ts";
import type { KubeObject, Stored } from "../../../../../src/api/kubernetes.ts";
import { ExportController } from "../../../../../src/controllers/services/exports/controller.ts";
import { toCopy } from "../../../../../src/copies/kind.ts";
import { SERVICES, toExport } from "../../../../../src/copies/services.ts";
import type { KubeErrorCode } from "../../../../../src/kube/errors.ts";
import { Store } from "../../../../../src/runtime/store.ts";
import { listing, writing } from "../../../../support/builders/answers.ts";
import { HOST } from "../../../../support/builders/claim.ts";
import { servingExports } from "../../../../support/builders/discovery.ts";
import { kubeError } from "../../../../support/builders/kube-error.ts";
import { member } from "../../../../support/builders/member.ts";
import { FakeClock } from "../../../../support/clock/fake-clock.ts";
import { surroundings } from "../../fleet.ts";
import { quietClient } from "../../quiet-client.ts";
import { noting, type Write } from "../../writes.ts";

const source = { metadata: { name: "web", namespace: "team", uid: "source", resourceVersion: "7" } };
const made = toCopy(SERVICES.Service, source, HOST);
const copy = { ...made, metadata: { ...made.metadata, name: "web", uid: "copy", resourceVersion: "3" } };
const served = { metadata: { ...source.metadata, uid: "export" } };
const annotations = { ...copy.metadata.annotations, [EXPORTED_ANNOTATION]: "true" };
const marked = { ...copy, metadata: { ...copy.metadata, annotations } };
const KEPT_MS = 5 * 60_000;

interface Clusters {
  readonly exports?: readonly KubeObject[];
  readonly copies?: readonly Stored<KubeObject>[];
  /** Legation is the implementation in the member. */
  readonly itself?: boolean;
  readonly stays?: boolean;
  /** Returns the ServiceExports that the member lists. */
  readonly there?: () => readonly KubeObject[];
  /** The code with which the member refuses the mark of a copy. */
  readonly refusal?: KubeErrorCode;
}

/** Returns the controller after a proxy needed it, with the plurals that the host listed and the writes in `west`. */
async function exporting({
  exports = [served],
  copies = [copy],
  itself = false,
  stays = true,
  there = () => [],
  refusal,
}: Clusters = {}) {
  const clock = new FakeClock();
  const listed: string[] = [];
  const writes: string[] = [];
  const demands: Write[] = [];
  const raw = servingExports("v1beta1");
  const list = listing((plural) => {
    listed.push(plural);
    return plural === "serviceexports" ? exports : [];
  }, "7");
  const client = quietClient([], {
    cluster: "west",
    raw,
    list: listing((plural) => (plural === "serviceexports" ? there() : [])),
    ...writing(({ verb, plural, name }) => {
      writes.push(`${verb} ${plural} ${name}`);
      if (verb === "patch" && refusal !== undefined) throw kubeError(refusal, "no", { verb, resource: plural });
      return copy;
    }),
  });
  const west = member("west", noting(client, demands));
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
  return { clock, controller, listed, writes, demands };
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

describe("a Service that is no longer exported", () => {
  const unmarked = { to: "west patch", demands: { uid: "copy" } };
  const exported = (object: KubeObject): KubeObject => ({
    ...object,
    metadata: { ...object.metadata, name: "web", uid: "export", resourceVersion: "4" },
  });
  test.each<[string, KubeObject[], Write[]]>([
    [
      "loses its export, if it is still the same",
      [exported(toExport(copy, source, HOST, "multicluster.x-k8s.io/v1beta1"))],
      [{ to: "west delete", demands: { uid: "export" } }, unmarked],
    ],
    ["leaves the member's own export alone", [exported({ metadata: { name: "web", namespace: "team" } })], [unmarked]],
    ["has none", [], [unmarked]],
  ])("%s", async (_, there, expected) => {
    const { demands } = await exporting({ exports: [], copies: [marked], there: () => there });
    expect(demands).toEqual(expected);
  });

  test("keeps its mark while a starting member denies the read", async () => {
    const detail =
      'serviceexports is forbidden: User "legation" cannot list resource "serviceexports" in API group "x"';
    const there = (): never => {
      throw kubeError("Forbidden", detail, { verb: "list", resource: "serviceexports" });
    };
    const { clock, demands } = await exporting({ exports: [], copies: [marked], there });
    expect(demands).toEqual([]);
    // A right that the member's role lacks.
    await clock.advance(20_000);
    expect(demands).toEqual([unmarked]);
  });
});

describe("a Service that is exported", () => {
  test("is not marked twice", async () => {
    const { writes } = await exporting({ copies: [marked] });
    expect(writes).toEqual(["create serviceexports web"]);
  });

  test("gets no export if it is another one by now", async () => {
    const { writes } = await exporting({ refusal: "Conflict" });
    expect(writes).toEqual(["patch services web"]);
  });

  test("is exported again after ten minutes, and at once where its copy is another one", async () => {
    const copies = [marked];
    const { clock, controller, writes } = await exporting({ copies });
    controller.onCopy("west", "team", "web");
    await clock.advance(600_000 - 20);
    expect(writes).toHaveLength(1);
    await clock.advance(20);
    expect(writes).toHaveLength(2);
    copies[0] = { ...marked, metadata: { ...marked.metadata, uid: "another" } };
    controller.onCopy("west", "team", "web");
    await clock.advance(10);
    expect(writes).toEqual(Array.from({ length: 3 }, () => "create serviceexports web"));
  });
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
