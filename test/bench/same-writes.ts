import type { Job, KubeObject, Pod, Stored } from "../../src/api/kubernetes.ts";
import type { ClusterClient, Patch } from "../../src/kube/client.ts";
import { timestamp } from "../../src/kube/objects.ts";
import { events, jobs, nodes, pods, type Resource } from "../../src/kube/resources.ts";
import { realClock } from "../../src/runtime/clock.ts";
import { makeEvent, type ObjectReference, referenceTo } from "../../src/runtime/kube-event.ts";
import { Reflector } from "../../src/runtime/reflector.ts";
import { createLogger } from "../../src/telemetry/logger.ts";

/** Legation's writes for an object of one kind. */
interface Writes<T extends KubeObject> {
  readonly resource: Resource<T>;
  /** Runs before the first object comes. */
  readonly start?: () => Promise<unknown>;
  readonly copy: (object: Stored<T>, member: ClusterClient) => Promise<unknown>;
  /** Returns the writes on the host for a new state of a copy, each once: by a name. */
  readonly follow: (copy: Stored<T>) => Readonly<Record<string, () => Promise<unknown>>>;
  readonly stop?: () => Promise<unknown>;
}

/**
 * Legation's writes without Legation: this process copies the objects of a namespace to members, and gives those of the host a
 * status. No webhook, no policy, no decisions, so it is the fastest that any controller with the same writes could be here.
 */
export class SameWrites<T extends KubeObject> {
  readonly #writes: Writes<T>;
  readonly #reflectors: readonly Reflector<T>[];
  readonly #done = new Set<string>();
  readonly #failures: unknown[] = [];

  constructor(host: ClusterClient, members: readonly ClusterClient[], namespace: string, writes: Writes<T>) {
    this.#writes = writes;
    const { resource, copy, follow } = writes;
    const log = createLogger({ level: "silent" });
    const reflectorOf = (client: ClusterClient, onObject: (object: Stored<T>) => void) =>
      new Reflector<T>({
        client,
        resource,
        namespace,
        clock: realClock,
        log,
        onEvent: ({ type, object }) => {
          if (type !== "deleted") onObject(object);
        },
      });
    let next = 0;
    this.#reflectors = [
      reflectorOf(host, (object) => {
        this.#once(`copy/${object.metadata.name}`, async () => {
          const member = members[next++ % members.length];
          if (member !== undefined) await copy(object, member);
        });
      }),
      ...members.map((member) =>
        reflectorOf(member, (object) => {
          for (const [what, send] of Object.entries(follow(object)))
            this.#once(`${what}/${object.metadata.name}`, send);
        }),
      ),
    ];
  }

  async start(): Promise<void> {
    await this.#writes.start?.();
    for (const reflector of this.#reflectors) reflector.start();
    await Promise.all(this.#reflectors.map((reflector) => reflector.whenSynced()));
  }

  /** Stops following; rejects with the first write that failed, because not all objects went to members then. */
  async stop(): Promise<void> {
    await Promise.all(this.#reflectors.map((reflector) => reflector.stop()));
    await this.#writes.stop?.();
    if (this.#failures.length > 0) throw this.#failures[0];
  }

  #once(what: string, send: () => Promise<unknown>): void {
    if (this.#done.has(what)) return;
    this.#done.add(what);
    send().catch((error: unknown) => this.#failures.push(error));
  }
}

/** Manages the Jobs of `jobWrites`: the host's Job controller leaves them alone. */
export const BENCH_MANAGER = "bench.example.com/same-writes";
const SOURCE = { component: "bench", reportingComponent: BENCH_MANAGER };
/** The options of writes whose answers nobody reads. */
const ANSWER = { metadataOnly: true, dropManagedFields: true };

function writeEvent(host: ClusterClient, about: ObjectReference, reason: string, message: string): Promise<unknown> {
  const told = { reason, message, type: "Normal", suffix: reason.toLowerCase(), at: Date.now() } as const;
  return host.create(events, makeEvent(about, told, SOURCE), ANSWER);
}

/** A node of the host without a kubelet: pods bound to it get their status from this process. */
const NODE = "bench-same-writes";

/** The writes of delegation: copies, Bindings, the event of each, and the status of running pods. */
export function podWrites(host: ClusterClient, namespace: string): Writes<Pod> {
  // The node controller marks the pods of a node that does not report.
  const report = (): object => {
    const lastHeartbeatTime = timestamp(Date.now());
    return { conditions: [{ type: "Ready", status: "True", reason: "Bench", lastHeartbeatTime }] };
  };
  let reports: NodeJS.Timeout | undefined;
  return {
    resource: pods,
    start: async () => {
      await host.create(nodes, { apiVersion: "v1", kind: "Node", metadata: { name: NODE }, status: report() });
      reports = setInterval(() => {
        const patch: Patch = { type: "strategic", body: { status: report() } };
        // A report that is missed does no harm.
        host.patch(nodes, { name: NODE }, patch, { subresource: "status" }).catch(() => {});
      }, 10_000);
    },
    copy: ({ metadata: { name }, spec }, member) => {
      const {
        schedulerName: _host,
        priority: _priority,
        preemptionPolicy: _policy,
        ...rest
      } = spec ?? { containers: [] };
      const metadata = { namespace, name, labels: { app: "bench" } };
      return member.create(pods, { apiVersion: "v1", kind: "Pod", metadata, spec: rest }, { dropManagedFields: true });
    },
    follow: (copy) => {
      const { metadata, spec, status } = copy;
      const ref = { namespace, name: metadata.name };
      const message = `Successfully assigned ${namespace}/${metadata.name} to ${spec?.nodeName}`;
      const target = { apiVersion: "v1", kind: "Node", name: NODE };
      const binding = { apiVersion: "v1", kind: "Binding", metadata: ref, target };
      const patch: Patch = { type: "strategic", body: { status } };
      return {
        ...(spec?.nodeName === undefined
          ? {}
          : {
              bind: () => host.createSubresource(pods, ref, "binding", binding),
              event: () => writeEvent(host, referenceTo(pods, copy), "Scheduled", message),
            }),
        ...(status?.phase === "Running"
          ? { status: () => host.patch(pods, ref, patch, { subresource: "status", dropManagedFields: true }) }
          : {}),
      };
    },
    stop: () => {
      clearInterval(reports);
      return host.delete(nodes, { name: NODE });
    },
  };
}

/** The writes of suspended whole Jobs: the record of the member, an event, the copy and its status. */
export function jobWrites(host: ClusterClient, namespace: string): Writes<Job> {
  return {
    resource: jobs,
    copy: async (job, member) => {
      const { name, resourceVersion, labels = {} } = job.metadata;
      const record = { metadata: { resourceVersion, annotations: { "bench.example.com/cluster": member.cluster } } };
      await host.patch(jobs, { namespace, name }, { type: "merge", body: record }, ANSWER);
      const { selector: _selector, managedBy: _manager, template, ...spec } = job.spec ?? { template: {} };
      const ofPods = { ...template, metadata: { annotations: template.metadata?.annotations ?? {} } };
      const metadata = { namespace, name, labels };
      const copy: Job = { apiVersion: "batch/v1", kind: "Job", metadata, spec: { ...spec, template: ofPods } };
      await Promise.all([
        writeEvent(host, referenceTo(jobs, job), "Placed", `${member.cluster} has the Job`),
        member.create(jobs, copy, ANSWER),
      ]);
    },
    follow: ({ metadata: { name }, status }) => {
      const isSuspended = status?.conditions?.some(({ type }) => type === "Suspended") === true;
      const patch: Patch = { type: "json", body: [{ op: "add", path: "/status", value: status }] };
      return isSuspended
        ? { status: () => host.patch(jobs, { namespace, name }, patch, { subresource: "status", ...ANSWER }) }
        : {};
    },
  };
}
