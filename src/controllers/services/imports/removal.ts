import { HOST_LABEL, MANAGED_BY, MANAGED_BY_LABEL } from "../../../api/keys.ts";
import type { KubeObject, Stored } from "../../../api/kubernetes.ts";
import type { Registry } from "../../../clusters/registry.ts";
import type { ClusterClient } from "../../../kube/client.ts";
import { ignoring } from "../../../kube/errors.ts";
import { listAll } from "../../../kube/list.ts";
import { ServedResource } from "../../../kube/optional-resource.ts";
import { serviceExports, serviceImports } from "../../../kube/resources.ts";
import type { HostIdentity } from "../../../pods/delegate.ts";
import { Controller, type ControllerOptions } from "../../../runtime/controller.ts";
import type { Events } from "../../../runtime/event-bus.ts";
import type { ControllerEvents } from "../../events.ts";
import type { ImportAction } from "./decide.ts";
import { MANAGER, sendWrite } from "./writes.ts";

export interface ImportRemovalOptions extends ControllerOptions {
  readonly host: ClusterClient;
  readonly identity: HostIdentity;
  readonly registry: Pick<Registry, "members" | "member">;
  readonly events: Events<ControllerEvents>;
}

const HOST = "";

/** Removes imports and conditions that an earlier controller wrote with `--mcs`: once in the host and in each member of a network. */
export class ImportRemoval {
  readonly #options: ImportRemovalOptions;
  readonly #done = new WeakSet<ClusterClient>();
  readonly #loop: Controller<string, ClusterClient, ClusterClient>;

  constructor(options: ImportRemovalOptions) {
    this.#options = options;
    this.#loop = new Controller<string, ClusterClient, ClusterClient>(
      {
        name: "imports-removal",
        observe: (cluster) => this.#observe(cluster),
        decide: (client) => ({ actions: [client], outcome: "Removing" }),
        execute: async (client, { signal }) => {
          // A member that joined without the rights has none of these objects, or `unjoin` removes them.
          await ignoring(removeImports(client, options.identity, signal), "Forbidden");
          this.#done.add(client);
          return undefined;
        },
      },
      options,
    );
    options.events.onAny(["cluster", "networks"], () => this.#onClusters());
    options.events.on("connection", ({ name }) => this.#loop.enqueue(name));
  }

  start(): void {
    this.#loop.enqueue(HOST);
    this.#onClusters();
  }

  stop(): Promise<void> {
    return this.#loop.stop();
  }

  #onClusters(): void {
    for (const { name } of this.#options.registry.members()) this.#loop.enqueue(name);
  }

  /** Returns the client of a cluster that is still to be asked. Members without a network have no imports. */
  #observe(cluster: string): ClusterClient | undefined {
    const { host, registry } = this.#options;
    const member = registry.member(cluster);
    const isAsked = member?.reachable === true && member.cluster.spec.network !== undefined;
    const client = cluster === HOST ? host : isAsked ? member.client : undefined;
    return client === undefined || this.#done.has(client) ? undefined : client;
  }
}

/** Deletes this host's imports, which own their Services and EndpointSlices, and withdraws conditions of exports. */
async function removeImports(client: ClusterClient, { id }: HostIdentity, signal: AbortSignal): Promise<void> {
  const served = new ServedResource(client, serviceImports);
  const labelSelector = `${MANAGED_BY_LABEL}=${MANAGED_BY},${HOST_LABEL}=${id}`;
  const imports = await served.find(signal);
  const exports = await new ServedResource(client, serviceExports).find(signal);
  const send = (action: ImportAction): Promise<unknown> =>
    ignoring(sendWrite({ client, served }, action, signal), "NotFound", "Conflict");
  for (const object of imports ? await listAll(client, imports, { labelSelector, signal }) : []) {
    await send({ type: "delete", kind: "import", object });
  }
  for (const object of exports ? await listAll(client, exports, { signal }, hasConditions) : []) {
    await send({ type: "status", kind: "export", object, body: { conditions: [] } });
  }
}

function hasConditions({ metadata: { managedFields = [] } }: Stored<KubeObject>): boolean {
  return managedFields.some(({ manager, subresource }) => manager === MANAGER && subresource === "status");
}
