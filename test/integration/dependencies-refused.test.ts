import { beforeEach, expect, onTestFinished, test } from "vitest";
import type { Pod } from "../../src/api/kubernetes.ts";
import { configMaps, events, pods } from "../../src/kube/resources.ts";
import { auditEvents } from "../support/clusters/audit.ts";
import { delegatedPod } from "../support/delegated/pods.ts";
import { useClients } from "../support/harness/clients.ts";
import { hostCluster, memberCluster } from "../support/harness/clusters.ts";
import { kubectl } from "../support/harness/kubectl.ts";
import { freshNamespace } from "../support/harness/namespace.ts";
import { inPhase, podGone, podThat } from "../support/harness/pods-of.ts";
import { eventually, eventuallyPasses } from "../support/harness/wait.ts";
import { useGatedLegation } from "../support/write-gate/gated-legation.ts";

const gated = useGatedLegation();
const clients = useClients();
const member = memberCluster("west");
// Copies linger for ten seconds after their last user.
const patient = { timeoutMs: 60_000 };

let namespace: string;
beforeEach(async () => {
  const labels = { "legation.dev/delegation": "annotated" };
  namespace = await freshNamespace([hostCluster(), member], { prefix: "refused", labels });
});

function user(name: string): Pod {
  const envFrom = [{ configMapRef: { name: "settings" } }];
  return delegatedPod(namespace, name, {
    annotations: { "legation.dev/clusters": "west" },
    spec: { automountServiceAccountToken: false, containers: [{ name: "main", image: "work:1", envFrom }] },
  });
}

/** A pod that runs with its copy in the member. */
async function start(): Promise<void> {
  const { host } = clients();
  const metadata = { name: "settings", namespace };
  await host.create(configMaps, { apiVersion: "v1", kind: "ConfigMap", metadata, data: { color: "blue" } });
  await host.create(pods, user("web"));
  await podThat(host, namespace, "web", inPhase("Running"), patient);
}

/** Removes the only user of the copy. */
async function end(): Promise<void> {
  await clients().host.delete(pods, { namespace, name: "web" }, { gracePeriodSeconds: 0 });
  await podGone(clients().host, namespace, "web", undefined, patient);
}

function copy(): ReturnType<ReturnType<typeof clients>["west"]["find"]> {
  return clients().west.find(configMaps, { namespace, name: "settings" });
}

async function paint(color: string): Promise<void> {
  await clients().host.patch(configMaps, { namespace, name: "settings" }, { type: "merge", body: { data: { color } } });
}

async function copyIs(color: string): Promise<void> {
  await eventuallyPasses(async () => expect(await copy()).toMatchObject({ data: { color } }), patient);
}

async function copyGoes(): Promise<void> {
  await eventually(async () => (await copy()) === undefined, { ...patient, what: "the end of the copy" });
}

/** Waits until the member has refused Legation's write on the copy. */
async function refusedOnce(verb: "patch" | "delete"): Promise<void> {
  await eventuallyPasses(async () => {
    const refused = await auditEvents(
      member,
      ({ verb: done, objectRef, responseStatus, user: { username } }) =>
        done === verb &&
        objectRef?.namespace === namespace &&
        objectRef.name === "settings" &&
        responseStatus?.code === 422 &&
        username.startsWith("system:serviceaccount:legation-system:"),
    );
    expect(refused).not.toEqual([]);
  }, patient);
}

/** The member refuses that operation on ConfigMaps of the namespace; the result lets it be again. */
async function refuse(operation: "UPDATE" | "DELETE"): Promise<() => Promise<void>> {
  const apiVersion = "admissionregistration.k8s.io/v1";
  const name = `${namespace}-${operation.toLowerCase()}`;
  const rule = { apiGroups: [""], apiVersions: ["v1"], resources: ["configmaps"], operations: [operation] };
  const policy = {
    apiVersion,
    kind: "ValidatingAdmissionPolicy",
    metadata: { name },
    spec: {
      failurePolicy: "Fail",
      matchConstraints: {
        resourceRules: [rule],
        namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": namespace } },
      },
      validations: [{ expression: "false", message: "not today" }],
    },
  };
  const binding = {
    apiVersion,
    kind: "ValidatingAdmissionPolicyBinding",
    metadata: { name },
    spec: { policyName: name, validationActions: ["Deny"] },
  };
  const input = JSON.stringify({ apiVersion: "v1", kind: "List", items: [policy, binding] });
  await kubectl(member, ["apply", "-f", "-"], { input });
  const kinds = "validatingadmissionpolicybinding,validatingadmissionpolicy";
  const allow = async (): Promise<void> => {
    await kubectl(member, ["delete", kinds, name, "--ignore-not-found"]);
  };
  onTestFinished(allow);
  // The API server takes a policy up after a while: a probe of the test's own tells when.
  const dryRun = ["-n", namespace, "--dry-run=server"];
  const probe =
    operation === "DELETE"
      ? ["delete", "configmap", "settings", ...dryRun]
      : ["annotate", "configmap", "settings", "probe=1", ...dryRun];
  await eventuallyPasses(() => expect(kubectl(member, probe)).rejects.toThrow("not today"), patient);
  return allow;
}

test("a copy whose removal the member refuses is removed when the member allows it", async () => {
  await start();
  const allow = await refuse("DELETE");
  await end();
  await refusedOnce("delete");
  expect(await copy()).toBeDefined();
  await allow();
  await copyGoes();
});

test("a copy whose change the member refuses stays as it was, and a new pod that needs it says why it waits", async () => {
  const { host } = clients();
  await start();
  await refuse("UPDATE");
  await paint("red");
  await refusedOnce("patch");
  await host.create(pods, user("next"));
  await eventually(async () => {
    const { items } = await host.list(events, { namespace });
    return items.some(
      ({ involvedObject, message }) =>
        involvedObject.name === "next" && message?.includes("refused the change of ConfigMap settings"),
    );
  }, patient);
  expect(await copy()).toMatchObject({ data: { color: "blue" } });
  await podThat(host, namespace, "web", inPhase("Running"), patient);
});

test.each([
  ["change", "before", "PATCH"],
  ["change", "after", "PATCH"],
  ["removal", "before", "DELETE"],
  ["removal", "after", "DELETE"],
] as const)("a %s of a copy whose connection breaks %s the member has done it is done", async (_, when, method) => {
  await start();
  let lost = false;
  gated().trap("member", {
    when,
    catches: (write) => write.method === method && write.path.endsWith(`/${namespace}/configmaps/settings`),
    onCaught: async () => {
      lost = true;
    },
  });
  await paint("red");
  await copyIs("red");
  if (method === "DELETE") {
    await end();
    await copyGoes();
  }
  expect(lost).toBe(true);
});

test("a copy whose creation was not answered is there, even where a quota is full by it", async () => {
  const quota = ["-n", namespace, "quota", "full"];
  await kubectl(member, ["create", ...quota, "--hard=count/configmaps=2"]);
  // Beside the copy there is the authority that every namespace has.
  const used = ["-n", namespace, "get", ...quota.slice(2), "-o=jsonpath={.status.used.count/configmaps}"];
  await eventuallyPasses(async () => expect(await kubectl(member, used)).toBe("1"), patient);
  let lost = false;
  gated().trap("member", {
    when: "after",
    catches: (write) => write.method === "POST" && write.path.endsWith(`/${namespace}/configmaps`),
    onCaught: async () => {
      lost = true;
    },
  });
  await start();
  expect(lost).toBe(true);
});
