import { expect, onTestFinished, test } from "vitest";
import type { DelegatedType } from "../../../../src/api/delegated-type.ts";
import type { KubeObject } from "../../../../src/api/kubernetes.ts";
import { delegatedTypes } from "../../../../src/api/resources.ts";
import { WholeView } from "../../../../src/cli/ui/whole-view.ts";
import type { KubeErrorCode } from "../../../../src/kube/errors.ts";
import { jobs, type Resource } from "../../../../src/kube/resources.ts";
import { MemoryCluster } from "../../../support/api-server/memory-cluster.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";

const TYPE: DelegatedType = {
  metadata: { name: "widgets.example.com" },
  spec: { group: "example.com", version: "v1", kind: "Widget", plural: "widgets" },
};
const widgets: Resource<KubeObject> = {
  group: "example.com",
  version: "v1",
  kind: "Widget",
  plural: "widgets",
  namespaced: true,
};

function whole(namespace: string, name: string): KubeObject & { metadata: { name: string } } {
  return { metadata: { namespace, name, labels: { "legation.dev/whole": "true" } } };
}

/** The view of a host whose lists of some resources are refused. */
async function viewed(
  fill: (host: MemoryCluster) => void,
  { namespace, refused = {} }: { namespace?: string; refused?: Readonly<Record<string, KubeErrorCode>> } = {},
) {
  const host = new MemoryCluster("host", "uid-of-host");
  fill(host);
  const { client } = host;
  const list: typeof client.list = async (resource, options) => {
    const code = refused[resource.plural];
    if (code !== undefined) throw kubeError(code, "refused", { verb: "list", resource: resource.plural });
    return client.list(resource, options);
  };
  const clock = new FakeClock();
  const view = new WholeView({ host: { ...client, list }, namespace, clock }, () => {});
  onTestFinished(() => view.stop());
  view.start();
  await clock.advance(3_000);
  const rows = (): string[] => view.current.rows.map((row) => `${row.namespace}/${row.type}/${row.name}`);
  return { host, view, rows, clock };
}

test("rows are the whole objects of all types and the whole Jobs, by namespace, type and name", async () => {
  const { rows } = await viewed((host) => {
    host.put(delegatedTypes, { ...TYPE, metadata: { name: "widgets.example.com" } });
    host.put(widgets, whole("team", "b"));
    host.put(widgets, { metadata: { namespace: "team", name: "on-the-host" } });
    host.put(widgets, whole("other", "c"));
    host.put(jobs, whole("team", "a"));
  });
  expect(rows()).toEqual(["other/widgets.example.com/c", "team/jobs/a", "team/widgets.example.com/b"]);
});

test("rows of one namespace alone are read where one was chosen", async () => {
  const { rows } = await viewed(
    (host) => {
      host.put(jobs, whole("team", "a"));
      host.put(jobs, whole("other", "b"));
    },
    { namespace: "team" },
  );
  expect(rows()).toEqual(["team/jobs/a"]);
});

test("rows of a type go with it, and those of a type that comes are there", async () => {
  const { host, rows, clock } = await viewed((made) => made.put(widgets, whole("team", "b")));
  expect(rows()).toEqual([]);
  host.put(delegatedTypes, { ...TYPE, metadata: { name: "widgets.example.com" } });
  await clock.advance(3_000);
  expect(rows()).toEqual(["team/widgets.example.com/b"]);
  host.drop(delegatedTypes, { name: "widgets.example.com" });
  await clock.advance(3_000);
  expect(rows()).toEqual([]);
});

test("what the user may not list is hidden, and what cannot be read is named with the reason", async () => {
  const { view } = await viewed(() => {}, { refused: { delegatedtypes: "Forbidden", jobs: "ServerError" } });
  expect(view.hidden.map(({ what }) => what)).toEqual(["objects of delegated types"]);
  expect(view.current.notRead).toEqual([expect.stringMatching(/^jobs: .*refused/)]);
});
