import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { AnyObject } from "../../src/api/delegated-type.ts";
import { RESTRICTED_ANNOTATION } from "../../src/api/keys.ts";
import { apiVersionOf, kindName, pods, type Resource } from "../../src/kube/resources.ts";
import { delegatedPod } from "../support/delegated/pods.ts";
import { useClients } from "../support/harness/clients.ts";
import { hostCluster, memberCluster } from "../support/harness/clusters.ts";
import { kubectl } from "../support/harness/kubectl.ts";
import { useLegation } from "../support/harness/legation.ts";
import { freshNamespace } from "../support/harness/namespace.ts";
import { inPhase, podsOf, podThat, waitingFor } from "../support/harness/pods-of.ts";
import { eventually, eventuallyPasses } from "../support/harness/wait.ts";
import { definitionOf } from "../support/legation/widget.ts";
import { installType, removeType } from "../support/legation/widgets.ts";

// An object of the type must come from an author with the verb delegate.
const licenses: Resource<AnyObject> = {
  group: "example.com",
  version: "v1",
  plural: "licenses",
  kind: "License",
  namespaced: true,
};
const TYPE = kindName(licenses);
const NAMES = "example.com/license";
const follows = { names: [{ annotation: NAMES }] };

useLegation();
const clients = useClients();
let namespace: string;
let tenant: string;

beforeAll(async () => {
  const members = { west: memberCluster("west"), east: memberCluster("east") };
  const spec = { follows: { ...follows, restricted: true } };
  await kubectl(hostCluster(), ["apply", "-f", "-"], {
    input: JSON.stringify({
      apiVersion: "legation.dev/v1alpha1",
      kind: "DelegatedType",
      metadata: { name: TYPE },
      spec: { group: licenses.group, version: licenses.version, kind: licenses.kind, plural: licenses.plural, ...spec },
    }),
  });
  await installType({ name: TYPE, definition: definitionOf(licenses), spec }, hostCluster(), members);
});
afterAll(() => removeType(TYPE, hostCluster(), [memberCluster("west"), memberCluster("east")]));

beforeEach(async () => {
  const all = [hostCluster(), memberCluster("west"), memberCluster("east")];
  namespace = await freshNamespace(all, { prefix: "restricted", labels: { "legation.dev/delegation": "annotated" } });
  tenant = `system:serviceaccount:${namespace}:tenant`;
  await kubectl(hostCluster(), [
    "-n",
    namespace,
    "create",
    "rolebinding",
    "tenant",
    "--clusterrole=edit",
    `--user=${tenant}`,
  ]);
  for (const name of ["one", "two"]) {
    await clients().host.create(licenses, {
      apiVersion: apiVersionOf(licenses),
      kind: "License",
      metadata: { namespace, name },
    });
  }
});

/** Binds the tenant to the role that `legation install --types` wrote. */
async function maySend(): Promise<void> {
  const role = `--clusterrole=legation-authors-${TYPE}`;
  await kubectl(hostCluster(), ["-n", namespace, "create", "rolebinding", "sends", role, `--user=${tenant}`]);
}

function asTenant(args: readonly string[], input?: object): Promise<string> {
  const options = input === undefined ? {} : { input: JSON.stringify(input) };
  return kubectl(hostCluster(), ["-n", namespace, `--as=${tenant}`, ...args], options);
}

/** The authorizer of the API server learns of a role a moment later. */
async function createOnceAllowed(object: object): Promise<void> {
  await eventuallyPasses(async () => {
    await asTenant(["create", "-f", "-"], object);
  });
}

const naming = (license: string, more: Readonly<Record<string, string>> = {}) => ({
  annotations: { [NAMES]: license, "legation.dev/clusters": "west", ...more },
});

function deployment(): object {
  const { metadata, spec } = delegatedPod(namespace, "web", naming("one"));
  const template = { metadata: { labels: { app: "web" }, annotations: metadata?.annotations }, spec };
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: "web" },
    spec: { selector: { matchLabels: { app: "web" } }, template },
  };
}

function given(name: string): Promise<unknown> {
  return clients().west.find(licenses, { namespace, name });
}

const MAY_NOT = `may not have these objects given to other clusters; an operator allows it by the verb delegate on ${TYPE}`;

test("an author without the verb delegate creates no pod and no workload that names a restricted object", async () => {
  const forged = naming("one", { [RESTRICTED_ANNOTATION]: `${TYPE}/one` });
  for (const parts of [naming("one"), forged]) {
    const made = asTenant(["create", "-f", "-"], delegatedPod(namespace, "web", parts));
    await expect(made).rejects.toThrow(MAY_NOT);
  }
  await expect(asTenant(["create", "-f", "-"], deployment())).rejects.toThrow(MAY_NOT);
  await asTenant(["create", "-f", "-"], delegatedPod(namespace, "free"));
  await podThat(clients().host, namespace, "free", inPhase("Running"));
  expect(await given("one")).toBeUndefined();
});

test("an author with the verb creates pods that name it, alone and by a workload", async () => {
  await maySend();
  const { host } = clients();
  await createOnceAllowed(delegatedPod(namespace, "bare", naming("two")));
  await asTenant(["create", "-f", "-"], deployment());
  await eventuallyPasses(async () => {
    const running = (await podsOf(host, namespace)).filter(inPhase("Running"));
    expect(running).toHaveLength(2);
    expect(await given("one")).toBeDefined();
    expect(await given("two")).toBeDefined();
  });
});

test("an update brings no other object into a member, and changes no record", async () => {
  await maySend();
  const { host, west } = clients();
  await createOnceAllowed(delegatedPod(namespace, "web", naming("one")));
  await podThat(host, namespace, "web", inPhase("Running"));
  await asTenant(["annotate", "--overwrite", "pod/web", `${NAMES}=two`]);
  const forged = asTenant(["annotate", "--overwrite", "pod/web", `${RESTRICTED_ANNOTATION}=${TYPE}/two`]);
  await expect(forged).rejects.toThrow("is changed by Legation's controller alone");
  await eventually(
    async () => (await west.get(pods, { namespace, name: "web" })).metadata.annotations?.[NAMES] === "two",
    { what: "the annotation in the member" },
  );
  expect(await given("two")).toBeUndefined();
});

test("a pod whose author was not asked waits, and says so", async () => {
  const { host } = clients();
  const apply = JSON.stringify({ metadata: { annotations: { [NAMES]: "one" } } });
  const closed = { "legation.dev/clusters": "nowhere" };
  await host.create(pods, delegatedPod(namespace, "late", { annotations: closed }));
  await asTenant(["patch", "pod/late", "--type=merge", "-p", apply]);
  await waitingFor(host, namespace, "late", `License "one" needs the verb delegate on ${TYPE}`);
});
