import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CLUSTER_ANNOTATION, DELEGATION_LABEL, HOST_LABEL, WHOLE_FINALIZER, WHOLE_KEY } from "../../src/api/keys.ts";
import { configMaps } from "../../src/kube/resources.ts";
import { afterFile } from "../support/harness/after-file.ts";
import { useClients } from "../support/harness/clients.ts";
import { hostCluster, memberCluster } from "../support/harness/clusters.ts";
import { kubectl } from "../support/harness/kubectl.ts";
import { useLegation } from "../support/harness/legation.ts";
import { freshNamespace } from "../support/harness/namespace.ts";
import { eventually, eventuallyPasses } from "../support/harness/wait.ts";

// A tenant may write everything in namespaces, but lacks the verb delegate.
useLegation();
const clients = useClients();
const ROLES = ["-f", "manifests/delegated-types/rbac.yaml"];
const TYPE = ["-f", "manifests/delegated-types/configmaps.yaml"];
const RBAC = "rbac.authorization.k8s.io/v1";
// The policies let it write Legation's own keys.
const CONTROLLER = "system:serviceaccount:legation-system:legation-controller";

const places = { opted: "", plain: "" };
let tenant: string;

beforeAll(async () => {
  const host = hostCluster();
  await kubectl(host, ["apply", ...ROLES, ...TYPE]);
  const all = [host, memberCluster("west"), memberCluster("east")];
  const labels = { [DELEGATION_LABEL]: "annotated" };
  places.opted = await freshNamespace(all, { labels, onFinished: afterFile });
  places.plain = await freshNamespace(all, { onFinished: afterFile });
  tenant = `system:serviceaccount:${places.opted}:tenant`;
  for (const namespace of Object.values(places)) {
    const verbs = "--verb=get,list,create,update,patch,delete";
    await kubectl(host, ["-n", namespace, "create", "role", "tenant", verbs, "--resource=configmaps"]);
    const subject = `--user=${tenant}`;
    await kubectl(host, ["-n", namespace, "create", "rolebinding", "tenant", "--role=tenant", subject]);
  }
  // The webhook and the controller know the type.
  await eventuallyPasses(async () => {
    await clients().host.create(configMaps, object("known", { annotations: ASKS, namespace: places.opted }));
  });
  await eventually(() => clients().west.find(configMaps, { namespace: places.opted, name: "known" }), {
    what: "a copy that an author may have",
  });
});

// Later files share the clusters.
afterAll(async () => {
  await kubectl(hostCluster(), ["delete", "--ignore-not-found", ...TYPE]);
  // The controller needs its role to release the objects.
  await kubectl(hostCluster(), ["delete", "--ignore-not-found", ...ROLES]);
});

const ASKS = { [WHOLE_KEY]: "true" };
const LABEL = { [WHOLE_KEY]: "true" };
const RECORD = { [CLUSTER_ANNOTATION]: "west" };
const RECORDED = "is changed by Legation's controller alone, which knows where the object is";
const COPY_LABELS = { ...LABEL, [HOST_LABEL]: "another" };
const NOT_A_COPY = "is written by Legation on copies that another cluster gives to this one";
const object = (name: string, metadata: object) => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name, ...metadata },
  data: { a: "1" },
});

function asTenant(namespace: string, args: readonly string[], input?: object): Promise<string> {
  const options = input === undefined ? {} : { input: JSON.stringify(input) };
  return kubectl(hostCluster(), ["-n", namespace, `--as=${tenant}`, ...args], options);
}

/** Applies labels or annotations to a ConfigMap, as the one whom the policies let write Legation's own keys. */
async function applyAsController(name: string, metadata: object): Promise<void> {
  const apply = ["apply", "--server-side", "--field-manager=test", "--validate=false", "-f", "-"];
  const body = { apiVersion: "v1", kind: "ConfigMap", metadata: { namespace: places.opted, name, ...metadata } };
  await kubectl(hostCluster(), [`--as=${CONTROLLER}`, ...apply], { input: JSON.stringify(body) });
}

describe.concurrent("an author without the verb delegate", () => {
  const MAY_NOT = "may not have these objects given to other clusters";
  const NOT_OPTED_IN = "is written by Legation in namespaces with the label";

  test.each([
    ["the annotation", "opted", { annotations: ASKS }, MAY_NOT],
    [
      "annotation, label and finalizer",
      "opted",
      { annotations: ASKS, labels: LABEL, finalizers: [WHOLE_FINALIZER] },
      MAY_NOT,
    ],
    ["the annotation with labels of a copy", "opted", { annotations: ASKS, labels: COPY_LABELS }, NOT_A_COPY],
    ["the same, in a namespace that is not opted in", "plain", { annotations: ASKS, labels: COPY_LABELS }, NOT_A_COPY],
  ] as const)("is refused %s", async (what, place, metadata, refused) => {
    const made = asTenant(places[place], ["create", "-f", "-"], object(`refused-${what.length}`, metadata));
    await expect(made).rejects.toThrow(refused);
  });

  test.each([
    ["labels", "opted", { labels: LABEL }],
    ["finalizers", "opted", { labels: LABEL, finalizers: [WHOLE_FINALIZER] }],
    ["copies", "opted", { labels: COPY_LABELS }],
    ["annotations", "plain", { annotations: ASKS }],
    ["a-label", "plain", { labels: LABEL }],
    ["all-marks", "plain", { annotations: { ...ASKS, ...RECORD }, labels: LABEL, finalizers: [WHOLE_FINALIZER] }],
    ["a-record", "opted", { annotations: { ...RECORD, "legation.dev/members": "[]" } }],
    ["a-record", "plain", { annotations: RECORD }],
  ] as const)("gives members nothing by writing %s by hand", async (name, place, metadata) => {
    const namespace = places[place];
    const { host, west, east } = clients();
    await asTenant(namespace, ["create", "-f", "-"], object(name, metadata));
    // An object that was allowed goes round meanwhile.
    const after = `after-${name}-${place}`;
    await host.create(configMaps, object(after, { namespace: places.opted, annotations: ASKS }));
    for (const member of [west, east]) {
      await eventually(() => member.find(configMaps, { namespace: places.opted, name: after }), { what: "a copy" });
      expect(await member.find(configMaps, { namespace, name })).toBeUndefined();
    }
    const { finalizers = [], annotations: left = {} } = (await host.get(configMaps, { namespace, name })).metadata;
    expect(finalizers).toEqual([]);
    expect(Object.keys(left)).not.toContain(CLUSTER_ANNOTATION);
  });

  test("is refused the record of a member on an object that is not whole, which would choose the member later", async () => {
    await asTenant(places.plain, ["create", "-f", "-"], object("recorded", {}));
    const record = ["annotate", "configmap/recorded", `${CLUSTER_ANNOTATION}=west`];
    await expect(asTenant(places.plain, record)).rejects.toThrow(RECORDED);
  });

  test("is refused to remove the record of an object that was taken back while its member was silent", async () => {
    await asTenant(places.opted, ["create", "-f", "-"], object("taken-back", {}));
    await applyAsController("taken-back", { annotations: RECORD });
    const remove = asTenant(places.opted, ["annotate", "configmap/taken-back", `${CLUSTER_ANNOTATION}-`]);
    await expect(remove).rejects.toThrow(RECORDED);
  });

  test("is refused the annotation on an object that is there", async () => {
    await asTenant(places.opted, ["create", "configmap", "plain"]);
    await expect(asTenant(places.opted, ["annotate", "configmap/plain", `${WHOLE_KEY}=true`])).rejects.toThrow(MAY_NOT);
  });

  test("is refused the marks on an object that it gave the label of a copy before", async () => {
    await asTenant(places.opted, ["create", "-f", "-"], object("twice", { labels: { [HOST_LABEL]: "another" } }));
    for (const metadata of [
      { annotations: { ...ASKS, "legation.dev/on-conflict": "adopt" }, labels: LABEL, finalizers: [WHOLE_FINALIZER] },
      { labels: LABEL, finalizers: [WHOLE_FINALIZER] },
    ]) {
      const args = ["patch", "configmap/twice", "--type=merge", `--patch=${JSON.stringify({ metadata })}`];
      await expect(asTenant(places.opted, args)).rejects.toThrow(NOT_A_COPY);
    }
  });

  test.each([
    ["opted", MAY_NOT],
    ["plain", NOT_OPTED_IN],
  ] as const)("is refused to take a copy's label off and keep the others (%s)", async (place, refused) => {
    await asTenant(places[place], ["create", "-f", "-"], object("unmarked", { labels: COPY_LABELS }));
    const patch = JSON.stringify({ metadata: { annotations: ASKS, labels: { [HOST_LABEL]: null } } });
    const args = ["patch", "configmap/unmarked", "--type=merge", `--patch=${patch}`];
    await expect(asTenant(places[place], args)).rejects.toThrow(refused);
  });

  test("is refused the label of a copy on an object that members have, which goes all the same when it has the label", async () => {
    const { host, west } = clients();
    const ref = { namespace: places.opted, name: "hidden" };
    await host.create(configMaps, object("hidden", { namespace: places.opted, annotations: ASKS }));
    await eventually(() => west.find(configMaps, ref), { what: "the copy" });
    const label = ["label", "configmap/hidden", `${HOST_LABEL}=another`];
    await expect(asTenant(places.opted, label)).rejects.toThrow(NOT_A_COPY);
    await applyAsController("hidden", { labels: { [HOST_LABEL]: "another" } });
    await kubectl(hostCluster(), ["-n", places.opted, "delete", "configmap/hidden", "--timeout=30s"]);
    await eventuallyPasses(async () => expect(await west.find(configMaps, ref)).toBeUndefined());
  });

  test("may neither create nor change a DelegatedType", async () => {
    await expect(asTenant(places.opted, ["create", ...TYPE])).rejects.toThrow("delegatedtypes");
    await expect(
      asTenant(places.opted, ["patch", "delegatedtype/configmaps", "--type=merge", "-p={}"]),
    ).rejects.toThrow("cannot");
  });
});

describe.concurrent("an administrator of the host", () => {
  const roleRef = { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "admin" };

  test.each([
    ["a RoleBinding", "RoleBinding", { roleRef, subjects: [] }],
    ["a Role", "Role", { rules: [] }],
    ["a ClusterRole", "ClusterRole", { rules: [] }],
  ])("gives members not even %s without its DelegatedType", async (_what, kind, body) => {
    const metadata = { name: "whole-object-tenants", annotations: ASKS };
    const made = kubectl(hostCluster(), ["-n", places.opted, "create", "-f", "-"], {
      input: JSON.stringify({ apiVersion: RBAC, kind, metadata, ...body }),
    });
    await expect(made).rejects.toThrow("no DelegatedType names it");
  });

  test("cannot turn a DelegatedType into one of another group", async () => {
    const patch = ["--type=merge", `--patch=${JSON.stringify({ spec: { group: "apps" } })}`];
    await expect(kubectl(hostCluster(), ["patch", "delegatedtype/configmaps", ...patch])).rejects.toThrow(
      "metadata.name must be the plural",
    );
  });
});
