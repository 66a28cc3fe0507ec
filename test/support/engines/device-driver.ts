import { dirname, join } from "node:path";
import type { Cluster } from "../clusters/types.ts";
import { applyAll, kubectl } from "../harness/kubectl.ts";
import { eventually } from "../harness/wait.ts";
import { clusterRoleBinding } from "../legation/access.ts";
import { IMAGE } from "./clusters.ts";
import { DRIVER_PROGRAM, ensureDeviceDriver } from "./device-driver-program.ts";

/** Each of the node's devices can be used by one claim. */
const DEVICES = 2;

/** A driver's plugin in a pod of a node. */
export interface DeviceDriver {
  readonly cluster: Cluster;
  /** Of the driver's pod. */
  readonly namespace: string;
  readonly driver: string;
  readonly node: string;
}

/**
 * Runs the kubelet plugin of Kubernetes' test driver on a real node, as a DaemonSet would, with a DeviceClass of the driver's name.
 * Containers get environment variables of the claim's parameters (`user_`) and the class's (`admin_`). Resolves once the node has
 * published its devices.
 */
export async function startDeviceDriver({ cluster, namespace, driver, node }: DeviceDriver): Promise<void> {
  const programs = await ensureDeviceDriver((line) => process.stderr.write(`engines: ${line}\n`));
  const kubelet = join(dirname(cluster.kubeconfig), "node", "kubelet");
  const folders = {
    own: join(kubelet, "plugins", driver),
    registry: join(kubelet, "plugins_registry"),
    cdi: "/var/run/cdi",
  };
  const file = { name: "program", hostPath: { path: join(programs, DRIVER_PROGRAM) } };
  const paths = Object.entries(folders).map(([name, path]) => ({
    name,
    hostPath: { path, type: "DirectoryOrCreate" },
  }));
  const command = [
    "/driver",
    "kubelet-plugin",
    `--node-name=${node}`,
    `--drivername=${driver}`,
    `--num-devices=${DEVICES}`,
    `--datadir=${dirname(folders.own)}`,
    `--plugin-registration-path=${folders.registry}`,
    `--cdi-dir=${folders.cdi}`,
  ];
  const mounts = Object.entries(folders).map(([name, mountPath]) => ({ name, mountPath }));
  const volumeMounts = [{ name: file.name, mountPath: "/driver", readOnly: true }, ...mounts];
  const containers = [{ name: "plugin", image: IMAGE, command, volumeMounts }];
  const spec = {
    selectors: [{ cel: { expression: `device.driver == "${driver}"` } }],
    config: [parameters(driver, "x")],
  };
  await applyAll(cluster, [
    // What drivers may do differs; this one is given everything.
    clusterRoleBinding(driver, "cluster-admin", { kind: "User", name: `system:serviceaccount:${namespace}:default` }),
    { apiVersion: "resource.k8s.io/v1", kind: "DeviceClass", metadata: { name: driver }, spec },
    {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: DRIVER_PROGRAM, namespace },
      spec: { nodeName: node, containers, volumes: [file, ...paths], terminationGracePeriodSeconds: 1 },
    },
  ]);
  const slices = ["get", "resourceslices", `--field-selector=spec.driver=${driver}`, "-o", "name"];
  try {
    await eventually(async () => (await kubectl(cluster, slices)) !== "", {
      what: `devices of ${driver} on ${node}`,
      timeoutMs: 60_000,
    });
  } catch (error) {
    const asked = ["get pod -o yaml", "logs"].map((words) =>
      kubectl(cluster, [...words.split(" "), DRIVER_PROGRAM, "-n", namespace]).catch(String),
    );
    throw new Error((await Promise.all(asked)).map((text) => text.slice(-3000)).join("\n"), { cause: error });
  }
}

/** Removes what is the cluster's of a driver. Its pod goes with its namespace. */
export async function removeDeviceDriver({ cluster, namespace, driver }: DeviceDriver): Promise<void> {
  await kubectl(cluster, ["delete", "pod", DRIVER_PROGRAM, "-n", namespace, "--ignore-not-found"]);
  const objects = [`clusterrolebinding/${driver}`, `deviceclass/${driver}`];
  await kubectl(cluster, ["delete", "--ignore-not-found", ...objects]);
}

/** Returns parameters for the driver, by which a container's environment has a variable that ends with this name. */
export function parameters(driver: string, name: string): object {
  return { opaque: { driver, parameters: { [name]: "y" } } };
}
