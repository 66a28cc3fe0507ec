import type { Pod, Stored } from "../../src/api/kubernetes.ts";
import type { ClusterClient } from "../../src/kube/client.ts";
import { nodes, pods } from "../../src/kube/resources.ts";
import { realClock } from "../../src/runtime/clock.ts";
import { Reflector } from "../../src/runtime/reflector.ts";
import { createLogger } from "../../src/telemetry/logger.ts";

/** A node of the host without a kubelet: pods bound to it get their status from this process. */
const NODE = "bench-same-writes";

/**
 * The writes of delegation without Legation: host pods that this process copies to members, binds and gives a status. No
 * webhook, no policy, no decisions, so it is the fastest that any controller with the same writes could be here.
 */
export class SameWrites {
  readonly #host: ClusterClient;
  readonly #namespace: string;
  readonly #reflectors: readonly Reflector<Pod>[];
  readonly #bound = new Set<string>();
  readonly #running = new Set<string>();
  readonly #failures: unknown[] = [];

  constructor(host: ClusterClient, members: readonly ClusterClient[], namespace: string) {
    this.#host = host;
    this.#namespace = namespace;
    const log = createLogger({ level: "silent" });
    const reflectorOf = (client: ClusterClient, onPod: (pod: Stored<Pod>) => Promise<void> | undefined) =>
      new Reflector({
        client,
        resource: pods,
        namespace,
        clock: realClock,
        log,
        onEvent: ({ type, object }) => {
          if (type !== "deleted") onPod(object)?.catch((error: unknown) => this.#failures.push(error));
        },
      });
    let next = 0;
    const copied = new Set<string>();
    this.#reflectors = [
      reflectorOf(host, ({ metadata, spec }) => {
        const member = members[next % members.length];
        if (copied.has(metadata.name) || member === undefined || spec === undefined) return undefined;
        copied.add(metadata.name);
        next += 1;
        return this.#copy(member, metadata.name, spec);
      }),
      ...members.map((member) => reflectorOf(member, (pod) => this.#follow(pod))),
    ];
  }

  async start(): Promise<void> {
    await this.#host.create(nodes, { apiVersion: "v1", kind: "Node", metadata: { name: NODE } });
    for (const reflector of this.#reflectors) reflector.start();
    await Promise.all(this.#reflectors.map((reflector) => reflector.whenSynced()));
  }

  /** Stops following; rejects with the first write that failed, because the pods were then not all delegated. */
  async stop(): Promise<void> {
    await Promise.all(this.#reflectors.map((reflector) => reflector.stop()));
    await this.#host.delete(nodes, { name: NODE });
    if (this.#failures.length > 0) throw this.#failures[0];
  }

  async #copy(member: ClusterClient, name: string, spec: NonNullable<Pod["spec"]>): Promise<void> {
    const { schedulerName: _host, priority: _priority, preemptionPolicy: _policy, ...rest } = spec;
    const metadata = { namespace: this.#namespace, name, labels: { app: "bench" } };
    await member.create(pods, { apiVersion: "v1", kind: "Pod", metadata, spec: rest }, { dropManagedFields: true });
  }

  #follow({ metadata, spec, status }: Stored<Pod>): Promise<void> | undefined {
    const { name } = metadata;
    const ref = { namespace: this.#namespace, name };
    if (spec?.nodeName !== undefined && !this.#bound.has(name)) {
      this.#bound.add(name);
      const target = { apiVersion: "v1", kind: "Node", name: NODE };
      const body = { apiVersion: "v1", kind: "Binding", metadata: ref, target };
      return this.#host.createSubresource(pods, ref, "binding", body).then(() => undefined);
    }
    if (status?.phase !== "Running" || this.#running.has(name)) return undefined;
    this.#running.add(name);
    const options = { subresource: "status", dropManagedFields: true };
    return this.#host.patch(pods, ref, { type: "strategic", body: { status } }, options).then(() => undefined);
  }
}
