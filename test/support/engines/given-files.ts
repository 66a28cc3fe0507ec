import type { Cluster } from "../clusters/types.ts";
import { applyAll, kubectl } from "../harness/kubectl.ts";
import { mutatingPolicy, newPodsIn } from "../harness/mutating-policy.ts";
import { eventually } from "../harness/wait.ts";

/** A file or folder of the machine, and where containers find it. */
export interface GivenFile {
  readonly from: string;
  readonly to: string;
}

// The namespace of the engine may not be there yet.
const TRIAL_NAMESPACE = "default";

/** An expression that gives each container of a list what `mounts` says, by its name. */
function mounted(list: "containers" | "initContainers", files: readonly GivenFile[]): string {
  const mounts = files.map(
    ({ to }, index) => `Object.spec.${list}.volumeMounts{name: "given-${index}", mountPath: "${to}", readOnly: true}`,
  );
  return `object.spec.?${list}.orValue([]).map(c, Object.spec.${list}{name: c.name, volumeMounts: [${mounts.join(", ")}]})`;
}

/**
 * Mounts files of the machine into every container of a member's namespace by an admission policy: the one image of
 * real nodes has no engine.
 */
export async function giveFiles(member: Cluster, namespace: string, files: readonly GivenFile[]): Promise<void> {
  const volumes = files.map(
    ({ from }, index) =>
      `Object.spec.volumes{name: "given-${index}", hostPath: Object.spec.volumes.hostPath{path: "${from}"}}`,
  );
  const expression = `Object{spec: Object.spec{
    volumes: [${volumes.join(", ")}],
    initContainers: ${mounted("initContainers", files)},
    containers: ${mounted("containers", files)}
  }}`;
  const name = `given-in-${namespace}`;
  const policy = mutatingPolicy(name, {
    matchConstraints: newPodsIn([namespace, TRIAL_NAMESPACE]),
    matchConditions: [
      {
        name: "pods",
        expression: `request.namespace == "${namespace}" || object.metadata.?name.orValue("") == "${name}"`,
      },
    ],
    mutation: { patchType: "ApplyConfiguration", applyConfiguration: { expression } },
  });
  await applyAll(member, policy);
  await inForce(member, name);
}

/** API servers learn of a policy some time after it is made: a pod that is only tried shows whether they have. */
async function inForce(member: Cluster, name: string): Promise<void> {
  const containers = [{ name: "main", image: "localhost/busybox:1" }];
  const trial = { apiVersion: "v1", kind: "Pod", metadata: { name, namespace: TRIAL_NAMESPACE }, spec: { containers } };
  await eventually(async () => {
    const args = ["create", "--dry-run=server", "-o", "jsonpath={.spec.volumes[*].name}", "-f", "-"];
    return (await kubectl(member, args, { input: JSON.stringify(trial) })).includes("given-0");
  });
}
