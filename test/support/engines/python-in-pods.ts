import { spawnSync } from "node:child_process";
import type { Cluster } from "../clusters/types.ts";
import { kubectl } from "../harness/kubectl.ts";
import type { EngineFolder } from "./python.ts";

/** Paths of the machine that an engine's Python needs, each at the same place in a container. */
function pathsOf({ folder, python }: EngineFolder): string[] {
  const { stdout } = spawnSync(python, ["-c", "import sys; print(sys.base_prefix)"], { encoding: "utf8" });
  const prefix = stdout.trim();
  return ["/usr", "/lib", "/lib64", "/bin/bash", folder, ...(prefix.startsWith("/usr") ? [] : [prefix])];
}

/**
 * Gives every container of a namespace in a member the machine's Python with an engine's packages and bash, by the
 * member's own admission: the one image of real nodes has neither, and engines stay as they are.
 */
export async function givePython(member: Cluster, namespace: string, engine: EngineFolder): Promise<void> {
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
  const metadata = { name: `python-in-${namespace}` };
  const apiVersion = "admissionregistration.k8s.io/v1";
  const policy = {
    apiVersion,
    kind: "MutatingAdmissionPolicy",
    metadata,
    spec: {
      matchConstraints: {
        namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": namespace } },
        resourceRules: [{ apiGroups: [""], apiVersions: ["v1"], resources: ["pods"], operations: ["CREATE"] }],
      },
      reinvocationPolicy: "Never",
      mutations: [{ patchType: "ApplyConfiguration", applyConfiguration: { expression } }],
    },
  };
  const binding = { apiVersion, kind: "MutatingAdmissionPolicyBinding", metadata, spec: { policyName: metadata.name } };
  const input = JSON.stringify({ apiVersion: "v1", kind: "List", items: [policy, binding] });
  await kubectl(member, ["apply", "-f", "-"], { input });
}
