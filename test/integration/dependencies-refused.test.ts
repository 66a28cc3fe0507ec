import { describe, expect, test } from "vitest";
import type { KubeObject, Pod, Stored } from "../../src/api/kubernetes.ts";
import { configMaps, events, pods } from "../../src/kube/resources.ts";
import { auditEvents } from "../support/clusters/audit.ts";
import { delegatedPod } from "../support/delegated/pods.ts";
import { useClients } from "../support/harness/clients.ts";
import { hostCluster, memberCluster } from "../support/harness/clusters.ts";
import { applyAll, kubectl } from "../support/harness/kubectl.ts";
import { freshNamespace } from "../support/harness/namespace.ts";
import { inPhase, podGone, podThat } from "../support/harness/pods-of.ts";
import { eventually, eventuallyPasses } from "../support/harness/wait.ts";
import { useGatedLegation } from "../support/write-gate/gated-legation.ts";

const gated = useGatedLegation();
const clients = useClients();
const member = memberCluster("west");
// Copies stay for ten seconds after their last user.
const patient = { timeoutMs: 60_000 };

type OnFinished = (cleanUp: () => Promise<void>) => void;

interface Scene {
  readonly namespace: string;
  readonly onFinished: OnFinished;
  user(name: string): Pod;
  /** Starts a pod that runs with its copy in the member. */
  start(): Promise<void>;
  /** Removes the only user of the copy. */
  end(): Promise<void>;
  copy(): Promise<Stored<KubeObject> | undefined>;
  paint(color: string): Promise<void>;
  copyIs(color: string): Promise<void>;
  copyGoes(): Promise<void>;
  /** Waits until the member has refused Legation's write on the copy. */
  refusedOnce(verb: "patch" | "delete"): Promise<void>;
}

async function makeScene(onFinished: OnFinished): Promise<Scene> {
  const { host, west } = clients();
  const labels = { "legation.dev/delegation": "annotated" };
  const namespace = await freshNamespace([hostCluster(), member], { prefix: "refused", labels, onFinished });
  const metadata = { name: "settings", namespace };
  const scene: Scene = {
    namespace,
    onFinished,
    user: (name) => {
      const envFrom = [{ configMapRef: { name: "settings" } }];
      return delegatedPod(namespace, name, {
        annotations: { "legation.dev/clusters": "west" },
        spec: { automountServiceAccountToken: false, containers: [{ name: "main", image: "work:1", envFrom }] },
      });
    },
    start: async () => {
      await host.create(configMaps, { apiVersion: "v1", kind: "ConfigMap", metadata, data: { color: "blue" } });
      await host.create(pods, scene.user("web"));
      await podThat(host, namespace, "web", inPhase("Running"), patient);
    },
    end: async () => {
      await host.delete(pods, { namespace, name: "web" }, { gracePeriodSeconds: 0 });
      await podGone(host, namespace, "web", undefined, patient);
    },
    copy: () => west.find(configMaps, metadata),
    paint: async (color) => {
      await host.patch(configMaps, metadata, { type: "merge", body: { data: { color } } });
    },
    copyIs: (color) =>
      eventuallyPasses(async () => expect(await scene.copy()).toMatchObject({ data: { color } }), patient),
    copyGoes: async () => {
      await eventually(async () => (await scene.copy()) === undefined, { ...patient, what: "the end of the copy" });
    },
    refusedOnce: (verb) =>
      eventuallyPasses(async () => {
        const refused = await auditEvents(
          member,
          ({ verb: done, objectRef, responseStatus, user: { username } }) =>
            done === verb &&
            objectRef?.namespace === namespace &&
            objectRef.name === "settings" &&
            responseStatus?.code === 422 &&
            username.startsWith("system:serviceaccount:legation-system:"),
          [namespace],
        );
        expect(refused).not.toEqual([]);
      }, patient),
  };
  return scene;
}

/** Makes the member refuse the operation on ConfigMaps of the namespace; the result ends that. */
async function refuse({ namespace, onFinished }: Scene, operation: "UPDATE" | "DELETE"): Promise<() => Promise<void>> {
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
  await applyAll(member, [policy, binding]);
  const kinds = "validatingadmissionpolicybinding,validatingadmissionpolicy";
  const allow = async (): Promise<void> => {
    await kubectl(member, ["delete", kinds, name, "--ignore-not-found"]);
  };
  onFinished(allow);
  // The API server applies a policy a little later: a dry-run shows when.
  const dryRun = ["-n", namespace, "--dry-run=server"];
  const probe =
    operation === "DELETE"
      ? ["delete", "configmap", "settings", ...dryRun]
      : ["annotate", "configmap", "settings", "probe=1", ...dryRun];
  await eventuallyPasses(() => expect(kubectl(member, probe)).rejects.toThrow("not today"), patient);
  return allow;
}

describe.concurrent("a copy whose write fails", () => {
  test("is removed once the member allows the removal that it refused", async ({ onTestFinished }) => {
    const scene = await makeScene(onTestFinished);
    await scene.start();
    const allow = await refuse(scene, "DELETE");
    await scene.end();
    await scene.refusedOnce("delete");
    expect(await scene.copy()).toBeDefined();
    await allow();
    await scene.copyGoes();
  });

  test("keeps its old content if the member refuses the change, and a new pod that needs it says why it waits", async ({
    onTestFinished,
  }) => {
    const { host } = clients();
    const scene = await makeScene(onTestFinished);
    const { namespace } = scene;
    await scene.start();
    await refuse(scene, "UPDATE");
    await scene.paint("red");
    await scene.refusedOnce("patch");
    await host.create(pods, scene.user("next"));
    await eventually(async () => {
      const { items } = await host.list(events, { namespace });
      return items.some(
        ({ involvedObject, message }) =>
          involvedObject.name === "next" && message?.includes("refused the change of ConfigMap settings"),
      );
    }, patient);
    expect(await scene.copy()).toMatchObject({ data: { color: "blue" } });
    await podThat(host, namespace, "web", inPhase("Running"), patient);
  });

  test.for([
    ["change", "before", "PATCH"],
    ["change", "after", "PATCH"],
    ["removal", "before", "DELETE"],
    ["removal", "after", "DELETE"],
  ] as const)(
    "gets its %s although the connection breaks %s the member has done it",
    async ([_, when, method], { onTestFinished }) => {
      const scene = await makeScene(onTestFinished);
      const { namespace } = scene;
      await scene.start();
      let lost = false;
      gated().trap("member", {
        namespace,
        when,
        catches: (write) => write.method === method && write.path.endsWith(`/${namespace}/configmaps/settings`),
        onCaught: async () => {
          lost = true;
        },
      });
      await scene.paint("red");
      await scene.copyIs("red");
      if (method === "DELETE") {
        await scene.end();
        await scene.copyGoes();
      }
      // The member has done it before its answer is lost.
      await eventuallyPasses(async () => expect(lost).toBe(true), patient);
    },
  );

  test("exists if the response to its create was lost, even where it fills the quota", async ({ onTestFinished }) => {
    const scene = await makeScene(onTestFinished);
    const { namespace } = scene;
    const quota = ["-n", namespace, "quota", "full"];
    await kubectl(member, ["create", ...quota, "--hard=count/configmaps=2"]);
    // Each namespace has one more ConfigMap: its certificate authority.
    const used = ["-n", namespace, "get", ...quota.slice(2), "-o=jsonpath={.status.used.count/configmaps}"];
    await eventuallyPasses(async () => expect(await kubectl(member, used)).toBe("1"), patient);
    let lost = false;
    gated().trap("member", {
      namespace,
      when: "after",
      catches: (write) => write.method === "POST" && write.path.endsWith(`/${namespace}/configmaps`),
      onCaught: async () => {
        lost = true;
      },
    });
    await scene.start();
    expect(lost).toBe(true);
  });
});
