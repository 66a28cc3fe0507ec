import { join } from "node:path";
import { z } from "zod";
import { type ApiAccess, apiRequest } from "./api-request.ts";
import type { Binaries } from "./binaries.ts";
import {
  apiServerFlags,
  type ClusterFiles,
  controllerManagerFlags,
  etcdFlags,
  KWOK_NODE_ANNOTATION,
  kwokFlags,
  schedulerFlags,
} from "./flags.ts";
import { releaseKwokLeases } from "./nodes.ts";
import { PlaneProcess } from "./plane-process.ts";
import type { ClusterOptions, Plane } from "./types.ts";

/** The processes that every cluster has; kwok is started only when it has nodes to play. */
export type Planes = Readonly<Record<Exclude<Plane, "node">, PlaneProcess>>;

// A loaded machine of two cores starts three API servers in about ten seconds.
const READY_MS = 120_000;
// Deadline of one poll.
const LOOK_MS = 5_000;
const NODES = "/api/v1/nodes";

async function answers(
  access: ApiAccess,
  path: string,
  accept: (text: string) => boolean = () => true,
): Promise<boolean> {
  try {
    const answer = await apiRequest(access, "GET", path, { timeoutMs: LOOK_MS });
    return answer.status === 200 && accept(answer.text);
  } catch {
    return false;
  }
}

const nodeSchema = z.object({
  metadata: z.object({ name: z.string(), annotations: z.record(z.string(), z.string()).default({}) }),
  status: z.object({ conditions: z.array(z.object({ type: z.string(), status: z.string() })).default([]) }),
});
const nodeListSchema = z.object({ items: z.array(nodeSchema) });

function isReady({ status }: z.infer<typeof nodeSchema>): boolean {
  return status.conditions.some((condition) => condition.type === "Ready" && condition.status === "True");
}

/** Reports whether the node is Ready. */
export function nodeReady(access: ApiAccess, name: string): Promise<boolean> {
  return answers(access, `${NODES}/${name}`, (text) => isReady(nodeSchema.parse(JSON.parse(text))));
}

function fakeNodes(text: string): z.infer<typeof nodeSchema>[] {
  const { items } = nodeListSchema.parse(JSON.parse(text));
  return items.filter(({ metadata }) => KWOK_NODE_ANNOTATION in metadata.annotations);
}

async function freeFakeNodes(access: ApiAccess): Promise<void> {
  const list = await apiRequest(access, "GET", NODES);
  if (list.status !== 200) throw new Error(`The nodes cannot be listed: ${list.text}`);
  await releaseKwokLeases(
    access,
    fakeNodes(list.text).map(({ metadata }) => metadata.name),
  );
}

/** The processes of one cluster, not started yet. */
export function describePlanes(
  cluster: string,
  binaries: Binaries,
  files: ClusterFiles,
  access: ApiAccess,
  options: ClusterOptions,
): Planes {
  const plane = (
    name: keyof Planes,
    args: readonly string[],
    ready: () => Promise<boolean>,
    prepare: () => Promise<void> = () => Promise.resolve(),
  ): PlaneProcess =>
    new PlaneProcess({
      name: `${cluster}'s ${name}`,
      command: binaries[name],
      args,
      logFile: join(files.directory, `${name}.log`),
      prepare,
      ready,
      readyTimeoutMs: READY_MS,
    });
  const always = (): Promise<boolean> => Promise.resolve(true);
  const defaultAccount = "/api/v1/namespaces/default/serviceaccounts/default";
  return {
    // The API server waits for etcd by itself.
    etcd: plane("etcd", etcdFlags(files), always),
    "kube-apiserver": plane("kube-apiserver", apiServerFlags(files, options), () => answers(access, "/readyz")),
    // Pods are refused until the controller manager has made the account they run as.
    "kube-controller-manager": plane("kube-controller-manager", controllerManagerFlags(files, options), () =>
      answers(access, defaultAccount),
    ),
    "kube-scheduler": plane("kube-scheduler", schedulerFlags(files, options), always),
    kwok: plane(
      "kwok",
      kwokFlags(files, options),
      () => answers(access, NODES, (text) => fakeNodes(text).every(isReady)),
      () => freeFakeNodes(access),
    ),
  };
}
