import { spawnSync } from "node:child_process";
import type { Cluster } from "../clusters/types.ts";
import { kubectl } from "../harness/kubectl.ts";
import type { EngineFolder } from "./python.ts";

const NAME = "python-in-pods";

/** Paths of the machine that an engine's Python needs, each at the same place in a container. */
function pathsOf({ folder, python }: EngineFolder): string[] {
  const { stdout } = spawnSync(python, ["-c", "import sys; print(sys.base_prefix)"], { encoding: "utf8" });
  const prefix = stdout.trim();
  return ["/usr", "/lib", "/lib64", "/bin/bash", folder, ...(prefix.startsWith("/usr") ? [] : [prefix])];
}

/**
 * Gives every container of a member the machine's Python with an engine's packages and bash, by the member's own admission:
 * the one image of real nodes has neither, and engines stay as they are.
 */
export async function givePython(member: Cluster, engine: EngineFolder): Promise<void> {
  await kubectl(member, ["apply", "-f", "-"], { input: pythonPolicy(engine) });
}

/** The policy, as JSON. */
export function pythonPolicy(engine: EngineFolder): string {
  const files = pathsOf(engine).map((path, index) => ({ name: `python-${index}`, path }));
  const volumes = files.map(
    ({ name, path }) => `Object.spec.volumes{name: "${name}", hostPath: Object.spec.volumes.hostPath{path: "${path}"}}`,
  );
  const mounts = files.map(
    ({ name, path }) => `Object.spec.containers.volumeMounts{name: "${name}", mountPath: "${path}", readOnly: true}`,
  );
  const expression = `Object{spec: Object.spec{
    volumes: [${volumes.join(", ")}],
    containers: object.spec.containers.map(c, Object.spec.containers{name: c.name, volumeMounts: [${mounts.join(", ")}]})
  }}`;
  const apiVersion = "admissionregistration.k8s.io/v1";
  const policy = {
    apiVersion,
    kind: "MutatingAdmissionPolicy",
    metadata: { name: NAME },
    spec: {
      matchConstraints: {
        resourceRules: [{ apiGroups: [""], apiVersions: ["v1"], resources: ["pods"], operations: ["CREATE"] }],
      },
      reinvocationPolicy: "Never",
      mutations: [{ patchType: "ApplyConfiguration", applyConfiguration: { expression } }],
    },
  };
  const metadata = { name: NAME };
  const binding = { apiVersion, kind: "MutatingAdmissionPolicyBinding", metadata, spec: { policyName: NAME } };
  return JSON.stringify({ apiVersion: "v1", kind: "List", items: [policy, binding] });
}
