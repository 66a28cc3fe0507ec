import { readdirSync, readFileSync } from "node:fs";
import { z } from "zod";
import type { Cluster } from "../clusters/types.ts";
import { kubectl } from "../harness/kubectl.ts";

/** A pod of `legation access` on a real node of the host. */
export interface AccessReplica {
  readonly name: string;
  readonly uid: string;
}

const NAMESPACE = "legation-access";
const PODS = z.object({
  items: z.array(z.object({ metadata: z.object({ name: z.string(), uid: z.string() }) })),
});
const SLICES = z.object({
  items: z.array(
    z.object({
      endpoints: z
        .array(
          z.object({
            conditions: z.object({ ready: z.boolean().optional() }).optional(),
            targetRef: z.object({ name: z.string() }).optional(),
          }),
        )
        .nullish(),
    }),
  ),
});
const IN_FLIGHT = /^legation_access_in_flight_requests\{.*\} (\d+)$/gm;

function get(host: Cluster, ...args: readonly string[]): Promise<string> {
  return kubectl(host, ["-n", NAMESPACE, "get", ...args]);
}

/** Returns the replicas, running or not. */
export async function accessReplicas(host: Cluster): Promise<AccessReplica[]> {
  const { items } = PODS.parse(JSON.parse(await get(host, "pods", "-o", "json")));
  return items.map(({ metadata }) => metadata);
}

/** Returns the names of the replicas to which the Service leads. */
export async function servingReplicas(host: Cluster): Promise<string[]> {
  const slices = await get(host, "endpointslices", "-l", "kubernetes.io/service-name=legation-access", "-o", "json");
  return SLICES.parse(JSON.parse(slices))
    .items.flatMap(({ endpoints }) => endpoints ?? [])
    .filter(({ conditions }) => conditions?.ready === true)
    .map(({ targetRef }) => targetRef?.name ?? "");
}

/** Returns how many requests of users a replica has in flight, by its metrics. */
async function inFlightOf(host: Cluster, { name }: AccessReplica): Promise<number> {
  const path = `/api/v1/namespaces/${NAMESPACE}/pods/${name}:8080/proxy/metrics`;
  const metrics = await kubectl(host, ["get", "--raw", path]);
  return [...metrics.matchAll(IN_FLIGHT)].reduce((sum, [, count]) => sum + Number(count), 0);
}

/** Returns the process of a replica as this machine numbers it: nodes share the machine's kernel. */
export function processOf({ name, uid }: AccessReplica): number {
  // By the cgroup, which has the pod's uid in either notation.
  const written = [uid, uid.replaceAll("-", "_")];
  for (const entry of readdirSync("/proc").filter((each) => /^\d+$/.test(each))) {
    const [groups, command] = [readProc(entry, "cgroup"), readProc(entry, "cmdline")];
    if (written.some((each) => groups.includes(each)) && command.includes("\0access\0")) return Number(entry);
  }
  throw new Error(`no process of ${name} is running`);
}

function readProc(pid: string, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "utf8");
  } catch {
    // The process has ended.
    return "";
  }
}

// The host's API server chooses a replica for each request: of two, each in turn or by chance.
const MOST_ATTEMPTS = 20;

/** Opens a stream until this replica serves it, which its requests in flight show. `close` ends those that another one serves. */
export async function servedBy<Stream>(
  host: Cluster,
  replica: AccessReplica,
  open: () => Promise<Stream>,
  close: (stream: Stream) => void,
): Promise<Stream> {
  for (let attempt = 0; attempt < MOST_ATTEMPTS; attempt += 1) {
    const before = await inFlightOf(host, replica);
    const stream = await open();
    if ((await inFlightOf(host, replica)) > before) return stream;
    close(stream);
  }
  throw new Error(`${replica.name} serves none of ${MOST_ATTEMPTS} streams`);
}
