import { HOST_LABEL, MANAGED_BY, MANAGED_BY_LABEL, SYSTEM_NAMESPACE } from "../../api/keys.ts";
import type { KubeObject, Stored } from "../../api/kubernetes.ts";
import { FAMILIES } from "../../copies/named-by-pods.ts";
import { isDefinitions } from "../../copies/objects.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { isKubeError } from "../../kube/errors.ts";
import { listAll } from "../../kube/list.ts";
import {
  apiVersionOf,
  deployments,
  kindName,
  namespaces,
  persistentVolumeClaims,
  pods,
  type Resource,
  serviceAccounts,
  serviceExports,
} from "../../kube/resources.ts";
import { atMost } from "../shared/at-most.ts";
import { Discovery } from "../shared/discovery.ts";
import { objectText, some } from "../shared/output.ts";
import { readable } from "../shared/reading.ts";
import { refOf, remove } from "../shared/removal.ts";
import { until } from "../shared/wait.ts";
import { agentName, clusterRoles, findAccess, giveUpAccess, hostAccountName } from "./access.ts";
import { contentsOf, isOwnObject } from "./contents.ts";

export interface CleaningContext {
  readonly signal: AbortSignal;
  readonly report: (line: string) => void;
  /** Records and reports an object that remains in the member, and why. */
  readonly remains: (what: string) => void;
  /** Rejects if another Cluster took the name. Called repeatedly, since cleaning takes minutes. */
  readonly refuseSuccessor: () => Promise<void>;
  /** Resources of the host's DelegatedTypes. */
  readonly types: readonly Resource<KubeObject>[];
}

/** Removes everything that one host created in a member, its own access last. Reports what remains for lack of a right. */
export async function cleanMember(client: ClusterClient, hostId: string, context: CleaningContext): Promise<void> {
  const cleaner = new Cleaner(client, hostId, context);
  const access = await findAccess(client, hostId, context.signal);
  await cleaner.sweepObjects();
  await cleaner.waitForAgent();
  await cleaner.sweepNamespaces();
  await context.refuseSuccessor();
  await giveUpAccess(client, hostId, access, context);
}

/** Reports whether the API server itself serves a group, or Legation makes objects in it: none of these may be overlooked. */
function mustAnswer(group: string): boolean {
  return !group.includes(".") || group.endsWith(".k8s.io") || group === serviceExports.group;
}

// A member that never allowed the type has none.
const MAY_NOT_LIST =
  "if there are any, an administrator of the member removes them by --member-kubeconfig: the credentials may not list them";

// A new Cluster of the same name gets no pods within this time.
const SUCCESSOR_CHECK_MS = 1000;
// Concurrent deletions of namespaces. Each waits for its delegates' grace periods.
const NAMESPACES_AT_ONCE = 8;
const AGENT_GONE_WITHIN_MS = 40_000;
const NAMESPACE_GONE_WITHIN_MS = 60_000;

class Cleaner {
  readonly #client: ClusterClient;
  readonly #hostId: string;
  readonly #context: CleaningContext;
  readonly #signal: AbortSignal;
  readonly #discovery: Discovery;
  #checkedAt = Number.NEGATIVE_INFINITY;
  #removedAgent = false;

  constructor(client: ClusterClient, hostId: string, context: CleaningContext) {
    const { signal } = context;
    this.#client = client;
    this.#hostId = hostId;
    this.#context = context;
    this.#signal = signal;
    this.#discovery = new Discovery(client, signal);
  }

  async sweepObjects(): Promise<void> {
    const { types: served, stale } = await this.#discovery.removable();
    for (const version of stale) this.#remains(`objects in ${apiVersionOf(version)}`, "that API does not answer");
    const types = new Set(this.#context.types.map(kindName));
    const cluster = this.#context.types.filter(({ namespaced, plural }) => !namespaced && plural !== namespaces.plural);
    const namespaced = served.map(({ resource }) => resource);
    let failed: unknown;
    for (const resource of [...namespaced, ...FAMILIES.classes.kinds.map(({ resource }) => resource), ...cluster]) {
      try {
        await this.#sweep(resource);
      } catch (error) {
        if (isKubeError(error, "Forbidden")) {
          // A host without rights on pods has created none, but its administrator may want to know.
          if (resource.plural === pods.plural) this.#remains("delegate pods", "the credentials may not list pods");
          else if (types.has(kindName(resource))) this.#remains(`copies of ${kindName(resource)}`, MAY_NOT_LIST);
        } else if (isKubeError(error, "BadAnswer", "ServerError", "AnswerLost")) {
          // A failing aggregated API must not keep all other objects in the member.
          if (!mustAnswer(resource.group)) this.#remains(`objects in ${kindName(resource)}`, error.detail);
          // A member that does not answer would time out for each kind.
          else if (error.code === "AnswerLost") throw error;
          else failed ??= error;
        } else if (!isKubeError(error, "NotFound", "MethodNotAllowed")) throw error;
      }
    }
    // Fails before the access goes, which the next attempt needs.
    if (failed !== undefined) throw failed;
  }

  /** Waits until the pod of an agent whose Deployment was removed is gone: it would keep the namespace. */
  async waitForAgent(): Promise<void> {
    if (!this.#removedAgent) return;
    const labelSelector = `app.kubernetes.io/name=${agentName(this.#hostId)}`;
    const isGone = async (): Promise<boolean> => {
      const options = { namespace: SYSTEM_NAMESPACE, labelSelector, limit: 1, signal: this.#signal };
      const found = await readable(this.#client.list(pods, options));
      return found === undefined || found.items.length === 0;
    };
    await until(isGone, { timeoutMs: AGENT_GONE_WITHIN_MS, signal: this.#signal });
  }

  async #sweep(resource: Resource<KubeObject>): Promise<void> {
    for (const object of await this.#own(resource)) {
      const { namespace = "", name } = object.metadata;
      // This client may use the host's access, which goes last.
      if (resource.plural === serviceAccounts.plural && name === hostAccountName(this.#hostId)) continue;
      if (resource.group === clusterRoles.group && name.startsWith(hostAccountName(this.#hostId))) continue;
      if (resource.plural === persistentVolumeClaims.plural) {
        const remedy = `kubectl --namespace ${namespace} delete persistentvolumeclaim ${name}`;
        const why = `it holds data; when nothing needs it: ${remedy}`;
        this.#remains(`PersistentVolumeClaim ${namespace}/${name}`, why);
        continue;
      }
      if (isDefinitions(resource)) {
        const why = `all objects of its type would go with it; when nothing needs them: kubectl delete crd ${name}`;
        this.#remains(`CustomResourceDefinition ${name}`, why);
        continue;
      }
      // Not before each of thousands of objects.
      if (performance.now() - this.#checkedAt >= SUCCESSOR_CHECK_MS) {
        await this.#context.refuseSuccessor();
        this.#checkedAt = performance.now();
      }
      if (await this.#delete(resource, object)) this.#tell(`${objectText(resource.kind, object.metadata)} removed`);
      if (resource.plural === deployments.plural && name === agentName(this.#hostId)) this.#removedAgent = true;
    }
  }

  async sweepNamespaces(): Promise<void> {
    try {
      const own = await this.#own(namespaces);
      const system = await this.#client.find(namespaces, { name: SYSTEM_NAMESPACE }, { signal: this.#signal });
      // Each takes seconds to terminate.
      await atMost(NAMESPACES_AT_ONCE, own, async (namespace) => {
        await this.#context.refuseSuccessor();
        await this.#removeNamespace(namespace);
      });
      if (system?.metadata.labels?.[MANAGED_BY_LABEL] !== MANAGED_BY) return;
      await this.#context.refuseSuccessor();
      await this.#removeNamespace(system);
    } catch (error) {
      if (!isKubeError(error, "Forbidden")) throw error;
      const find = `kubectl get namespaces -l ${HOST_LABEL}=${this.#hostId}`;
      const remedy = `an administrator of the member finds them by \`${find}\`, and removes those that hold nothing else`;
      this.#remains("Namespaces that Legation made there", `${error.detail}; ${remedy}`);
    }
  }

  #own(resource: Resource<KubeObject>): Promise<Stored<KubeObject>[]> {
    const selection = { labelSelector: `${HOST_LABEL}=${this.#hostId}`, signal: this.#signal };
    // Some aggregated APIs ignore selectors.
    return listAll(this.#client, resource, selection, (object) => isOwnObject({ resource, object }, this.#hostId));
  }

  async #removeNamespace(namespace: Stored<KubeObject>): Promise<void> {
    const { name } = namespace.metadata;
    const what = `Namespace ${name}`;
    const { foreign, unknown } = await contentsOf(this.#client, this.#discovery, name, this.#hostId, this.#signal);
    if (foreign.length > 0) return this.#remains(what, `it holds ${some(foreign)}`);
    if (unknown.length > 0) {
      return this.#remains(what, `it may hold objects that the credentials cannot see: ${some(unknown)}`);
    }
    if ((await this.#delete(namespaces, namespace)) === undefined) return;
    this.#tell(`${what} is being deleted; waiting until it is gone`);
    const options = { signal: this.#signal };
    const isGone = async (): Promise<boolean> => (await this.#client.find(namespaces, { name }, options)) === undefined;
    if (await until(isGone, { timeoutMs: NAMESPACE_GONE_WITHIN_MS, ...options })) this.#tell(`${what} removed`);
    else this.#remains(what, "it is being deleted");
  }

  /** Deletes an object. Resolves to false if it was gone before, and to undefined if it remains for lack of a right. */
  async #delete(resource: Resource<KubeObject>, object: Stored<KubeObject>): Promise<boolean | undefined> {
    const { uid } = object.metadata;
    try {
      return await remove(this.#client, resource, refOf(object.metadata), { uid, signal: this.#signal });
    } catch (error) {
      if (!isKubeError(error, "Forbidden", "MethodNotAllowed")) throw error;
      this.#remains(objectText(resource.kind, object.metadata), error.detail);
      return undefined;
    }
  }

  #tell(line: string): void {
    this.#context.report(`${this.#client.cluster}: ${line}`);
  }

  #remains(what: string, why: string): void {
    this.#context.remains(`${what}: ${why}`);
  }
}
